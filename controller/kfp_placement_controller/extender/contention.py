"""Rules that let pods of other schedulers take contested room before ours.

Their pods and ours wait for the same thing, the end of a pod, and would take its room within
milliseconds of each other; the kubelet then fails one of the two pods for good. So where pods of
another scheduler may want the room that we are about to give away, the answer is held back until
that scheduler has had its turn, and is then given from what has happened to the room. A moment is
enough, and it passes: nobody is waited for twice, and room that nobody else wants is given at once.
Pods that the kubelet fails in spite of that are counted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kfp_placement_controller.extender.knowledge import Knowledge, WaitingPod
from kfp_placement_controller.metrics import PODS_REJECTED
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_engine.units.resources import Resources, fits, minus, raise_to, with_pod
from kfp_placement_kube.change import Change

SETTLE_SECONDS = 0.15
"""Time in which another scheduler places a pod that it can place, and we see it.

On two busy cores it takes up to 40 ms.
"""

MAX_PAUSE_SECONDS = 0.35
"""Longest pause for one question; kube-scheduler waits half a second for our answer."""

PAUSE_SHARE, MAX_SAVED_SECONDS = 0.5, 2.0
"""Share of all time that may be spent in pauses, and the most of it that may be saved up.

kube-scheduler asks for one pod after the other: whoever makes us pause keeps all our pods waiting.
"""

_NO_ROOM = "OutOf"
"""Start of the kubelet's reasons for lack of room: `OutOfcpu`, `OutOfmemory`, `OutOfpods`."""

# Here and not beside the metric: processes that count no rejected pods show none.
for _scheduler in ("ours", "another"):
    # At 0 from the start: Prometheus sees no increase in a counter that is new.
    PODS_REJECTED.labels(_scheduler)


def settling_seconds(
    knowledge: Knowledge, pod: ObservedPod, names: Sequence[str], monotonic_seconds: float
) -> dict[str, float]:
    """Return the seconds to wait for each node whose room another scheduler may be about to take.

    Args:
        knowledge: state of the cluster, as far as it is known.
        pod: the pod to place.
        names: nodes to which the pod may go.
        monotonic_seconds: the present moment, by the clock of the `KnowledgeStore`.
    """
    since = monotonic_seconds - SETTLE_SECONDS
    others = _of_others(knowledge, pod)
    refused = [each for each in others if each.is_refused]
    new = [each for each in others if each.since > since]
    if not refused and not new:
        return {}
    largest = _largest(new)
    settling = {}
    for name in names:
        if name not in knowledge.nodes:
            continue
        free = knowledge.free(name, besides=pod.uid)
        left = minus(free, with_pod(pod.requests))
        begun: list[float] = []
        if not fits(largest, left):
            begun += [each.since for each in new if _takes(each, free, left)]
        freed_at = knowledge.freed_at.get(name, since)
        if refused and not fits(pod.requests, free):
            # kube-scheduler knows of room that we have not seen to be free yet.
            begun.append(monotonic_seconds)
        elif freed_at > since and _crowd(refused, free, left):
            begun.append(freed_at)
        if begun:
            settling[name] = max(begun) - since
    return settling


@dataclass
class PauseBudget:
    """Pauses that are left; at first as much as can be saved up."""

    _saved_seconds: float = MAX_SAVED_SECONDS
    _taken_at: float = 0.0

    def take(self, seconds: float, monotonic_seconds: float) -> float:
        """Take a pause from the budget and return it: the wanted one, or the little that is left.

        Args:
            seconds: wanted pause.
            monotonic_seconds: the present moment.
        """
        earned = (monotonic_seconds - self._taken_at) * PAUSE_SHARE
        self._saved_seconds = min(MAX_SAVED_SECONDS, self._saved_seconds + earned)
        self._taken_at = monotonic_seconds
        taken = min(seconds, self._saved_seconds)
        self._saved_seconds -= taken
        return taken


def without_taken(
    knowledge: Knowledge, pod: ObservedPod, names: Sequence[str], since: float
) -> tuple[str, ...]:
    """Return the nodes except for those whose room was taken while the pod was being placed.

    Args:
        knowledge: state of the cluster, as far as it is known.
        pod: the pod to place.
        names: nodes that kube-scheduler offers, by what it had seen before that.
        since: time by the clock of the `KnowledgeStore`. Room that was taken earlier does not
            count: kube-scheduler knew of that, and our own count may be wrong.
    """
    uid, requests = pod.uid, pod.requests
    taken = {
        name
        for name, at in knowledge.taken_at.items()
        if at > since and not fits(requests, knowledge.free(name, besides=uid))
    }
    return tuple(name for name in names if name not in taken) if taken else tuple(names)


def count_rejection(change: Change[ObservedPod], scheduler_names: tuple[str, ...]) -> None:
    """Count a pod that the kubelet has just failed for lack of room.

    Args:
        change: change of any pod.
        scheduler_names: names of our own schedulers.
    """
    old, new = change.old, change.new
    if old is None or new is None or _is_rejected(old) or not _is_rejected(new):
        return
    scheduler = "ours" if new.scheduler_name in scheduler_names else "another"
    PODS_REJECTED.labels(scheduler).inc()


def _is_rejected(pod: ObservedPod) -> bool:
    return pod.failure is not None and pod.failure.reason.startswith(_NO_ROOM)


def _of_others(knowledge: Knowledge, pod: ObservedPod) -> list[WaitingPod]:
    """Return the waiting pods that a scheduler other than the pod's own places."""
    # A name that anybody may write into a pod is not a scheduler yet.
    schedulers = knowledge.binders - {pod.scheduler_name}
    return [each for each in knowledge.waiting.values() if each.scheduler_name in schedulers]


def _takes(other: WaitingPod, free: Resources, left: Resources) -> bool:
    """Return whether another pod has room on a node now, but not beside ours."""
    return fits(other.requests, free) and not fits(other.requests, left)


def _crowd(others: Iterable[WaitingPod], free: Resources, left: Resources) -> bool:
    """Return whether the pods that fit a node now, all on it together, leave ours no room.

    Their scheduler has found no room for any of them anywhere, so it tries all of them here.
    """
    for each in others:
        if _takes(each, free, left):
            return True
        if fits(each.requests, free):
            left = minus(left, with_pod(each.requests))
    return False


def _largest(pods: Iterable[WaitingPod]) -> Resources:
    """Return the largest request of every resource: where this much is left, each pod fits."""
    largest: dict[str, int] = {}
    for each in pods:
        raise_to(largest, each.requests)
    return largest
