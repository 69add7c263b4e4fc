import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine import ProgressState
from kfp_placement_engine.model.run_graph import DurationSource, StepKind
from kfp_placement_engine.views.plans.detail import NOTEBOOK, TEXT, WIDE
from kfp_placement_engine.views.plans.step_texts import reference_seconds, why
from kfp_placement_engine.views.plans.steps import grouped, steps_table
from tests.support.plans import a_plan, a_step, unplaced_step, varied
from tests.support.renderings import plan_table, steps_of_table


def item(index, task="for-loop-1[*].work", made=a_step, **changes):
    """One item of a loop, the n-th from minute n on."""
    name = task.replace("[*]", f"[{index}]", 1)
    times = {"start_seconds": 60.0 * index, "finish_seconds": 60.0 * index + 60.0}
    if made is unplaced_step:
        times = {}
    return made(name, **{"task": task, "iteration": (index,), **times, **changes})


def a_loop(width=12, nodes=3):
    steps = [item(index, node=f"worker-{index % nodes}") for index in range(width)]
    return a_plan(a_step("fetch"), *steps, a_step("merge"))


def names(groups):
    return [group[0].spec.task for group in groups]


def test_a_loop_is_one_row():
    first, loop, last = grouped(a_loop(), 1)
    assert names([first, last]) == ["fetch", "merge"]
    assert loop == a_loop().steps[1:-1]


def test_loops_of_few_items_stay_as_they_are():
    assert grouped(a_loop(8), 8) == [(step,) for step in a_loop(8).steps]
    assert len(grouped(a_loop(9), 8)) == 3


def test_tasks_of_one_loop_are_rows_of_their_own():
    tasks = ("for-loop-1[*].clean", "for-loop-1[*].train")
    steps = [item(index, task) for index in range(3) for task in tasks]
    assert names(grouped(a_plan(*steps), 1)) == list(tasks)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), unique=True), st.integers())
def test_every_step_is_in_one_group(items, most):
    steps = [a_step("only"), *(item(index, f"{loop}[*].work") for loop, index in items)]
    groups = grouped(a_plan(*steps), most)
    assert sorted(step.name for group in groups for step in group) == sorted(
        step.name for step in steps
    )
    assert all(len(group) == 1 or len(group) > max(most, 1) for group in groups)


def test_a_loop_that_is_cut_is_summed_up_whole():
    (row,) = steps_table(a_plan(*map(item, range(260))), NOTEBOOK).rows
    assert (len(row.items), str(row.cells[0])) == (200, "for-loop-1[*].work x 260")


CASES = {
    "three nodes": a_loop(),
    "two nodes": a_loop(5, nodes=2),
    "one node": a_loop(5, nodes=1),
    "different run times": a_plan(item(0), item(1, duration_seconds=180.0)),
    "assumed run times": a_plan(*(item(n, duration_source=DurationSource.ASSUMED) for n in (0, 1))),
    "some have no node": a_plan(item(0), item(1), item(2, made=unplaced_step)),
    "none has a node": a_plan(*(item(n, made=unplaced_step) for n in range(3))),
    "assumed items": a_plan(*(item(n, assumed=True, conditional=n > 0) for n in range(3))),
    "round trips": a_plan(*(item(n, latency_ms=9.8 + n) for n in range(3))),
    "slow nodes": a_plan(*(item(n, node_speed=0.5) for n in range(3))),
    "a slow node": a_plan(item(0), item(1, node_speed=0.5, duration_seconds=120.0)),
    "in vain": a_plan(unplaced_step(), *(item(n, depends_on=("huge",)) for n in range(2))),
}


@pytest.mark.parametrize("case", CASES)
def test_the_row_of_a_loop(case, golden):
    table = steps_of_table(CASES[case])
    golden(table)
    (row,) = [line for line in table.splitlines() if line.startswith("for-loop-1[*].work x ")]
    assert row


def test_nodes_are_counted_where_the_terminal_has_no_room_for_their_names():
    assert "worker-0 x 3, worker-1 x 2" in plan_table(a_loop(5, nodes=2), columns=90)
    narrow = plan_table(a_loop(5, nodes=2), columns=60)
    (row,) = [line for line in narrow.splitlines() if "work x 5" in line]
    assert "2 nodes" in row


def test_wide_shows_every_item():
    text = plan_table(a_loop(), wide=True)
    assert all(step.name in text for step in a_loop().steps)
    assert " x " not in text


def cells(step, detail=TEXT):
    """What the row of a single step says, by the titles of its columns."""
    table = steps_table(a_plan(step), detail)
    (row,) = table.rows
    return {column.title: str(cell) for column, cell in zip(table.columns, row.cells, strict=True)}


def test_a_row_of_a_step_by_itself_says_what_the_step_says():
    row = cells(a_step(latency_ms=9.8, conditional=True, assumed=True))
    titles = ["STEP", "NODE", "START", "END", "RUN", "LATENCY", "NOTE"]
    texts = ["train", "node-0", "0s", "1m", "1m", "9.8 ms", "conditional, assumed"]
    assert (list(row), list(row.values())) == (titles, texts)
    guessed = a_step(type="Predict", type_guessed=True, duration_source=DurationSource.ASSUMED)
    row = cells(guessed, WIDE)
    assert (row["TYPE"], row["RUN"]) == ("Predict (guessed)", "~1m")
    assert [cells(s)["NODE"] for s in (unplaced_step(), unplaced_step(cached=True))] == [
        "no node",
        "from cache",
    ]


def test_a_location_without_a_rule_is_left_out():
    plain = {"type": "Transform", "location": "BERLIN"}
    assert "LOCATION" not in cells(a_step(**plain), WIDE)
    for step in (
        a_step(**plain, latency_ms=40.0),
        a_step(type="Predict", location="BERLIN"),
        unplaced_step(**plain),
    ):
        assert cells(step, WIDE)["LOCATION"] == "BERLIN"


def test_a_slow_node_says_why_the_step_takes_longer(golden):
    slow = a_step(node_speed=0.5, duration_seconds=2400.0)
    golden(cells(slow)["NOTE"], "remark")
    golden(why(slow), "reason")
    golden(steps_of_table(a_plan(slow), reasons=True), "with reasons")
    for other in ({"node_speed": 1.0}, {"node": None}, {"duration_seconds": 0.0}):
        assert "NOTE" not in cells(varied(slow, **other))
        assert why(varied(slow, **other)) == slow.explanation.sentence


@pytest.mark.parametrize(
    "other", [{"kind": StepKind.IMPORTER}, {"progress": ProgressState.RUNNING}]
)
def test_times_that_do_not_scale_with_the_speed_are_not_explained_by_it(other):
    assert reference_seconds(a_step(node_speed=0.5, **other)) is None
