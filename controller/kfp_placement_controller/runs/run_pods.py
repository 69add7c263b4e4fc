"""The pods of one run, by step and group, with the times at which things happened to them.

The API server states whole seconds; the moment at which a watch delivers a change is later than the
change, but finer. Where both are close that moment counts, else (after a restart) what is stated.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.sources.source import StepIndex
from kfp_placement_engine.readers.tree.run_outcomes import PodIdentity, PodRole

_RESOLUTION = timedelta(seconds=1)
_DELIVERY = timedelta(seconds=1)
"""Longest time that a watch on a busy machine needs to deliver a change."""

_KEPT_ATTEMPTS = 2
"""Pods of one purpose whose times are kept once they have ended and been deleted."""

_Purpose = tuple[bool, bool, str]
"""Purpose of a pod: whether it drives, whether a group, and the name of its step or group."""


@dataclass(frozen=True, slots=True)
class RunPod:
    """A pod of a run.

    Attributes:
        pod: the pod as last observed.
        identity: step or group that the pod is for; None = none of the graph.
        created_at, bound_at, running_at, ended_at: times as exactly as they are known; None = it
            has not happened yet.
        is_gone: whether somebody has deleted it after its end.
    """

    pod: ObservedPod
    identity: PodIdentity | None
    created_at: datetime
    bound_at: datetime | None = None
    running_at: datetime | None = None
    ended_at: datetime | None = None
    is_gone: bool = False

    @property
    def ended(self) -> bool:
        """True if its containers have ended for good."""
        return self.pod.ended


def moment(stated: datetime | None, seen: datetime) -> datetime:
    """Return when something happened.

    Args:
        stated: time that the API states, cut to whole seconds; None = it states none.
        seen: time at which a watch delivered it.
    """
    if stated is None:
        return seen
    if stated <= seen <= stated + _RESOLUTION + _DELIVERY:
        return min(seen, stated + _RESOLUTION)
    return stated


@dataclass
class RunPods:
    """The pods of one run.

    Attributes:
        index: index that finds the step of a pod; None = the run's graph has not been read.
    """

    index: StepIndex | None = None
    _pods: dict[str, RunPod] = field(default_factory=dict)
    _of: dict[_Purpose, dict[str, RunPod]] = field(default_factory=dict)
    """Pods of each purpose, by uid."""

    def use_index(self, index: StepIndex) -> None:
        """Sort all pods again by another graph."""
        self.index = index
        self._of = {}
        for uid, run_pod in list(self._pods.items()):
            identity = index.of_pod(run_pod.pod)
            if identity is None and run_pod.is_gone:
                del self._pods[uid]
                continue
            self._pods[uid] = replace(run_pod, identity=identity)
            self._file(self._pods[uid])

    def observe(self, pod: ObservedPod, now: datetime) -> None:
        """Take in that a pod is new or has changed."""
        run_pod = self._pods.get(pod.uid)
        if run_pod is None:
            identity = self.index.of_pod(pod) if self.index else None
            run_pod = RunPod(pod, identity, moment(pod.created_at, now))
        self._pods[pod.uid] = _advanced(run_pod, pod, now)
        self._file(self._pods[pod.uid])

    def forget(self, pod: ObservedPod) -> None:
        """Forget a pod that is gone; of those that had ended, the last attempts at a step stay."""
        run_pod = self._pods.get(pod.uid)
        if run_pod is None:
            return
        if run_pod.identity is None or not run_pod.ended:
            self._remove(run_pod)
            return
        self._pods[pod.uid] = gone = replace(run_pod, pod=_as_gone(run_pod.pod), is_gone=True)
        self._file(gone)
        attempts = self._of[_purpose(run_pod.identity)].values()
        ended = sorted((each for each in attempts if each.is_gone), key=_order)
        for each in ended[:-_KEPT_ATTEMPTS]:
            self._remove(each)

    def executor(self, step: str) -> RunPod | None:
        """Return the pod of the last attempt at a step; None = there is none."""
        return self._last((False, False, step))

    def driver(self, step: str) -> RunPod | None:
        """Return the last driver pod of a step; None = there is none."""
        return self._last((True, False, step))

    def group_driver(self, group: str) -> RunPod | None:
        """Return the last driver pod of a group; None = there is none."""
        return self._last((True, True, group))

    def executors(self, step: str) -> Collection[RunPod]:
        """Return the pods of all attempts at a step, as far as they were seen."""
        return self._of.get((False, False, step), {}).values()

    def has_begun(self) -> bool:
        """Return whether any attempt at any step has got a node, even if it has ended since."""
        return any(
            pod.bound_at is not None and pod.identity and pod.identity.role is not PodRole.DRIVER
            for pod in self._pods.values()
        )

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[RunPod]:
        return iter(self._pods.values())

    def _file(self, pod: RunPod) -> None:
        if pod.identity is not None:
            self._of.setdefault(_purpose(pod.identity), {})[pod.pod.uid] = pod

    def _remove(self, pod: RunPod) -> None:
        del self._pods[pod.pod.uid]
        if pod.identity is not None:
            self._of[_purpose(pod.identity)].pop(pod.pod.uid, None)

    def _last(self, purpose: _Purpose) -> RunPod | None:
        return max(self._of.get(purpose, {}).values(), key=_order, default=None)


def _purpose(identity: PodIdentity) -> _Purpose:
    drives = identity.role is PodRole.DRIVER
    return drives, drives and identity.is_group, identity.name


def _as_gone(pod: ObservedPod) -> ObservedPod:
    """Return a pod that has ended, without what counts only while it waits or runs."""
    return replace(pod, gates=(), claims=(), unscheduled=None, waiting_reason="")


def _order(pod: RunPod) -> tuple[int, datetime, str]:
    attempt = pod.identity.attempt if pod.identity else 0
    return attempt, pod.created_at, pod.pod.uid


def _advanced(before: RunPod, pod: ObservedPod, now: datetime) -> RunPod:
    """Return a pod with what a new observation adds; a time once known stays."""
    bound_at, running_at, ended_at = before.bound_at, before.running_at, before.ended_at
    if bound_at is None and pod.node_name:
        bound_at = max(before.created_at, moment(pod.started_at, now))
    if running_at is None and pod.running_at is not None:
        running_at = max(bound_at or before.created_at, moment(pod.running_at, now))
    if ended_at is None and pod.ended:
        begun_at = running_at or bound_at or before.created_at
        ended_at = max(begun_at, moment(pod.finished_at, now))
    return replace(before, pod=pod, bound_at=bound_at, running_at=running_at, ended_at=ended_at)
