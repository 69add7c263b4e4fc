"""RunQueues as they are read, malformed ones as well."""

from typing import Any

import pytest

from kfp_placement_controller.observed.run_queues import observe_queue
from kfp_placement_engine.contract.run_queue import RunQueueSpec, RunQueueStatus
from tests.controller.queueing.builders import BROKEN

READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Admitting",
    "message": "",
    "lastTransitionTime": "2026-01-05T08:00:00Z",
}
STATUS = {"ready": True, "waiting": 3, "conditions": [READY]}


def a_queue(spec: Any, status: Any = None) -> Any:
    metadata = {"name": "default", "namespace": "team", "resourceVersion": "1"}
    return observe_queue({"metadata": metadata, "spec": spec, "status": status})


@pytest.mark.parametrize("spec", [{"quota": BROKEN}, 5, {"overcommit": "x"}], ids=str)
def test_a_malformed_spec_hides_nothing_of_the_status(spec):
    queue = a_queue(spec, STATUS)
    assert queue.problem
    assert queue.status == RunQueueStatus.model_validate(STATUS)


@pytest.mark.parametrize(
    "damage", [{"waiting": "x"}, {"used": 5}, {"waitRatios": [-1]}, {"observedGeneration": []}]
)
def test_of_a_damaged_status_what_can_be_read_counts_and_the_spec_holds(damage):
    queue = a_queue({"quota": {"runs": 1}}, {**STATUS, **damage})
    assert (queue.problem, queue.spec.quota.runs) == ("", 1)
    assert queue.status.ready is True
    assert queue.status.condition("Ready").reason == "Admitting"
    assert a_queue({}, "nothing").status == RunQueueStatus()


def test_a_malformed_spec_still_says_what_happens_while_nobody_admits_runs():
    says = {"onControllerDown": "hold", "holdDeadline": "30s"}
    queue = a_queue({"quota": BROKEN, "overcommit": 5, **says})
    assert queue.spec == RunQueueSpec(on_controller_down="hold", hold_deadline_seconds=30)


@pytest.mark.parametrize(
    ("says", "holds"), [("run", False), (None, False), ("hold", True), ("later", True), (5, True)]
)
def test_runs_begin_without_a_controller_only_if_their_queue_says_so(says, holds):
    assert a_queue({"quota": BROKEN, "onControllerDown": says}).holds_without_controller is holds


def test_a_malformed_queue_of_kueue_stays_kueue_s():
    queue = a_queue({"backend": "kueue", "localQueue": "team", "quota": BROKEN})
    assert (queue.spec.backend, queue.spec.local_queue) == ("kueue", "team")
    assert a_queue({"backend": "kueue"}).spec.backend == "builtin"
