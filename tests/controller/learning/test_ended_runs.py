"""What a run teaches, whatever its times say."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from kfp_placement_controller.learning.ended_runs import ended_run
from kfp_placement_controller.observed.nodes import observe_node
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.runs.planner_parameters import PlanningParams
from kfp_placement_engine.contract.history.pipeline_history import image_digest
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.history import PastContainer
from kfp_placement_engine.model.promise import Promise, TimeRange
from kfp_placement_engine.model.run_graph import DataInput
from kfp_placement_engine.readers.argo.keys import COMPLETED_LABEL
from tests.controller.planning.builders import (
    NO_POLICY,
    START,
    a_pod,
    a_policy,
    a_tracked_run,
    after,
)
from tests.controller.planning.noisy_cluster import a_run
from tests.controlplane.times import write_time
from tests.support.kubernetes import node_object

NO_NODES: Mapping[str, Node] = {}
END_SECONDS = 100
NOW, BEGIN, RAN_UNTIL, END = (after(each) for each in (1000, 10, 40, END_SECONDS))


def a_workflow_that_ended(finished_at: datetime | None, phase: str = "Succeeded") -> dict[str, Any]:
    raw = a_run("nightly-0", iterations=1)
    raw["metadata"].update(namespace="team", uid="w", creationTimestamp=write_time(START))
    raw["metadata"]["labels"] = {COMPLETED_LABEL: str(phase != "Running").lower()}
    names = {"w-1": ".first", "w-2": ".work(0:item-0)", "w-3": ".last"}
    nodes = {
        key: {
            "id": key,
            "name": f"nightly-0{name}",
            "type": "Pod",
            "phase": "Succeeded",
            "templateName": "work",
        }
        for key, name in names.items()
    }
    raw["status"] = {"phase": phase, "startedAt": write_time(START), "nodes": nodes}
    if finished_at is not None:
        raw["status"]["finishedAt"] = write_time(finished_at)
    return raw


def a_step_pod(step: str = "first", **fields: Any) -> ObservedPod:
    """A pod that has executed a step of `nightly-0` on `n0`."""
    usual = {"started_at": BEGIN, "running_at": BEGIN, "finished_at": RAN_UNTIL}
    named = {"workflow": "nightly-0", "argo_node_name": f"nightly-0.{step}"}
    return a_pod(**{"phase": "Succeeded", "node_name": "n0", **named, **usual, **fields})


def evaluated(raw: dict[str, Any], *pods: ObservedPod, policy=NO_POLICY, now=NOW) -> Any:
    """The `TrackedRun` of a run that has had these pods."""
    run = a_tracked_run(raw, policy)
    for pod in pods:
        run.observe_pod(None, pod, now)
    run.evaluate(policy, now, 0.0, PlanningParams())
    return run


def taught(
    *,
    ended_at=END,
    phase="Succeeded",
    now=NOW,
    promised=None,
    policy=NO_POLICY,
    inputs=(),
    nodes=NO_NODES,
    **pod,
) -> Any:
    """What a run teaches whose step `first` ran; a `PastRun` or None."""
    run = evaluated(
        a_workflow_that_ended(ended_at, phase), a_step_pod(**pod), policy=policy, now=now
    )
    steps = tuple(replace(each, inputs=inputs) for each in run.reading.graph.steps)
    run.reading = replace(run.reading, graph=replace(run.reading.graph, steps=steps))
    if promised is not None:
        run.promises.first = Promise(ends=TimeRange(1, 2, 3), planned_seconds=promised)
    return ended_run(run, nodes, now)


def test_a_step_teaches_the_time_of_its_container():
    past = taught(promised=90)
    assert [(each.identity.step, each.seconds, each.node) for each in past.steps] == [
        ("first", 30.0, "n0")
    ]
    assert (past.seconds, past.planned_seconds) == (40, 90)


def test_run_times_are_those_of_a_node_of_speed_1():
    fast = observe_node(node_object("n0"))
    past = taught(nodes={"n0": replace(fast, speed=2.0)})
    assert [each.seconds for each in past.steps] == [60.0]


def test_transfers_that_a_plan_adds_again_are_taken_off():
    """With what the policy assumes of sizes and of the store, as plans do."""
    inputs = (DataInput("before", "table", 125_000_000), DataInput("before", "rest", None))
    policy = a_policy(defaults={"output": "5Mi", "storeBandwidth": "10M"})
    for in_force, moved_seconds in ((NO_POLICY, 1.0), (policy, 12.5 + 5 * 2**20 / 10e6)):
        past = taught(inputs=inputs, policy=in_force)
        assert [each.seconds for each in past.steps] == [pytest.approx(30 - moved_seconds, abs=0.1)]


YEAR = timedelta(days=365)
ODD = {
    "ends before it starts": {"running_at": after(40), "finished_at": after(10)},
    "before the run": {"running_at": START - YEAR},
    "takes a year": {"finished_at": START + YEAR},
    "after the run": {"running_at": START + YEAR, "finished_at": START + YEAR},
    "run ends before it begins": {"ended_at": START - YEAR},
    "run ends in a year": {"ended_at": START + YEAR},
    "run never says when it ended": {"ended_at": None},
    "our clock is a year behind": {"now": START - YEAR},
}


@pytest.mark.parametrize("times", ODD.values(), ids=ODD)
def test_times_that_cannot_be_true_teach_nothing(times):
    assert taught(**times) is None


def whole_seconds(*pods: tuple[float, float], held_until: float | None = None) -> float | None:
    """What is learned of how long a run took, by its pods: created and ended."""
    names = ("first", "work(0:item-0)", "last")
    run = evaluated(
        a_workflow_that_ended(after(10_000)),
        *(
            a_step_pod(
                name,
                name=name[:4],
                created_at=after(created),
                started_at=after(created),
                running_at=after(created),
                finished_at=after(ended),
            )
            for name, (created, ended) in zip(names, pods, strict=True)
        ),
        now=after(10_100),
    )
    if held_until is not None:
        run.hold.last_at = after(held_until)
    past = ended_run(run, {}, after(10_100))
    assert past is not None
    assert len(past.steps) == 3
    return past.seconds


WHOLE = ((5.0, 2000.0), (2005.0, 5000.0), (5005.0, 6000.0))


def test_a_run_that_was_interrupted_says_nothing_of_how_long_runs_take():
    """Held back, suspended or tried again, whether anybody has seen it or not."""
    assert whole_seconds(*WHOLE) == 6000
    later = tuple((created + 3000, ended + 3000) for created, ended in WHOLE)
    assert whole_seconds(*later, held_until=3000) == 6000
    assert whole_seconds(*later) is None
    assert whole_seconds(*WHOLE[:2], (8005.0, 9000.0)) is None
    assert whole_seconds(*WHOLE[:2], (5300.0, 6300.0), held_until=5290) is None
    # A pod that waits for a node is there.
    assert whole_seconds(*WHOLE[:2], (5005.0, 9900.0)) == 9900


def test_a_failed_run_teaches_its_steps_and_not_its_end():
    past = taught(phase="Failed", promised=90)
    assert past.seconds is None
    assert len(past.steps) == 1


def test_a_step_that_was_tried_again_counts_once_by_its_last_attempt():
    raw = a_workflow_that_ended(END)
    first = raw["status"]["nodes"]["w-1"]
    retried = {"type": "Retry", "name": "nightly-0.first", "children": ["w-1", "w-4"]}
    raw["status"]["nodes"] |= {
        "r": {**first, **retried, "id": "r"},
        "w-1": {**first, "name": "nightly-0.first(0)", "phase": "Failed"},
        "w-4": {**first, "name": "nightly-0.first(1)", "id": "w-4"},
    }
    pods = (
        a_step_pod(
            f"first({attempt})",
            name=f"first-{attempt}",
            phase=phase,
            node_name=f"n{attempt}",
            running_at=after(began),
            finished_at=after(ended),
        )
        for attempt, (phase, began, ended) in enumerate([("Failed", 10, 20), ("Succeeded", 25, 31)])
    )
    past = ended_run(evaluated(raw, *pods), {}, NOW)
    assert past is not None
    assert [(each.seconds, each.node) for each in past.steps] == [(6.0, "n1")]


def test_a_run_that_goes_on_teaches_nothing():
    assert taught(phase="Running") is None


GIB = 2**30


def taught_by_pods(*pods: dict[str, Any], peak: float | None = None) -> Any:
    """What the step `first` teaches that had these attempts; it asks for 2 GiB."""
    raw = a_workflow_that_ended(END)
    for template in raw["spec"]["templates"]:
        if "container" in template:
            template["container"]["resources"] = {"requests": {"memory": "2Gi"}}
            template["retryStrategy"] = {"limit": 2}
    nodes = raw["status"]["nodes"]
    for number in range(1, len(pods)):
        nodes[f"w-1-{number}"] = {**nodes["w-1"], "name": f"nightly-0.first({number})"}
    attempts = (
        a_step_pod(
            "first" if len(pods) == 1 else f"first({number})",
            **{"name": f"p{number}", "created_at": after(number), **fields},
        )
        for number, fields in enumerate(pods)
    )
    run = evaluated(raw, *attempts)
    run.peaks = {} if peak is None else {each.pod.uid: peak for each in run.pods}
    past = ended_run(run, {"n0": observe_node(node_object("n0"))}, NOW)
    assert past is not None
    (step,) = past.steps
    return step


def test_a_step_teaches_the_most_memory_that_it_was_seen_to_use():
    step = taught_by_pods({}, peak=1.5 * GIB)
    assert (step.identity.step, step.peak_bytes, step.asked_bytes) == ("first", 1.5 * GIB, 2 * GIB)
    assert step.killed_bytes is None


def past_steps(run):
    past = ended_run(run, NO_NODES, NOW)
    assert past is not None
    return past.steps


def of_an_outline(run):
    """The run as if its file did not say requests and images: what its plan assumed is wrong."""
    graph = run.reading.graph
    assumed = {"requests": {"memory": GIB}, "image": "assumed", "component": ""}
    steps = tuple(replace(each, **assumed) for each in graph.steps)
    run.reading = replace(run.reading, graph=replace(graph, steps=steps, is_outline=True))
    return run


def test_a_step_teaches_its_requests_and_image():
    raw = a_workflow_that_ended(END)
    (work,) = (each for each in raw["spec"]["templates"] if each["name"] == "work")
    work["container"] |= {"image": "mine", "resources": {"requests": {"memory": "2Gi"}}}
    run = evaluated(raw, a_step_pod(requests={"cpu": 7}, image="other"))
    (step,) = past_steps(run)
    assert step.container == PastContainer({"memory": 2 * GIB}, "mine")


def test_a_step_of_an_outline_teaches_those_of_its_pod():
    pod = a_step_pod(requests={"cpu": 2000, "memory": 4 * GIB}, image="python:3.12")
    run = of_an_outline(evaluated(a_workflow_that_ended(END), pod))
    (step,) = past_steps(run)
    assert step.container == PastContainer({"cpu": 2000, "memory": 4 * GIB}, "python:3.12")
    digest = image_digest("python:3.12")
    assert (step.identity.component, step.identity.image) == ("", digest)


def test_a_step_that_was_killed_for_memory_teaches_that_and_no_time():
    step = taught_by_pods({"phase": "Failed", "killed_bytes": 2 * GIB}, peak=GIB)
    assert (step.killed_bytes, step.peak_bytes, step.seconds) == (2 * GIB, None, None)


def test_of_a_step_that_was_tried_again_both_are_known():
    step = taught_by_pods(
        {"phase": "Failed", "killed_bytes": GIB}, {"phase": "Failed", "killed_bytes": 2 * GIB}, {},
        peak=2.5 * GIB,
    )  # fmt: skip
    assert (step.killed_bytes, step.peak_bytes) == (2 * GIB, 2.5 * GIB)
    assert step.seconds is not None


@pytest.mark.parametrize("peak", [None, 0.0, -1.0, float("nan"), float("inf"), 90.0 * GIB])
def test_no_step_uses_what_cannot_be_true(peak):
    step = taught_by_pods({}, peak=peak)
    assert (step.peak_bytes, step.seconds) == (None, 30.0)
