"""Workflows as their queue sees them, and the patches that let one wait, begin, pause and go on."""

from typing import Any

import pytest

from kfp_placement_controller.sources.argo.source import ArgoSource
from kfp_placement_controller.sources.queue_source import QueuedRun
from kfp_placement_controller.sources.source import RunEnd
from kfp_placement_engine.contract.keys import PREEMPTED_ANNOTATION, PREEMPTED_LABEL, QUEUE_INSTANCE
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.argo.keys import COMPLETED_LABEL, INSTANCE_LABEL
from tests.support.kubernetes import workflow_object

SOURCE = ArgoSource()
HELD = {INSTANCE_LABEL: QUEUE_INSTANCE}
PENDING = {"phase": "Pending", "message": "waits"}


def a_workflow(labels: Any = None, spec: Any = None, status: Any = None) -> dict[str, Any]:
    return workflow_object(metadata={"labels": labels}, spec=spec, status=status)


def queued(*parts: Any, **more: Any) -> QueuedRun:
    """A Workflow as its queue sees it."""
    return SOURCE.observe_queued(a_workflow(*parts, **more))


def test_a_plain_workflow_is_active_whether_it_is_marked_or_not():
    run = queued()
    assert (run.key, run.version, run.owner.uid) == (("team", "wf"), "7", "u")
    assert run.is_active
    assert not run.has_begun


@pytest.mark.parametrize(
    ("status", "says"), [(None, ""), ({}, ""), (PENDING, "waits"), ({"phase": "Running"}, "")]
)
def test_a_held_workflow_and_what_it_says(status, says):
    run = queued(HELD, status=status)
    assert run.is_held
    assert not run.is_active
    assert run.held_message == says
    observed = SOURCE.observe(a_workflow(HELD, status=status), unplanned=True)
    assert observed is not None
    assert observed.state.blocked == "it waits in its queue"


def test_one_that_argo_lets_wait_or_another_controller_looks_after_is_not_held():
    assert not queued(status=PENDING).is_held
    other = queued({INSTANCE_LABEL: "mine"}, status=PENDING)
    assert not other.is_held
    assert other.held_message == ""


@pytest.mark.parametrize(
    ("spec", "terminated"),
    [
        ({"activeDeadlineSeconds": 0}, True),
        ({"activeDeadlineSeconds": 60}, False),
        ({"activeDeadlineSeconds": None}, False),
        ({"shutdown": "Terminate"}, True),
        ({"shutdown": ""}, False),
        ([], False),
        ({"activeDeadlineSeconds": False}, False),
        ({"activeDeadlineSeconds": -1}, False),
        ({"activeDeadlineSeconds": 0, "shutdown": "later"}, False),
        ({"activeDeadlineSeconds": 0, "onExit": "notify"}, False),
        ({"activeDeadlineSeconds": 0, "templates": [{"http": {}}]}, False),
        ({"activeDeadlineSeconds": 0, "templates": [{"name": "onExit"}]}, True),
        ({"shutdown": "Stop"}, True),
        ({"shutdown": "Stop", "onExit": "notify"}, False),
        ({"shutdown": "Stop", "workflowTemplateRef": {"name": "t"}}, False),
        ({"shutdown": "Stop", "templates": [{"dag": {"tasks": [{"hooks": {}}]}}]}, False),
        ({"shutdown": "Stop", "ONEXIT": "notify"}, False),
        ({"shutdown": "later"}, False),
        ({"shutdown": "terminate"}, False),
        ({"shutdown": "Terminate", "onExit": "notify"}, True),
        ({"shutdown": "Terminate", "\N{LATIN SMALL LETTER LONG S}hutdown": ""}, False),
    ],
)
def test_whether_it_would_end_without_a_pod(spec, terminated):
    assert queued(HELD, spec).is_terminated is terminated


def test_pods_that_delete_artifacts_of_steps_are_pods_too():
    spec = {"shutdown": "Terminate", "artifactGC": {"strategy": "OnWorkflowCompletion"}}
    assert queued(HELD, spec).is_terminated
    assert not queued(HELD, spec, {"nodes": {"1": {}}}).is_terminated


@pytest.mark.parametrize(
    "status",
    [
        {"compressedNodes": "x"},
        {"nodes": {"1": {"outputs": {"artifacts": [{"artifactGC": {}}]}}}},
        {"nodes": {"1": {}}, "storedWorkflowTemplateSpec": {"artifactGC": {}}},
    ],
)
def test_artifacts_that_pods_delete_may_stand_in_the_status_alone(status):
    terminated = {"shutdown": "Terminate"}
    assert queued(HELD, terminated, {"nodes": {"1": {}}}).is_terminated
    assert not queued(HELD, terminated, status).is_terminated


def test_one_that_is_tried_again_is_held_and_has_begun():
    status = {**PENDING, "startedAt": "2026-01-05T08:00:00Z", "nodes": {"1": {}}}
    run = queued(HELD, status=status)
    assert run.is_held
    assert run.has_begun


@pytest.mark.parametrize(
    ("phase", "end"),
    [("Succeeded", RunEnd.SUCCEEDED), ("Error", RunEnd.FAILED), ("Running", RunEnd.FAILED)],
)
def test_how_it_has_ended(phase, end):
    run = queued({COMPLETED_LABEL: "true"}, status={"phase": phase})
    assert run.end is end
    assert not run.is_active


@pytest.mark.parametrize("labels", [{}, {COMPLETED_LABEL: "false"}, HELD])
@pytest.mark.parametrize("phase", ["Succeeded", "Error", "Running"])
def test_a_phase_alone_ends_nothing(labels, phase):
    workflow = a_workflow(labels)
    workflow["status"] = {"phase": phase}
    assert SOURCE.observe_queued(workflow).end is None


@pytest.mark.parametrize("broken", [5, "text", [HELD], {"x": 1}])
def test_whatever_else_it_says_it_can_be_read(broken):
    run = queued(broken, broken, broken)
    assert not run.is_held


def test_one_without_a_name_is_refused():
    nameless = a_workflow()
    del nameless["metadata"]["name"]
    with pytest.raises(InputError, match="has no name, uid or time of creation"):
        SOURCE.observe_queued(nameless)


VERSION = {"resourceVersion": "7"}


def test_patches_name_the_version_and_change_nothing_else():
    silent = queued(HELD)
    speaking = queued(HELD, status=PENDING)
    release = {**VERSION, "labels": {INSTANCE_LABEL: None}}
    assert SOURCE.held_patch(silent, "waits") == {"metadata": VERSION, "status": PENDING}
    assert SOURCE.release_patch(silent) == {"metadata": release}
    nothing = {"phase": None, "message": None}
    assert SOURCE.release_patch(speaking) == {"metadata": release, "status": nothing}
    marks = {"annotations": {PREEMPTED_ANNOTATION: "other"}, "labels": {PREEMPTED_LABEL: "true"}}
    noted = VERSION | marks
    suspend = {"metadata": noted, "spec": {"suspend": True}}
    assert SOURCE.suspend_patch(silent, "other") == suspend
    unmarked = {"annotations": {PREEMPTED_ANNOTATION: None}, "labels": {PREEMPTED_LABEL: None}}
    clean = VERSION | unmarked
    assert SOURCE.resume_patch(silent) == {"metadata": clean, "spec": {"suspend": None}}


def test_what_another_controller_has_done_with_a_workflow_is_no_beginning():
    began = {"phase": "Running", "startedAt": "2026-01-05T08:00:00Z"}
    assert queued(status=began).has_begun
    run = queued({INSTANCE_LABEL: "mine"}, status=began)
    assert not run.has_begun


def test_a_workflow_that_is_labelled_as_completed_has_ended():
    run = queued({COMPLETED_LABEL: "true"})
    assert run.end is RunEnd.FAILED


def test_only_a_workflow_that_its_queue_has_suspended_is_preempted():
    running = a_workflow(status={"phase": "Running", "startedAt": "2026-01-05T08:00:00Z"})
    running["spec"] = {"suspend": True}
    assert not SOURCE.observe_queued(running).is_preempted
    running["metadata"]["annotations"] = {PREEMPTED_ANNOTATION: "x" * 100}
    run = SOURCE.observe_queued(running)
    assert (run.is_preempted, run.preempted_for) == (True, "x" * 63)
    running["spec"] = {}
    assert not SOURCE.observe_queued(running).is_preempted
