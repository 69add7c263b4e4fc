"""Observed objects with only what matters to a test."""

from datetime import UTC, datetime, timedelta
from typing import Any

from kfp_placement_controller.observed.pods import ObservedPod, Owner
from kfp_placement_controller.runs.run_pods import RunPod
from kfp_placement_controller.runs.run_reading import RunReader
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_controller.sources.argo.workflows import observe_workflow
from kfp_placement_controller.sources.source import ObservedRun
from kfp_placement_engine.contract.custom_resources import PlacementPolicy
from kfp_placement_engine.contract.keys import SCHEDULER_LABEL
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.model.history import PastRun, PastStep, StepIdentity
from kfp_placement_engine.readers.argo.keys import NODE_NAME_ANNOTATION, WORKFLOW_LABEL
from kfp_placement_kube.change import Change
from tests.support.kubernetes import workflow_object

NO_POLICY = PlacementPolicySpec()
START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)


class SetClock:
    """The time of day, which somebody may set, and a clock that nobody sets.

    Attributes:
        now: the time of day.
    """

    now = START
    _set_by = timedelta(0)

    def monotonic(self) -> float:
        """Seconds that nobody sets."""
        return (self.now - self._set_by - START).total_seconds()

    def set_clock(self, step: timedelta) -> None:
        """Somebody sets the time of day."""
        self.now += step
        self._set_by += step


def after(seconds: float) -> datetime:
    """So long after `START`."""
    return START + timedelta(seconds=seconds)


def a_pod(
    name: str = "p",
    *,
    workflow: str = "run",
    workflow_uid: str = "w",
    argo_node_name: str = "",
    **fields: Any,
) -> ObservedPod:
    """A marked pod of the Workflow `run`, pending, created at `START`."""
    values: dict[str, Any] = {
        "namespace": "team",
        "name": name,
        "uid": f"uid-{name}",
        "created_at": START,
        "deleting": False,
        "phase": "Pending",
        "node_name": "",
        "scheduler_name": "kfp-placement",
        "labels": {WORKFLOW_LABEL: workflow} if workflow else {},
        "annotations": {NODE_NAME_ANNOTATION: argo_node_name},
        "owner": Owner("Workflow", workflow, workflow_uid) if workflow_uid else None,
        "step_type": "",
        "location": "",
        "max_latency_ms": None,
        "scheduler_mark": "kfp-placement",
        "unmarked_step": False,
        "gates": (),
        "unsatisfiable": False,
        "requests": {"cpu": 1000},
        "scored_requests": {"cpu": 1000, "memory": 0},
        "claims": (),
        "started_at": None,
        "running_at": None,
        "finished_at": None,
        "unscheduled": None,
        "prepared": False,
        "waiting_reason": "",
        "failure": None,
    }
    return ObservedPod(**{**values, **fields})


def pod_change(new: ObservedPod, old: ObservedPod | None = None) -> Change[ObservedPod]:
    """A pod is new, or has changed."""
    return Change((new.namespace, new.name), old, new)


def a_run_pod(**fields: Any) -> RunPod:
    """A pod of a run, created at `START`; times may be given."""
    times = {
        key: fields.pop(key) for key in ("bound_at", "running_at", "ended_at") if key in fields
    }
    return RunPod(a_pod(**fields), None, START, **times)


def a_workflow(
    name: str = "run", *, created_at: datetime = START, phase: str = "", suspended: bool = False
) -> ObservedRun:
    """A Workflow with our mark, created at `START`, as it is observed."""
    metadata = {"uid": "w", "creationTimestamp": created_at.isoformat()}
    spec = {"suspend": suspended, "podMetadata": {"labels": {SCHEDULER_LABEL: "x"}}}
    return observed(workflow_object(name, metadata=metadata, spec=spec, status={"phase": phase}))


def observed(raw: dict[str, Any], **options: Any) -> Any:
    """A Workflow that gets a plan, as an `ObservedRun`."""
    workflow = observe_workflow(raw, **options)
    assert workflow is not None
    return workflow


def a_tracked_run(raw: dict[str, Any], policy: Any = NO_POLICY) -> TrackedRun:
    """A Workflow that gets a plan, as it is followed."""
    seen = observed(raw)
    return TrackedRun(seen, RunReader(seen, policy).read())


def a_policy(**spec: Any) -> Any:
    """The spec of a policy; searches are over at once."""
    return PlacementPolicy.model_validate({"spec": {"engine": {"budget": "1ms"}, **spec}}).spec


def a_past_run(
    pipeline: str,
    number: int,
    *,
    ended_at: datetime | None = None,
    seconds: float = 60.0,
    steps: int = 1,
    component: str = "",
    node: str = "n0",
) -> PastRun:
    """A run whose steps all took the same time; each ends an hour after the one before."""
    return PastRun(
        uid=f"uid-{number}",
        pipeline=pipeline,
        ended_at=ended_at or START + timedelta(hours=number),
        steps=tuple(
            PastStep(StepIdentity(pipeline, f"step-{each}", "", component), seconds, node)
            for each in range(steps)
        ),
        planned_seconds=seconds,
        seconds=seconds,
    )
