"""The last resort for runs that wait, on a fake API server."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from kfp_placement_controller.kinds import RUN_QUEUES
from kfp_placement_controller.release_process import release
from kfp_placement_controller.settings import ReleaseSettings
from kfp_placement_controller.sources.argo.workflow_object import WORKFLOWS
from kfp_placement_engine.contract.keys import PREEMPTED_ANNOTATION, PREEMPTED_LABEL, QUEUE_INSTANCE
from kfp_placement_engine.readers.argo.keys import COMPLETED_LABEL, INSTANCE_LABEL
from kfp_placement_kube.exceptions import ForbiddenError
from kfp_placement_kube.kinds import LEASES
from kfp_placement_kube.times import micro_time_text
from tests.support.kubernetes import workflow_object

NOW = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
PLANNER, QUEUE = "kfp-placement-planner", "kfp-placement-queue"
OVERDUE = ReleaseSettings(overdue=True, pods=False, runs=True)


def a_lease(seconds: float, holder: str = "one") -> dict[str, Any]:
    """A Lease that was renewed some seconds ago."""
    renewed = micro_time_text(NOW - timedelta(seconds=seconds))
    return {"spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}}


def a_workflow(name: str, labels: dict[str, str], **parts: Any) -> dict[str, Any]:
    metadata = {"uid": f"uid-{name}", "labels": labels, **parts.pop("metadata", {})}
    return workflow_object(name, metadata=metadata, **parts)


def preempted(name: str) -> dict[str, Any]:
    noted = {"annotations": {PREEMPTED_ANNOTATION: "uid-other"}}
    return a_workflow(name, {PREEMPTED_LABEL: "true"}, metadata=noted, spec={"suspend": True})


HELD = a_workflow("held", {INSTANCE_LABEL: QUEUE_INSTANCE})
OF_OTHERS = a_workflow("suspended", {PREEMPTED_LABEL: "true"}, spec={"suspend": True})
STOPPED = preempted("stopped")
ENDED: dict[str, Any] = {**preempted("ended"), "status": {"phase": "Failed"}}
ENDED["metadata"]["labels"][COMPLETED_LABEL] = "true"


class FakeServer:
    """Leases, one RunQueue and Workflows; notes what is patched."""

    def __init__(self, leases: dict[str, Any], spec: dict[str, Any] | None, *runs: Any) -> None:
        self.leases = leases
        metadata = {"name": "default", "namespace": "team", "resourceVersion": "1"}
        queue: dict[str, Any] = {"metadata": metadata, "spec": spec, "status": {"ready": True}}
        self.queues = [] if spec is None else [queue]
        self.runs = {run["metadata"]["name"]: run for run in runs}
        self.patches: list[tuple[str, Any]] = []

    @property
    def written(self) -> list[str]:
        return [name for name, _ in self.patches]

    def get(self, kind: Any, name: str, namespace: str = "") -> Any:
        if kind is LEASES:
            return self.leases.get(name)
        return self.runs.get(name) if kind is WORKFLOWS else None

    def list(self, kind: Any, label_selector: str = "", **_: Any) -> Any:
        if kind is RUN_QUEUES:
            return SimpleNamespace(items=iter(self.queues))
        label = tuple(label_selector.split("="))
        labelled = [run for run in self.runs.values() if label in run["metadata"]["labels"].items()]
        return SimpleNamespace(items=iter(labelled))

    def patch(self, kind: Any, name: str, namespace: str, patch: Any, **_: Any) -> None:
        self.patches.append((name, patch))


def released(server: FakeServer, settings: ReleaseSettings = OVERDUE) -> list[str]:
    """What the job writes."""
    client: Any = server
    assert release(client, NOW, print, settings) == 0
    return server.written


def both(seconds: float) -> dict[str, Any]:
    return {PLANNER: a_lease(seconds), QUEUE: a_lease(seconds)}


HOLD = {"onControllerDown": "hold"}
MALFORMED = {"quota": {"resources": [{"name": "cpu", "amount": "1e99"}]}}


@pytest.mark.parametrize(
    ("leases", "spec", "runs", "expected"),
    [
        # As at every orderly restart.
        ({**both(1), PLANNER: a_lease(1, holder="")}, {}, (HELD, STOPPED), []),
        ({**both(1), QUEUE: a_lease(1, holder="")}, {}, (HELD, STOPPED), []),
        ({**both(1), QUEUE: a_lease(136, holder="")}, {}, (HELD,), ["default", "held"]),
        (both(136), HOLD, (HELD, STOPPED), []),
        (both(60), {}, (HELD, STOPPED), ["default"]),
        # A RunQueue that is being replaced is not there for a moment.
        (both(1), None, (HELD,), []),
        (both(16), None, (HELD, STOPPED), ["held", "stopped"]),
        (both(3600), {**MALFORMED, **HOLD}, (HELD,), []),
        (both(3600), {**MALFORMED, "onControllerDown": 5}, (HELD,), []),
        (both(3600), MALFORMED, (HELD,), ["default", "held"]),
    ],
    ids=[
        "the planner's Lease was just given back",
        "the queue's Lease was just given back",
        "a Lease was given back long ago",
        "the queue says hold",
        "before the deadline only new runs begin",
        "no queue, but who admits lives",
        "no queue, and nobody who admits",
        "a malformed queue that says hold",
        "a malformed queue that says nonsense",
        "a malformed queue that says nothing",
    ],
)
def test_what_is_let_go(leases, spec, runs, expected):
    assert released(FakeServer(leases, spec, *runs)) == expected


def test_a_lease_that_is_missing_lets_new_runs_begin_and_frees_nobody_at_once():
    server = FakeServer({PLANNER: a_lease(1)}, {}, HELD)
    assert released(server) == ["default"]
    assert server.patches[0][1]["status"]["ready"] is False


def test_preempted_runs_go_on_as_held_ones_begin():
    server = FakeServer(both(136), {}, HELD, STOPPED, OF_OTHERS, ENDED)
    assert released(server) == ["default", "held", "stopped"]
    assert server.patches[-1][1]["spec"] == {"suspend": None}


def test_by_hand_all_go_on_and_a_dry_run_writes_nothing(capsys):
    by_hand = ReleaseSettings(pods=False, runs=True, dry_run=True)
    assert released(FakeServer(both(1), HOLD, HELD, STOPPED, ENDED), by_hand) == []
    output = capsys.readouterr().out
    assert "run team/stopped" in output
    assert "run team/ended" not in output


def test_that_the_policy_is_paused_is_not_said_where_it_cannot_be(capsys):
    client: Any = FakeServer({}, None)
    client.create = Mock(side_effect=ForbiddenError(403, "Forbidden", "may not create"))
    with pytest.raises(ForbiddenError):
        released(client, ReleaseSettings())
    assert not capsys.readouterr().out
