"""PipelineHistory: what it refuses where no API server has looked at it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kfp_placement_engine.contract.fields import ObjectMetadata
from kfp_placement_engine.contract.history_rows import (
    MAX_LOOPS,
    MAX_NODES,
    MAX_PATH_CHARACTERS,
)
from kfp_placement_engine.contract.history_status import history_status
from kfp_placement_engine.contract.pipeline_history import (
    MAX_HISTORY_BYTES,
    PipelineHistorySpec,
    PipelineHistoryStatus,
)
from kfp_placement_engine.contract.placement_size import json_bytes
from kfp_placement_engine.contract.resources import PipelineHistory, read_resource
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.history import (
    LoopWidth,
    PastRun,
    PastStep,
    StepIdentity,
)

START = datetime(2026, 11, 1, tzinfo=UTC)
MOMENT = "2026-11-20T10:23:05Z"


def a_history(status, **spec):
    found = {"metadata": {"name": "taxi"}, "spec": {"pipeline": "taxi", **spec}, "status": status}
    return read_resource(PipelineHistory, found)


def a_run(**changes):
    return {"runs": [{"uid": "u", "endedAt": MOMENT, **changes}]}


REFUSED = {
    "pipeline": ({"pipeline": ""}, {}, "spec.pipeline"),
    "border": ({"forgetBefore": "9999-12-31"}, {}, "spec.forgetBefore"),
    "years": ({}, a_run(endedAt="0001-01-01T00:00:00Z"), "is not in the years 1970 to 9000"),
    "step": ({"forgetSteps": [{"step": "", "before": MOMENT}]}, {}, "spec.forgetSteps.0.step"),
    "negative": ({}, a_run(seconds=-1), "status.runs.0.seconds"),
    "nan": ({}, a_run(seconds=float("nan")), "status.runs.0.seconds"),
    "endless": ({}, a_run(plannedSeconds=1e308), "status.runs.0.plannedSeconds"),
    "zone": ({}, a_run(endedAt="2026-11-20T10:23:05"), "status.runs.0.endedAt"),
    "row": ({}, a_run(steps=[[0] * 17]), "status.runs.0.steps.0"),
}


@pytest.mark.parametrize(("spec", "status", "message"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused_with_its_place(spec, status, message):
    with pytest.raises(InputError) as refused:
        a_history(status, **spec)
    assert message in str(refused.value)
    assert "PipelineHistory 'taxi'" in str(refused.value)


def test_what_is_new_has_nothing():
    raw = {"metadata": {"name": "taxi"}, "spec": {"pipeline": "taxi"}}
    history = read_resource(PipelineHistory, raw)
    assert history.past_runs() == ()
    assert history.to_object()["spec"] == {"pipeline": "taxi", "forgetSteps": []}


def test_entries_that_a_later_version_adds_are_ignored():
    def rows(more: Sequence[object]) -> PipelineHistory:
        run = {
            "steps": [[0, 12.5, 0, "", 1024, GIB, None, [5], *more]],
            "loops": [[1, 5, *more]],
        }
        steps = [["train", "c" * 16, "i" * 16, GIB, *more], ["for-loop-1", "", "", None, *more]]
        return a_history(a_run(**run) | {"steps": steps, "nodes": ["n0"]})

    (run,) = rows([7, "new", {"a": 1}, None]).past_runs()
    assert (run,) == rows([]).past_runs()
    (step,) = run.steps
    assert (step.peak_bytes, step.asked_bytes, step.arguments) == (GIB, GIB, (5,))
    assert run.loops


def a_step(step: str, iteration: str = "", seconds: float | None = 1.0, **others: Any) -> PastStep:
    return PastStep(StepIdentity("taxi", step, iteration), seconds, "n0", **others)


def a_past_run(number: int, steps: Iterable[PastStep]) -> PastRun:
    ended_at = datetime(2026, 1, 5, tzinfo=UTC) + timedelta(hours=number)
    return PastRun(f"uid-{number}", "taxi", ended_at, tuple(steps))


def kept(*runs: PastRun) -> list[PastRun]:
    metadata = ObjectMetadata(name="taxi")
    spec = PipelineHistorySpec(pipeline="taxi")
    status = history_status(runs)
    history = PipelineHistory(metadata=metadata, spec=spec, status=status)
    assert json_bytes(history.to_object()) <= MAX_HISTORY_BYTES
    return list(history.past_runs())


def test_a_run_with_a_wide_loop_leaves_room_for_others_and_for_its_other_steps():
    wide = [a_step("loop", f"{number:08x}") for number in range(10_000)]
    steps = [a_step("first"), *wide, a_step("last")]
    runs = kept(*(a_past_run(number, steps) for number in range(10)))
    assert len(runs) >= 4
    assert runs[-1].uid == "uid-9"
    for run in runs:
        assert run.steps[0].identity.step == "first"
        assert run.steps[-1].identity.step == "last"
        assert len(run.steps) > 1_000
        assert run.steps[1:-1] == tuple(wide[: len(run.steps) - 2])


def test_what_cannot_be_true_is_not_written():
    odd = [a_step("a", "", seconds) for seconds in (-1, float("nan"), 1e308)]
    (run,) = kept(a_past_run(0, [*odd, a_step("a", "", 5)]))
    assert [each.seconds for each in run.steps] == [5]


GIB = 2**30


def test_a_row_says_run_time_and_memory_of_a_step():
    run = a_past_run(
        0,
        [
            a_step("train", peak_bytes=GIB, asked_bytes=2 * GIB),
            a_step("loop", "a" * 8, peak_bytes=3.0, killed_bytes=2 * GIB, input_bytes=0),
        ],
    )
    status = history_status([run])
    assert status.steps == (("train", "", "", 2 * GIB), ("loop",))
    assert status.runs[0].steps == (
        (0, 1, 0, "", None, GIB),
        (1, 1, 0, "a" * 8, 0, 3, 2 * GIB),
    )
    assert kept(run) == [run]


def test_what_was_killed_alone_has_no_run_time():
    run = a_past_run(0, [a_step("train", seconds=None, killed_bytes=2 * GIB)])
    status = history_status([run])
    assert status.runs[0].steps == ((0, None, 0, "", None, None, 2 * GIB),)
    assert kept(run) == [run]


def test_numeric_arguments_are_at_the_end_of_the_row_of_their_step():
    given = (10.0, 0.001, 1e15, -3.5)
    steps = [replace(a_step("train"), arguments=given), a_step("last")]
    run = a_past_run(0, steps)
    status = history_status([run])
    row = (0, 1, 0, "", None, None, None, (10, 0.001, 10**15, -3.5))
    assert status.runs[0].steps == (row, (1, 1, 0))
    assert kept(run) == [run]


NAN = float("nan")
BAD_STEPS = {
    "empty": [[], [None], [17, 1], [-2, 1], ["x"], [0], [[0], 1], [{}]],
    "time": [[0, bad] for bad in (-5, "20m", NAN, 1e308, 10**400, [1])],
    "node": [[0, 1, bad] for bad in (1, -2, "n0", [0])],
    "iteration": [[0, 1, 0, bad] for bad in (7, ["a"])],
    "size": [[0, 1, 0, "", bad] for bad in (-1, "1Gi", 2**63)],
    "memory": [[0, 1, 0, "", None, bad] for bad in (0, -1, "1Gi", [1], 2**63, NAN)],
    "arguments": [
        [0, 1, 0, "", None, None, None, bad]
        for bad in ("12345", 7, {"epochs": 5}, [1, "12345"], [True], [NAN], [2**63], [[1]], [1] * 5)
    ],
}


@pytest.mark.parametrize("rows", BAD_STEPS.values(), ids=BAD_STEPS)
def test_a_step_that_cannot_be_read_or_true_refuses_the_object_and_is_named(rows):
    for row in rows:
        status = a_run(steps=[[0, 12.5], row]) | {"steps": [["train"]], "nodes": ["n0"]}
        with pytest.raises(InputError) as refused:
            a_history(status).past_runs()
        message = f"PipelineHistory 'taxi': steps of run 'u': row {row!r:.120} cannot be read"
        assert message in str(refused.value)


@pytest.mark.parametrize(
    "row", [[], [0], [99, 1], [0, -1], [0, 1e300], [0, 2.5], ["x", 1]], ids=repr
)
def test_loops_that_cannot_be_read_or_true_are_named(row):
    with pytest.raises(InputError, match="loops of run 'u': row "):
        a_history(a_run(loops=[[0, 3], row]) | {"steps": [["loop"]]}).past_runs()


@pytest.mark.parametrize(
    "row",
    [
        [],
        [7],
        [""],
        ["n" * (MAX_PATH_CHARACTERS + 1)],
        ["a", ["c"]],
        ["a", "", 1],
        [["a", "b"]],
        [{"a": 1}],
        [10**5000],
    ],
    ids=range(9),
)
def test_rows_of_the_steps_of_a_pipeline_that_cannot_be_read_are_named(row):
    with pytest.raises(InputError, match=r"status\.steps: row "):
        a_history(a_run() | {"steps": [row]}).past_runs()


def test_a_run_that_somebody_has_added_twice_counts_once():
    status = a_run(steps=[[0, 12.5]]) | {"steps": [["train"]], "nodes": []}
    status["runs"] = [*status["runs"], *status["runs"]]
    assert len(a_history(status).past_runs()) == 1


def test_what_is_forgotten_is_not_read_and_refuses_nothing():
    history = a_history(a_run(steps=[["x"]]), forgetBefore="2027-01-01T00:00:00Z")
    assert history.past_runs() == ()


def test_loops_are_kept():
    loops = (LoopWidth("loop", 7), LoopWidth("loop[*].inner", 0))
    run = PastRun("u", "taxi", START, seconds=100.0, loops=loops)
    status = history_status([run])
    assert status.runs[0].loops == ((0, 7), (1, 0))
    assert kept(run) == [run]


def test_loops_are_bounded():
    loops = tuple(LoopWidth(f"loop-{each}", 2) for each in range(1000))
    (kept,) = history_status([PastRun("u", "p", START, loops=loops)]).runs
    assert len(kept.loops) == MAX_LOOPS


def test_forgotten_steps_do_not_count():
    run = a_past_run(0, [a_step("train", peak_bytes=GIB), a_step("other", peak_bytes=GIB)])
    status = history_status([run]).model_dump(mode="json", by_alias=True)
    forgotten = {"step": "train", "before": run.ended_at + timedelta(hours=1)}
    (found,) = a_history(status, forgetSteps=[forgotten]).past_runs()
    assert [each.identity.step for each in found.steps] == ["other"]


def test_what_has_too_long_a_path_is_left_out():
    """Cut, two would be one, which nobody asks for."""
    fits, too_long = "n" * MAX_PATH_CHARACTERS, "n" * (MAX_PATH_CHARACTERS + 1)
    steps = [a_step(each) for each in (too_long, fits)]
    run = replace(
        a_past_run(0, steps),
        loops=tuple(LoopWidth(each, 2) for each in (too_long, fits)),
    )
    assert kept(run) == [replace(run, steps=run.steps[1:], loops=run.loops[1:])]


def test_loops_of_long_names_cost_neither_their_run_nor_those_before():
    def name(kind: str, number: int) -> str:
        return f"{kind}{number:03d}".ljust(MAX_PATH_CHARACTERS, "\u00e4")

    large = replace(
        a_past_run(1, [a_step(name("step", number)) for number in range(100)]),
        loops=tuple(LoopWidth(name("loop", number), 2) for number in range(200)),
    )
    small = a_past_run(0, [a_step("first")])
    status = history_status([small, large])
    assert [run.uid for run in status.runs] == ["uid-0", "uid-1"]
    (stored,) = kept(large)
    for kept_rows, all_rows in (
        (stored.steps, large.steps),
        (stored.loops, large.loops),
    ):
        assert 5 < len(kept_rows) < len(all_rows)
        assert kept_rows == all_rows[: len(kept_rows)]


def named_by_runs(status: PipelineHistoryStatus) -> tuple[set[int], set[int]]:
    """Indexes of the steps and nodes that rows of runs name."""
    rows = [row for run in status.runs for row in run.steps]
    loops = [row for run in status.runs for row in run.loops]
    return {row[0] for row in (*rows, *loops)}, {row[2] for row in rows}


def test_a_run_that_has_no_room_leaves_nothing_behind():
    """Its components are its own, and so the steps and nodes that it names."""

    def run(number: int) -> PastRun:
        component, name = f"{number:016x}", "n" * 490
        steps = [
            PastStep(StepIdentity("taxi", f"{name}-{each}", "", component), 1.0, f"n{number}")
            for each in range(100)
        ]
        loops = tuple(LoopWidth(f"{number}-{each}-{name}", 2) for each in range(200))
        return replace(a_past_run(number, steps), loops=loops)

    status = history_status([run(number) for number in range(30)])
    assert 2 < len(status.runs) < 30
    assert json_bytes(status.model_dump(mode="json", by_alias=True)) <= MAX_HISTORY_BYTES
    assert named_by_runs(status) == (set(range(len(status.steps))), set(range(len(status.nodes))))


def test_runs_on_thousands_of_nodes_have_room_for_as_many_as_an_object_may_name():
    """Each runs on new ones, as where a cluster's autoscaler makes them."""

    def run(number: int) -> PastRun:
        steps = (
            PastStep(StepIdentity("taxi", "loop", f"{each:08x}"), 1.0, f"n{number}-{each}")
            for each in range(175)
        )
        return a_past_run(number, steps)

    status = history_status([run(number) for number in range(30)])
    assert MAX_NODES - 175 < len(status.nodes) <= MAX_NODES
    assert [len(each.steps) for each in status.runs] == [175] * (len(status.nodes) // 175)
    assert status.runs[-1].uid == "uid-29"


@pytest.mark.parametrize(
    ("days", "counted"),
    [
        ((0, 1, 2), 3),
        ((0, 100, 101), 2),  # the first is too old
        ((0, 1, 36_500), 1),
        ((0, 1, 2, 36_500), 4),  # a clock was wrong, or nothing ran for long: all count
        ((0, 1, -18_000), 2),  # in whatever order they are
        ((0, 100, 200, 300), 4),  # once in a quarter
        ((7,), 1),
    ],
)
def test_one_run_with_a_wrong_date_hides_no_others(days, counted):
    runs = [{"uid": f"u{each}", "endedAt": START + timedelta(days=each)} for each in days]
    assert len(a_history({"runs": runs}).past_runs(90)) == counted


@pytest.mark.parametrize(
    ("moment", "counts"),
    [
        ("9999-12-31T23:59:59Z", False),
        ("9999-12-31t23:59:59.5-12:00", False),
        ("9001-01-01T00:00:00Z", False),
        (MOMENT, True),
        ("0001-01-01T00:00:00+14:00", True),
        ("0000-01-01T00:00:00z", True),
    ],
)
def test_all_that_the_api_server_takes_to_forget_counts(moment, counts):
    steps = [{"step": "train", "before": moment}]
    status = a_run(endedAt=MOMENT)
    history = a_history(status, forgetBefore=moment, forgetSteps=steps)
    ended_at = datetime.fromisoformat(MOMENT)
    assert history.spec.forgets_run(ended_at) == (not counts)
    run = PastRun("u", "taxi", ended_at, (a_step("train"),))
    assert len(history.spec.remembered(run).steps) == counts
    assert len(history.past_runs()) == counts
    # It is exported, and read again.
    assert read_resource(PipelineHistory, history.to_object()) == history
