from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement_engine.render.layering import layered, longest_path_layers, without_shortcuts


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 25))
    return {
        str(node): [
            str(parent)
            for parent in draw(st.lists(st.integers(0, node - 1), unique=True, max_size=4))
        ]
        if node
        else []
        for node in range(count)
    }


@given(graphs())
@settings(max_examples=150)
def test_everything_has_a_place_of_its_own_and_edges_go_right(parents):
    layout = layered(parents)
    places = {(layout.x[node], round(layout.y[node], 6)) for node in parents}
    assert len(places) == len(parents)
    for node, before in parents.items():
        assert all(layout.x[parent] < layout.x[node] for parent in before)
        assert 0 <= layout.x[node] < layout.layers
        assert 0 <= layout.y[node] <= layout.height - 1 + 1e-9
    for column in range(layout.layers):
        ys = sorted(layout.y[node] for node in parents if layout.x[node] == column)
        assert all(b - a >= 1 - 1e-9 for a, b in pairwise(ys))


def reachable(parents):
    result: dict[str, set[str]] = {}
    for node in sorted(parents, key=int):
        result[node] = set().union(*(result[parent] | {parent} for parent in parents[node]))
    return result


@given(graphs())
@settings(max_examples=150)
def test_shortcuts_left_out_change_no_order(parents):
    kept = without_shortcuts(parents)
    assert reachable(kept) == reachable(parents)
    assert all(set(kept[node]) <= set(parents[node]) for node in parents)


def test_a_shortcut_is_left_out():
    parents = {"a": [], "b": ["a"], "c": ["a", "b"]}
    assert without_shortcuts(parents) == {"a": [], "b": ["a"], "c": ["b"]}


def test_cycles_are_noticed():
    assert longest_path_layers({"a": ["b"], "b": ["a"]}) is None


def test_a_chain_is_level():
    layout = layered({"a": [], "b": ["a"], "c": ["b"]})
    assert [layout.x[node] for node in "abc"] == [0, 1, 2]
    assert len({layout.y[node] for node in "abc"}) == 1


def test_simple_graphs_have_no_crossings():
    # Given crossed on purpose.
    parents = {"a": [], "b": [], "c": [], "x": ["c"], "y": ["b"], "z": ["a"]}
    layout = layered(parents)
    order = sorted("abc", key=lambda node: layout.y[node])
    partner = {"a": "z", "b": "y", "c": "x"}
    assert sorted("xyz", key=lambda node: layout.y[node]) == [partner[node] for node in order]


def test_independent_steps_fill_a_grid():
    layout = layered({str(index): [] for index in range(12)})
    assert layout.layers == 5
    assert layout.height == 3


def test_large_graphs_take_no_time():
    parents = {str(i): [str(j) for j in range(max(0, i - 60), i - 50)] for i in range(300)}
    assert layered(parents).layers > 5
