"""PipelineHistory: what it refuses where no API server has looked at it."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kfp_placement_engine.contract.custom_resources import PipelineHistory, read_resource
from kfp_placement_engine.contract.history.pipeline_history import (
    MAX_HISTORY_BYTES,
    PipelineHistorySpec,
)
from kfp_placement_engine.contract.history.status import history_status
from kfp_placement_engine.contract.placement_size import json_bytes
from kfp_placement_engine.contract.shared_parts import ObjectMetadata
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.history import (
    PastContainer,
    PastRun,
    PastStep,
    StepIdentity,
    text_digest,
)

START = datetime(2026, 11, 1, tzinfo=UTC)
MOMENT = "2026-11-20T10:23:05Z"


def a_history(status, **spec):
    resource = {
        "metadata": {"name": "taxi"},
        "spec": {"pipeline": "taxi", **spec},
        "status": status,
    }
    return read_resource(PipelineHistory, resource)


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


def a_step(step, iteration="", seconds=1.0, **others):
    return PastStep(StepIdentity("taxi", step, iteration), seconds, "n0", **others)


def memory(amount):
    """A container of which only the memory is known, as in objects of older versions."""
    return PastContainer({"memory": amount}, is_complete=False)


def a_past_run(number, steps, **others):
    ended_at = datetime(2026, 1, 5, tzinfo=UTC) + timedelta(hours=number)
    return PastRun(f"uid-{number}", "taxi", ended_at, tuple(steps), **others)


def kept(*runs):
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


NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    "odd",
    [
        {"seconds": -1.0},
        {"seconds": NAN},
        {"seconds": 1e308},
        {"input_bytes": -1.0},
        {"peak_bytes": INFINITE},
        {"killed_bytes": 2.0**63},
        {"peak_bytes": 0},
        {"seconds": 32 * 86_400.0},
        {"seconds": None},
        {"arguments": (1.0, NAN)},
        {"arguments": (1.0,) * 5},
        {"step": "n" * 513},
    ],
    ids=str,
)
def test_a_step_that_cannot_be_true_is_not_written(odd):
    (run,) = kept(a_past_run(0, [a_step(**{"step": "odd", **odd}), a_step("a", "", 5)]))
    assert [(each.identity.step, each.seconds) for each in run.steps] == [("a", 5)]


def test_iterations_that_cannot_be_true_cost_the_others_nothing():
    right = a_step("loop", "b" * 8, container=memory(GIB))
    bad = [a_step("loop", "a" * 8, -1.0), a_step("loop", "c" * 8, None, container=memory(NAN))]
    (run,) = kept(a_past_run(0, [bad[0], right]))
    assert run.steps == (right,)
    (run,) = kept(a_past_run(0, [right, *bad]))
    assert run.steps == (replace(right, container=None),)


def test_of_a_run_what_cannot_be_true_is_not_written():
    loops = {"": 1, "n" * 513: 2, "negative": -1, "wide": 2_000_000, "right": 0}
    for odd in (-1.0, NAN, 1e308):
        run = replace(a_past_run(0, []), seconds=odd, planned_seconds=odd, loops=loops)
        assert kept(run) == [a_past_run(0, [], loops={"right": 0})]


GIB = 2**30


def test_what_is_written_can_be_read_again():
    run = a_past_run(
        0,
        [
            a_step("train", peak_bytes=GIB, container=memory(2 * GIB), arguments=(1.5, -1.0)),
            a_step("loop", "a" * 8, peak_bytes=3.0, killed_bytes=2 * GIB, input_bytes=0),
            replace(a_step("loop", "b" * 8, seconds=None, killed_bytes=GIB), node="n1"),
        ],
        loops={"loop": 7, "loop[*].inner": 0},
    )
    status = history_status([run]).model_dump(mode="json", by_alias=True)
    assert status["nodes"] == ["n0", "n1"]
    assert status["steps"] == [["train", "", "", 2 * GIB], ["loop"]]
    (written,) = status["runs"]
    assert written["loops"] == [["loop", 7], ["loop[*].inner", 0]]
    assert written["steps"] == [
        [0, [[1, 0, "", None, GIB, None, [1.5, -1]]]],
        [1, [[1, 0, "a" * 8, 0, 3, 2 * GIB], [None, 1, "b" * 8, None, None, GIB]]],
    ]
    assert kept(run) == [run]


IMAGE = "registry.example.org/train@sha256:" + 64 * "0"
COMPLETE = PastContainer({"cpu": 500, "memory": 2 * GIB, "nvidia.com/gpu": 1}, IMAGE)


def test_requests_and_image_of_a_step_are_written_once_for_all_runs_and_iterations():
    steps = [
        a_step("train", container=COMPLETE),
        a_step("loop", "a" * 8, container=COMPLETE),
        a_step("loop", "b" * 8, container=COMPLETE),
        a_step("idle", container=PastContainer({}, "busybox")),
        a_step("unseen"),
    ]
    runs = [a_past_run(number, steps) for number in range(2)]
    status = history_status(runs).model_dump(mode="json", by_alias=True)
    requests = [2 * GIB, [["cpu", 500], ["nvidia.com/gpu", 1]], 0]
    assert status["images"] == [IMAGE, "busybox"]
    assert status["steps"] == [
        ["train", "", "", *requests],
        ["loop", "", "", *requests],
        # Requesting nothing is something else than requests that nobody knows.
        ["idle", "", "", None, [["cpu", 0]], 1],
        ["unseen"],
    ]
    assert kept(*runs) == runs


@pytest.mark.parametrize(
    ("container", "written"),
    [
        (PastContainer({"no name": 1}, "i"), PastContainer({}, "i", is_complete=False)),
        (PastContainer({"cpu": -1, "memory": GIB}), memory(GIB)),
        (PastContainer({"cpu": 2**61, "memory": GIB}), memory(GIB)),
        (PastContainer({f"a.b/{each}": 1 for each in range(33)}), None),
        (PastContainer({"cpu": 1}, "i" * 513), PastContainer({"cpu": 1})),
        (PastContainer({"cpu": 1, "memory": GIB}, is_complete=False), memory(GIB)),
    ],
)
def test_requests_that_cannot_be_true_are_not_written(container, written):
    (run,) = kept(a_past_run(0, [a_step("train", container=container)]))
    assert run.steps == (a_step("train", container=written),)


def test_an_object_of_a_version_without_requests_says_the_memory_alone():
    status = {"steps": [["train", "c0", "i0", GIB]], **a_run(steps=[[0, [[1]]]])}
    (run,) = a_history(status).past_runs()
    assert run.steps[0].identity == StepIdentity("taxi", "train", "", "c0", "i0")
    assert run.steps[0].container == memory(GIB)


DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]

BAD_ITERATIONS = [
    *([bad] for bad in (-5, "20m", "1.5", True, NAN, 1e308, 32 * 86_400, 10**5000, [1], DEEP)),
    *([1, bad] for bad in (-2, "n0", "0", False, [0], 0.5)),
    *([1, 0, bad] for bad in (7, ["a"], "a" * 65)),
    *([1, 0, "", None, bad] for bad in (-1, 0, "1Gi", "1", True, [1], 2**63, NAN)),
    *([1, 0, "", None, None, None, bad] for bad in ("123", {"epochs": 5}, [NAN], [2**63], [1] * 5)),
    [],
    [None, 0, "a", 1],
    [None] * 8,
    "abc",
    5,
]
BAD_RUNS_STEPS = [
    *([], [0], [0, []], DEEP),
    *([bad, [[12.5]]] for bad in (-1, "0", 0.5, True, 20_000, 10**4000)),
]
BAD_REQUESTS = ["cpu", [["cpu"]], [["no name", 1]], [["cpu", -1]], [["cpu", "1"]], [["cpu", 2**61]]]
BAD_STEPS = [
    *([], [7], [""], ["n" * 513], ["train", 7], ["train", "", "", 0], ["train"] * 5, DEEP),
    *(["train", "", "", None, bad] for bad in (*BAD_REQUESTS, [["cpu", 1]] * 33, {"cpu": 1})),
    *(["train", "", "", None, [], bad] for bad in (-1, "image", 20_000)),
    ["train", "", "", None, [], 0, 0],
]


def a_history_with(row):
    """A history with this row of a run's steps, beside one that is right."""
    return a_history({"steps": [["first"]], **a_run(steps=[[0, [[12.5]]], row])})


@pytest.mark.parametrize(
    ("row", "place"),
    [
        *((bad, "") for bad in BAD_RUNS_STEPS),
        *(([0, [[12.5], bad]], r"\.1\.1") for bad in BAD_ITERATIONS),
    ],
    ids=lambda _: None,
)
def test_a_row_that_cannot_be_read_or_true_refuses_the_object_and_is_named(row, place):
    with pytest.raises(InputError, match=rf"'taxi': status\.runs\.0\.steps\.1{place}"):
        a_history_with(row)


@pytest.mark.parametrize("row", BAD_STEPS, ids=lambda _: None)
def test_so_does_a_step_of_the_pipeline(row):
    with pytest.raises(InputError, match=r"'taxi': status\.steps\.1"):
        a_history({"steps": [["first"], row], **a_run()})


@pytest.mark.parametrize("image", ["", "i" * 513, 7, None, DEEP], ids=lambda _: None)
def test_so_does_an_image(image):
    with pytest.raises(InputError, match=r"'taxi': status\.images\.1"):
        a_history({"images": ["busybox", image]})


def test_so_does_a_run_with_a_step_that_is_not_there():
    with pytest.raises(
        InputError, match=r"'taxi': status: .*runs\.0\.steps\.1\.0: there is no step 1"
    ):
        a_history_with([1, [[12.5]]])


@pytest.mark.parametrize(
    "row", [[], ["a"], ["a", -1], ["a", 1e300], ["a", 2.5], ["a", "3"], [0, 1]], ids=repr
)
def test_loops_that_cannot_be_read_or_true_are_named(row):
    with pytest.raises(InputError, match=r"status\.runs\.0\.loops\.1"):
        a_history(a_run(loops=[["loop", 3], row]))


def test_a_node_or_an_image_that_is_not_there_is_unknown():
    step = ["train", "", "", None, [["cpu", 100]], 1]
    status = {"nodes": ["n0"], "images": ["i"], "steps": [step], **a_run(steps=[[0, [[1, 5]]]])}
    (run,) = a_history(status).past_runs()
    assert (run.steps[0].node, run.steps[0].container) == ("", PastContainer({"cpu": 100}))


def test_a_run_that_somebody_has_added_twice_counts_once_where_it_ended_last():
    runs = [
        {"uid": uid, "endedAt": START + timedelta(days=day % 3)} for day, uid in enumerate("abac")
    ]
    assert [run.uid for run in a_history({"runs": runs}).past_runs()] == ["c", "b", "a"]


def test_a_step_whose_code_or_memory_changes_keeps_what_each_run_had():
    step = a_step("train", container=memory(GIB))
    code = [("c0", "i0"), ("c1", "i0"), ("c1", "i1"), ("c1", "i1"), ("c0", "i0")]
    asked = (memory(GIB), memory(GIB), memory(GIB), None, memory(GIB))
    steps = [
        replace(step, identity=StepIdentity("taxi", "train", "", *each), container=container)
        for each, container in zip(code, asked, strict=True)
    ]
    runs = [a_past_run(number, [each]) for number, each in enumerate(steps)]
    assert kept(*runs) == runs
    assert len(history_status(runs).steps) == 4


def test_nothing_is_left_of_runs_for_which_there_is_no_room():
    def steps(run: int) -> Iterable[PastStep]:
        for number in range(400):
            step = a_step(f"run-{run}-step-{number}-{'n' * 50}")
            yield replace(step, node=f"node-{run}")

    status = history_status(a_past_run(number, steps(number)) for number in range(20))
    assert 5 < len(status.runs) < 20
    assert len(status.steps) == 400 * len(status.runs)
    assert len(status.nodes) == len(status.runs)


def test_an_older_run_of_far_more_steps_than_there_is_room_for_goes():
    before = a_past_run(0, [a_step(f"b{each:x}") for each in range(19_999)])
    run = a_past_run(1, [a_step(f"a{each:x}") for each in range(3_000)])
    assert kept(before, run) == [run]


def test_a_node_of_an_iteration_that_cannot_be_true_is_not_written():
    odd = replace(a_step("train", seconds=-1.0), node="n1")
    assert history_status([a_past_run(0, [odd, a_step("other")])]).nodes == ("n0",)


def test_forgotten_steps_do_not_count():
    run = a_past_run(0, [a_step("train", peak_bytes=GIB), a_step("other", peak_bytes=GIB)])
    status = history_status([run]).model_dump(mode="json", by_alias=True)
    forgotten = {"step": "train", "before": run.ended_at + timedelta(hours=1)}
    (past_run,) = a_history(status, forgetSteps=[forgotten]).past_runs()
    assert [each.identity.step for each in past_run.steps] == ["other"]


@pytest.mark.parametrize(
    ("tasks", "items", "runs"),
    [(1_000, 1, 3), (500, 10, 3), (50, 100, 5), (2_500, 4, 1), (3_300, 1, 1)],
)
def test_of_large_pipelines_every_task_is_kept(tasks, items, runs):
    def digest(number: int) -> str:
        return text_digest(f"{number}")[:8]

    def steps(run: int) -> Iterable[PastStep]:
        for task in range(tasks):
            name, code = f"prepare-features-{task}", (digest(task), digest(task % 3))
            for item in range(items):
                key = digest(item) if items > 1 else ""
                identity = StepIdentity("taxi", name, key, *code)
                node = f"nitos-edge-node-{(task + item) % 9}"
                yield PastStep(identity, 41.5 + run + item, node, 5e7 + task)

    kept_runs = kept(*(a_past_run(number, steps(number)) for number in range(8)))
    assert len(kept_runs) >= runs
    for each in kept_runs:
        assert len({step.identity.step for step in each.steps}) == tasks


def test_loops_of_long_names_cost_neither_their_run_nor_those_before():
    def name(kind: str, number: int) -> str:
        return f"{kind}{number:03d}".ljust(512, "\u00e4")

    large = a_past_run(
        1,
        [a_step(name("step", number)) for number in range(100)],
        loops={name("loop", number): 2 for number in range(200)},
    )
    small = a_past_run(0, [a_step("first")])
    first, second = kept(small, large)
    assert first == small
    assert 5 < len(second.steps) < 100
    assert 5 < len(second.loops) < 200


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
    status = {"steps": [["train"]], **a_run(steps=[[0, [[5]]]])}
    of_step = a_history(status, forgetSteps=steps)
    assert [len(run.steps) for run in of_step.past_runs()] == [counts]
    history = a_history(status, forgetBefore=moment)
    assert len(history.past_runs()) == counts
    # It is exported, and read again.
    for each in (history, of_step):
        assert read_resource(PipelineHistory, each.to_object()) == each
