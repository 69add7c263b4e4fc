"""A pod's life on its node: which status it has at which time."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from tests.controlplane.times import write_time

Json = dict[str, Any]

PULLING, RUNNING, ENDED = "pulling", "running", "ended"


_KILLED = 137
"""Exit code of a container that the kernel kills: for memory, unless its pod says otherwise."""


@dataclass(frozen=True)
class Ending:
    """End of a pod.

    Attributes:
        exit_code: exit code of its main container.
        reason: reason in the pod's status, such as `DeadlineExceeded`, else "".
        message: message in the pod's status, or "".
    """

    exit_code: int = 0
    reason: str = ""
    message: str = ""

    @property
    def succeeds(self) -> bool:
        """Return whether the pod ends well."""
        return self.exit_code == 0 and not self.reason


@dataclass(frozen=True)
class Timeline:
    """One pod's life.

    Attributes:
        admitted: time at which its node took it.
        starts: time at which its main container starts.
        ends: time at which it ends.
        ending: way in which it ends.
    """

    admitted: datetime
    starts: datetime
    ends: datetime
    ending: Ending = Ending()

    def stage(self, now: datetime) -> str:
        """Return what the pod does at a time."""
        if now >= self.ends:
            return ENDED
        return RUNNING if now >= self.starts else PULLING

    def next_change(self, now: datetime) -> datetime | None:
        """Return when the pod does something else; None = never."""
        return next((moment for moment in (self.starts, self.ends) if moment > now), None)

    def cut(self, now: datetime, ending: Ending) -> "Timeline":
        """The life that ends now, in another way."""
        return replace(self, ends=now, starts=min(self.starts, now), ending=ending)

    def limited(self, seconds: float | None) -> "Timeline":
        """The life that a pod's own deadline ends."""
        if seconds is None or self.ends <= self.admitted + timedelta(seconds=seconds):
            return self
        message = "Pod was active on the node longer than the specified deadline"
        end = self.admitted + timedelta(seconds=seconds)
        return self.cut(end, Ending(137, "DeadlineExceeded", message))


def status_at(pod: Mapping[str, Any], line: Timeline, now: datetime) -> Json:
    """The pod's status at a time."""
    stage = line.stage(now)
    phase = {PULLING: "Pending", RUNNING: "Running"}.get(stage)
    if phase is None:
        phase = "Succeeded" if line.ending.succeeds else "Failed"
    status: Json = {
        "phase": phase,
        "startTime": write_time(line.admitted),
        "conditions": _conditions(stage, line),
        "initContainerStatuses": [
            _container(entry, _init_state(stage, line))
            for entry in pod["spec"].get("initContainers") or []
        ],
        "containerStatuses": [
            _container(entry, _state(entry["name"], stage, line))
            for entry in pod["spec"]["containers"]
        ],
    }
    if stage == ENDED and line.ending.reason:
        status |= {"reason": line.ending.reason, "message": line.ending.message}
    return status


def _conditions(stage: str, line: Timeline) -> list[Json]:
    ready = "True" if stage == RUNNING else "False"
    pairs = (
        ("PodScheduled", "True"),
        ("Initialized", "False" if stage == PULLING else "True"),
        ("ContainersReady", ready),
        ("Ready", ready),
    )
    time = write_time(line.admitted)
    return [{"type": name, "status": flag, "lastTransitionTime": time} for name, flag in pairs]


def _container(container: Mapping[str, Any], state: Json) -> Json:
    image = container.get("image", "")
    return {
        "name": container["name"],
        "image": image,
        "imageID": f"sim://{image}" if image else "",
        "ready": "running" in state,
        "started": "running" in state,
        "restartCount": 0,
        "state": state,
    }


def _init_state(stage: str, line: Timeline) -> Json:
    if stage == PULLING:
        return {"waiting": {"reason": "PodInitializing"}}
    return _ended(0, line.admitted, line.starts)


def _state(name: str, stage: str, line: Timeline) -> Json:
    if stage == PULLING:
        return {"waiting": {"reason": "PodInitializing"}}
    if stage == RUNNING:
        return {"running": {"startedAt": write_time(line.starts)}}
    code = line.ending.exit_code if name == "main" else 0
    # A pod that its node ends has its own reason, and its containers are killed for no other.
    reason = "OOMKilled" if code == _KILLED and not line.ending.reason else "Error"
    return _ended(code, line.starts, line.ends, reason)


def _ended(code: int, start: datetime, end: datetime, reason: str = "Error") -> Json:
    reason = "Completed" if code == 0 else reason
    times = {"startedAt": write_time(start), "finishedAt": write_time(end)}
    return {"terminated": {"exitCode": code, "reason": reason, **times}}
