"""The pods of one run, by what they are for, with the times at which things happened to them.

The API server knows whole seconds; the moment at which a watch delivers a change is later than the
change but finer. Where both are close the latter counts, else (after a restart) the former.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.sources.source import StepIndex
from kfp_placement_engine.readers.tree.run_outcomes import PodIdentity, PodRole

_RESOLUTION = timedelta(seconds=1)
_DELIVERY = timedelta(seconds=1)
"""A watch on a busy machine delivers within this."""

ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class RunPod:
    """A pod of a run.

    Attributes:
        pod: as last observed.
        identity: what it is for; None = no pod of the graph.
        created_at, bound_at, running_at, ended_at: as exactly as they are known; None = not yet.
    """

    pod: ObservedPod
    identity: PodIdentity | None
    created_at: datetime
    bound_at: datetime | None = None
    running_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def ended(self) -> bool:
        """Whether its containers have ended for good."""
        return self.pod.phase in ENDED


def moment(stated: datetime | None, seen: datetime) -> datetime:
    """When something happened.

    Args:
        stated: by the API, cut to whole seconds; None = it does not say.
        seen: when we heard of it.
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
        index: finds what a pod is for; None until the run's graph has been read.
    """

    index: StepIndex | None = None
    _pods: dict[str, RunPod] = field(default_factory=dict)
    _executors: dict[str, dict[str, RunPod]] = field(default_factory=dict)
    _drivers: dict[tuple[bool, str], dict[str, RunPod]] = field(default_factory=dict)

    def use_index(self, index: StepIndex) -> None:
        """Sort all pods again by another graph."""
        self.index = index
        self._executors, self._drivers = {}, {}
        for uid, known in list(self._pods.items()):
            identity = index.of_pod(known.pod)
            self._pods[uid] = replace(known, identity=identity)
            self._file(self._pods[uid])

    def observe(self, pod: ObservedPod, now: datetime) -> None:
        """A pod is new or has changed."""
        known = self._pods.get(pod.uid)
        if known is None:
            identity = self.index.of_pod(pod) if self.index else None
            known = RunPod(pod, identity, moment(pod.created_at, now))
        self._pods[pod.uid] = _advanced(known, pod, now)
        self._file(self._pods[pod.uid])

    def forget(self, pod: ObservedPod) -> None:
        """A pod is gone; if it had ended, what is known of it is kept."""
        known = self._pods.get(pod.uid)
        if known is None or known.ended:
            return
        del self._pods[pod.uid]
        for shelf in self._shelves(known.identity):
            shelf.pop(pod.uid, None)

    def executor(self, step: str) -> RunPod | None:
        """The pod of the step's last attempt."""
        return _last(self._executors.get(step))

    def driver(self, name: str, *, group: bool) -> RunPod | None:
        """The last driver pod of a step or group."""
        return _last(self._drivers.get((group, name)))

    def executors(self, step: str) -> Collection[RunPod]:
        """The pods of all its attempts, as far as we have seen them."""
        return self._executors.get(step, {}).values()

    def has_begun(self) -> bool:
        """Whether any attempt at any step has got a node, even if it has ended since."""
        attempts = (pod for pods in self._executors.values() for pod in pods.values())
        return any(pod.bound_at is not None for pod in attempts)

    def __iter__(self) -> Iterator[RunPod]:
        return iter(self._pods.values())

    def _file(self, pod: RunPod) -> None:
        for shelf in self._shelves(pod.identity):
            shelf[pod.pod.uid] = pod

    def _shelves(self, identity: PodIdentity | None) -> list[dict[str, RunPod]]:
        if identity is None:
            return []
        if identity.role is not PodRole.DRIVER:
            return [self._executors.setdefault(identity.name, {})]
        return [self._drivers.setdefault((identity.is_group, identity.name), {})]


def _last(pods: dict[str, RunPod] | None) -> RunPod | None:
    return max(pods.values(), key=_order) if pods else None


def _order(pod: RunPod) -> tuple[int, datetime, str]:
    attempt = pod.identity.attempt if pod.identity else 0
    return attempt, pod.created_at, pod.pod.uid


def _advanced(known: RunPod, pod: ObservedPod, now: datetime) -> RunPod:
    """What a new observation adds; a moment once known stays."""
    bound_at, running_at, ended_at = known.bound_at, known.running_at, known.ended_at
    if bound_at is None and pod.node_name:
        bound_at = max(known.created_at, moment(pod.started_at, now))
    if running_at is None and pod.running_at is not None:
        running_at = max(bound_at or known.created_at, moment(pod.running_at, now))
    if ended_at is None and pod.phase in ENDED:
        begun_at = running_at or bound_at or known.created_at
        ended_at = max(begun_at, moment(pod.finished_at, now))
    return replace(known, pod=pod, bound_at=bound_at, running_at=running_at, ended_at=ended_at)
