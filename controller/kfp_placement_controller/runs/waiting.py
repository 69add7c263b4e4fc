"""Things that keep a step's pod from running, in the words of the contract."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from kfp_placement_controller.observed.gate_deadlines import StartWindow
from kfp_placement_controller.runs.run_pods import RunPod
from kfp_placement_engine.contract.keys import PLAN_GATE
from kfp_placement_engine.model.run_graph import Step
from kfp_placement_engine.model.step_state import WaitingFor
from kfp_placement_engine.readers.tree.run_outcomes import StepOutcome

QUOTA_WORDS = "exceeded quota"
"""Words of the API server's refusal, as the run's object repeats it."""

IMAGE_REASONS = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
     "ImageInspectError", "RegistryUnavailable"}
)  # fmt: skip
"""Reasons of a container that waits for its image (kubelet's `images` package)."""

VOLUME_WORDS = ("persistentvolumeclaim", "volume node affinity", "volume(s)", "no available volume")
"""Words of kube-scheduler's messages where a volume keeps a pod from every node."""


UNSATISFIABLE = (
    "no node was within its limit when its gate came off, and what a pod requires cannot be changed"
    " later: delete it"
)


@dataclass(frozen=True, slots=True)
class WaitsFor:
    """Wait of a step.

    Attributes:
        what: kind of thing that the step waits for.
        since: time since which it waits.
        until: time until which it waits at most; None = nobody ends the wait.
        detail: message of Kubernetes; "" = there is none.
    """

    what: WaitingFor
    since: datetime
    until: datetime | None = None
    detail: str = ""


def start_window(step: Step, outcome: StepOutcome | None, pod: RunPod | None) -> StartWindow | None:
    """Return the time within which a pod of a step must run; None = any time.

    What the pod says counts before what the run's object says, since it has no gaps. The time
    counts from the creation of the step's node in the run's object, which may be before the pod's.

    Args:
        step: the step.
        outcome: the step's outcome so far; None = the run's object does not mention it.
        pod: pod of the step; None = there is none.
    """
    limit = step.start_limit
    begins = [] if pod is None else [pod.created_at]
    if pod is not None and pod.pod.start_limit is not None:
        limit = pod.pod.start_limit
    if outcome is not None and outcome.started_at is not None and _is_of(outcome, pod):
        begins.append(outcome.started_at)
    return StartWindow(limit, min(begins)) if limit is not None and begins else None


def _is_of(outcome: StepOutcome, pod: RunPod | None) -> bool:
    """Return whether an outcome is about a pod, not about an attempt before it."""
    return pod is None or pod.identity is None or outcome.attempts == pod.identity.attempt + 1


def waits_for(
    pod: RunPod | None,
    node_message: str,
    since: datetime,
    gate_deadline_seconds: float,
    attach_failure: str = "",
    window: StartWindow | None = None,
) -> WaitsFor | None:
    """Return the wait of a step; None = it runs, or nothing is known to keep it.

    Args:
        pod: pod of the step; None = there is none.
        node_message: message of the run's object about a step without a pod.
        since: time at which the step's node appeared in that object, for a step without a pod.
        gate_deadline_seconds: age at which our gate comes off a pod.
        attach_failure: reason why a volume could not be attached for the pod at some time; "" = it
            could.
        window: time within which the pod must run; None = any time.
    """
    if pod is None:
        quota = QUOTA_WORDS in node_message
        waiting = WaitsFor(WaitingFor.QUOTA, since, detail=node_message) if quota else None
    elif pod.bound_at is not None:
        waiting = _image(pod, pod.bound_at) or _attached(pod, pod.bound_at, attach_failure)
    else:
        waiting = _gates(pod, gate_deadline_seconds, window) or _scheduler(pod)
    return waiting if waiting is None or window is None else _within(window, waiting)


def _within(window: StartWindow, waiting: WaitsFor) -> WaitsFor:
    """Return the wait with its end by the window, and whose limit that is."""
    until = window.ends_at if waiting.until is None else min(waiting.until, window.ends_at)
    detail = "; ".join(filter(None, (waiting.detail, str(window.limit))))
    return replace(waiting, until=until, detail=detail)


def _image(pod: RunPod, bound_at: datetime) -> WaitsFor | None:
    if pod.running_at is not None or pod.pod.waiting_reason not in IMAGE_REASONS:
        return None
    return WaitsFor(WaitingFor.IMAGE, bound_at, detail=pod.pod.waiting_reason)


def _attached(pod: RunPod, bound_at: datetime, attach_failure: str) -> WaitsFor | None:
    """Return the wait for a volume, if any; the event about it outlasts the failure.

    Once the pod is prepared, its volumes are there.
    """
    if not attach_failure or pod.running_at is not None or pod.pod.prepared:
        return None
    return WaitsFor(WaitingFor.VOLUME, bound_at, detail=attach_failure)


def _gates(
    pod: RunPod, gate_deadline_seconds: float, window: StartWindow | None
) -> WaitsFor | None:
    gates = pod.pod.gates
    if PLAN_GATE in gates:
        until = pod.created_at + timedelta(seconds=gate_deadline_seconds)
        until = until if window is None else min(until, window.gate_ends_at)
        return WaitsFor(WaitingFor.PLAN, pod.created_at, until)
    if gates:
        # Gates of others, above all of Kueue, which holds pods until there is quota.
        return WaitsFor(WaitingFor.QUOTA, pod.created_at, detail=f"gate {gates[0]}")
    return None


def _scheduler(pod: RunPod) -> WaitsFor | None:
    if pod.pod.unscheduled is None:
        return None
    reason, message = pod.pod.unscheduled
    if reason != "Unschedulable":
        return None  # not looked at yet, or the scheduler's own error
    if pod.pod.unsatisfiable:
        return WaitsFor(WaitingFor.LIMIT, pod.created_at, detail=UNSATISFIABLE)
    lower = message.lower()
    volume = any(words in lower for words in VOLUME_WORDS)
    what = WaitingFor.VOLUME if volume else WaitingFor.NODE
    return WaitsFor(what, pod.created_at, detail=message)
