"""The most that pods may take at once: never less than a search of all sets of pods finds."""

from itertools import combinations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement_engine.problem.most_at_once import HeldNodes, scope_of


def ancestors(before):
    """All that each node waits for; predecessors have smaller numbers."""
    behind: list[set[int]] = []
    for earlier in before:
        behind.append(set(earlier).union(*(behind[each] for each in earlier)))
    return behind


def most_by_search(before, limits, taken):
    """The most that nodes take of which none waits for another, and that limits allow."""
    behind, best = ancestors(before), 0
    for chosen in product([False, True], repeat=len(before)):
        nodes = [node for node, is_in in enumerate(chosen) if is_in]
        if any(one in behind[other] for one, other in combinations(nodes, 2)):
            continue
        held = [sum(not {*nodes}.isdisjoint(each) for each in x.holders) for x in limits]
        if all(count <= x.most for count, x in zip(held, limits, strict=True)):
            best = max(best, sum(taken[node] for node in nodes))
    return best


def most(before, taken, limits=()):
    return scope_of(before, limits).most_at_once(taken, {})


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 8))
    before = [draw(st.sets(st.integers(0, node - 1))) if node else set() for node in range(count)]
    return [sorted(each) for each in before]


@st.composite
def limits_of(draw, count):
    """Holders without common nodes, which may be in those of other limits or beside them."""
    owners = draw(st.lists(st.integers(-1, 3), min_size=count, max_size=count))
    holders = [[n for n, owner in enumerate(owners) if owner == each] for each in range(4)]
    return HeldNodes(draw(st.integers(1, 3)), [each for each in holders if each])


@settings(max_examples=500)
@given(data=st.data(), before=graphs())
def test_it_is_never_less_than_what_may_run_at_once(data, before):
    taken = data.draw(st.lists(st.integers(0, 5), min_size=len(before), max_size=len(before)))
    limits = data.draw(st.lists(limits_of(len(before)), max_size=3))
    bound = most(before, taken, [each for each in limits if each.holders])
    assert most_by_search(before, limits, taken) <= bound <= sum(taken)


def test_chains_loops_and_stages_are_exact():
    chains = [[], [0], [1], [], [3], [4]]
    assert most(chains, [1, 5, 1, 2, 2, 3]) == 8
    stages = [[], [0], [0], [0], [1, 2, 3], [4], [4]]
    assert most(stages, [8, 2, 2, 2, 1, 3, 3]) == 8


def test_only_some_holders_of_a_limit_count():
    loop = [[], *[[0]] * 6, [1, 2, 3, 4, 5, 6]]
    limit = HeldNodes(2, [[each] for each in range(1, 7)])
    assert most(loop, [1, 1, 2, 3, 4, 5, 6, 7]) == 21
    assert most(loop, [1, 1, 2, 3, 4, 5, 6, 7], [limit]) == 11


def test_limits_within_the_holders_of_others_count():
    holders = [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    limits = [HeldNodes(2, holders), *(HeldNodes(1, [[n] for n in each]) for each in holders)]
    assert most([[]] * 9, [1] * 9, limits) == 2
    assert most([[]] * 9, [1] * 9, limits[:1]) == 6


def test_wide_and_long_graphs_take_little_time():
    """Two loops of 5,000 iterations after each other, by a step that waits for all."""
    wide = [[], *[[0]] * 5000, [*range(1, 5001)], *[[5001]] * 5000]
    assert most(wide, [1] * len(wide)) == 5000
    assert most([[n - 1] if n else [] for n in range(10_000)], [1] * 10_000) == 1
    # Far away is looked for only so often.
    far = [[n - 1] if n else [] for n in range(5000)]
    assert most(far + [[4999]] * 5000, [10**6] + [0] * 4999 + [1] * 5000) >= 10**6
