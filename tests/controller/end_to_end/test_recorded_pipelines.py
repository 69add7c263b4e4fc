"""KFP's own pipelines, many at a time, from submission to their end under the whole installation.

Under both ways to place pods; what is asked, is asked of every run.
"""

from collections.abc import Iterator, Mapping

import pytest

from kfp_placement_engine.contract.keys import DEFAULT_SCHEDULER
from kfp_placement_engine.model.step_state import ENDED_STATES
from tests.controller.end_to_end.history import step_of_pod
from tests.controller.end_to_end.many_runs import EndedRun, run_to_end
from tests.controller.end_to_end.recorded_pipelines import GATED, LABELLED, OF_KFP, OF_KFP_3
from tests.controller.end_to_end.taxi_runs import is_marked
from tests.controlplane.argo.state import ANNOTATION_NODE_NAME, Json

Runs = Mapping[str, EndedRun]

STATUS_SECONDS = 2.0
"""Pause between two writes of a status."""

WRITES_AT_ONCE = 3
"""Number of writes of one object at about the same time: plan, status, and rows that follow."""

EXTENDER, GATES = "extender", "gates"
STOCK = "default-scheduler"


@pytest.fixture(scope="module", params=[EXTENDER, GATES])
def way(request):
    """How pods are placed."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def runs(way, control_plane_programs, argo_program):
    """All runs, at their end."""
    if way == GATES:
        return run_to_end(GATED, ("gates",), argo_program)
    return run_to_end((*LABELLED, *OF_KFP, *OF_KFP_3), (), argo_program)


def test_every_run_ends_as_it_should(runs):
    phases = {name: run.workflow["status"]["phase"] for name, run in runs.items()}
    assert phases == {name: run.recorded.phase for name, run in runs.items()}


def test_no_kubelet_rejects_a_pod(runs):
    reasons = {
        pod["metadata"]["name"]: pod["status"]["message"]
        for run in runs.values()
        for pod in run.pods
        if pod["status"].get("reason", "").startswith("OutOf")
    }
    assert reasons == {}


def test_marked_pods_are_where_they_are_planned_or_an_event_says_why_not(runs):
    for name, run in runs.items():
        assert run.marked, name
        # Each had a plan in time.
        assert all(run.planned.values()), name
        unexplained = {
            pod["metadata"]["annotations"][ANNOTATION_NODE_NAME]: (
                pod["spec"]["nodeName"],
                run.planned[pod["metadata"]["uid"]],
            )
            for pod in run.deviating
            if pod["metadata"]["name"] not in run.explained
        }
        assert unexplained == {}, name


def test_pods_have_the_scheduler_of_their_kind(runs, way):
    ours = STOCK if way == GATES else DEFAULT_SCHEDULER
    for name, run in runs.items():
        kinds = {(is_marked(pod), pod["spec"]["schedulerName"]) for pod in run.pods}
        assert kinds == {(True, ours), (False, STOCK)}, name


def test_unmarked_pods_are_left_alone(runs):
    for name, run in runs.items():
        for pod in run.pods:
            if not is_marked(pod):
                assert not pod["spec"].get("affinity"), name
                assert not pod["spec"].get("schedulingGates"), name


def test_placements_say_what_became_of_each_step(runs):
    for name, run in runs.items():
        assert run.placement.status is not None
        assert run.placement.status.phase == run.recorded.phase, name
        last = {step_of_pod(pod, run.placement): pod for pod in in_order(run.marked)}
        assert None not in last, name
        for step, state, node in states(run):
            assert state in ENDED_STATES, (name, step)
            pod = last.pop(step, None)
            if pod is not None:
                assert (state, node) == (pod["status"]["phase"].lower(), pod["spec"]["nodeName"]), (
                    name,
                    step,
                )
        assert last == {}, name


def in_order(pods: list[Json]) -> list[Json]:
    """Later attempts behind earlier ones."""
    return sorted(pods, key=lambda pod: pod["metadata"]["annotations"][ANNOTATION_NODE_NAME])


def states(run: EndedRun) -> Iterator[tuple[str, str, str | None]]:
    """Step, state, node."""
    placement = run.placement
    rows = zip(placement.planned_rows().rows, placement.state_rows().rows, strict=True)
    for planned, state in rows:
        assert planned is not None
        assert state is not None
        yield planned.name, state.state, placement.node_name(state.node)


def test_steps_without_a_pod_are_cached_or_skipped(runs):
    """Importers and createpvc have pods that bear no mark."""
    for name, run in runs.items():
        ran = {step_of_pod(pod, run.placement) for pod in run.marked}
        without = {step: state for step, state, _ in states(run) if step not in ran}
        cached = {step for step, state in without.items() if state == "cached"}
        assert {step.rpartition(".")[2] for step in cached} == run.recorded.choices.cached, name


def test_placements_are_written_rarely(runs):
    """For each thing that one says: plan and status, and from time to time the rows."""
    for name, run in runs.items():
        stages: dict[object, list[float]] = {}
        for each in run.written:
            status = each.placement.status
            phase_and_conditions = None if status is None else (status.phase, status.conditions)
            stages.setdefault((each.placement.spec.revision, phase_and_conditions), []).append(
                each.seconds
            )
        for stage, moments in stages.items():
            turns = (moments[-1] - moments[0]) / STATUS_SECONDS
            assert len(moments) <= WRITES_AT_ONCE + turns, (name, stage)
