"""Two schedulers and one room: ours lets the pods of others go first.

Both wait for the same thing, the end of a pod, and would take its room within milliseconds of each
other; the kubelet then fails one of the two pods for good. So where pods of another scheduler may
want the room that we are about to give away, the answer is held back until that scheduler has had
its turn, and is then given from what has happened to the room. A moment is enough, and it passes:
nobody is waited for twice, and room that nobody else wants is given at once. Pods that the kubelet
has failed all the same are counted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kfp_placement_controller.extender.knowledge import Knowledge, WaitingPod
from kfp_placement_controller.metrics import PODS_REJECTED
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_engine.units.resources import Resources, fits, minus, raise_to, with_pod
from kfp_placement_kube.change import Change

SETTLE_SECONDS = 0.15
"""In this time another scheduler has placed a pod that it can place, and we have seen it: on two
busy cores it takes up to 40 ms."""

MAX_PAUSE_SECONDS = 0.35
"""For one question in total; after half a second kube-scheduler no longer waits for our answer."""

PAUSE_SHARE, MAX_SAVED_SECONDS = 0.5, 2.0
"""Of all time that may be spent in pauses, and how much of it may be saved up: kube-scheduler asks
for one pod after the other, so whoever makes us pause keeps all our pods waiting."""

_NO_ROOM = "OutOf"
"""Start of the kubelet's reasons for lack of room: `OutOfcpu`, `OutOfmemory`, `OutOfpods`."""

for _scheduler in ("ours", "another"):
    # At 0 from the start: Prometheus sees no increase in a counter that is new.
    PODS_REJECTED.labels(_scheduler)


def settling_seconds(
    known: Knowledge, pod: ObservedPod, names: Sequence[str], now: float
) -> dict[str, float]:
    """Nodes whose room others may be about to take, and how long that may still last.

    Args:
        known: the state of the cluster.
        pod: to be placed.
        names: where it may go.
        now: in seconds of the memory's clock.
    """
    since = now - SETTLE_SECONDS
    ours = pod.scheduler_name
    # A name that anybody may write into a pod is not a scheduler yet.
    names_of_others = known.binders - {ours}
    others = [each for each in known.waiting.values() if each.scheduler_name in names_of_others]
    refused = [each for each in others if each.is_refused]
    new = [each for each in others if each.since > since]
    if not refused and not new:
        return {}
    largest = _largest(new)
    settling = {}
    for name in names:
        if name not in known.nodes:
            continue
        free = known.free(name, besides=pod.uid)
        left = minus(free, with_pod(pod.requests))
        is_full = not fits(largest, left)
        begun = [each.since for each in new if is_full and _takes(each, free, left)]
        freed_at = known.freed_at.get(name, since)
        if refused and not fits(pod.requests, free):
            # kube-scheduler knows of room that we have not seen to be free yet.
            begun.append(now)
        elif freed_at > since and _crowd(refused, free, left):
            begun.append(freed_at)
        if begun:
            settling[name] = max(begun) - since
    return settling


@dataclass
class PauseBudget:
    """How much may be paused still: at first, the most that can be saved up."""

    _saved_seconds: float = MAX_SAVED_SECONDS
    _at: float = 0.0

    def take(self, seconds: float, now: float) -> float:
        """This many seconds of pause, or as many as are left; 0 = no pause.

        Args:
            seconds: that are wanted.
            now: in seconds of any clock that began at 0.
        """
        earned = (now - self._at) * PAUSE_SHARE
        self._saved_seconds = min(MAX_SAVED_SECONDS, self._saved_seconds + earned)
        self._at = now
        taken = min(seconds, self._saved_seconds)
        self._saved_seconds -= taken
        return taken


def without_taken(
    known: Knowledge, pod: ObservedPod, names: Sequence[str], since: float
) -> tuple[str, ...]:
    """The nodes except for those whose room somebody has taken while the pod was being placed.

    Args:
        known: the state of the cluster.
        pod: to be placed.
        names: nodes that kube-scheduler offers, by what it had seen before.
        since: what was taken before is not judged: our count could be the wrong one.
    """
    uid, requests = pod.uid, pod.requests
    taken = {
        name
        for name, at in known.taken_at.items()
        if at > since and not fits(requests, known.free(name, besides=uid))
    }
    return tuple(name for name in names if name not in taken) if taken else tuple(names)


def count_rejection(change: Change[ObservedPod], scheduler_names: tuple[str, ...]) -> None:
    """Count a pod that the kubelet has just failed for lack of room.

    Args:
        change: change of any pod.
        scheduler_names: our own schedulers.
    """
    old, new = change.old, change.new
    if old is None or new is None or _is_rejected(old) or not _is_rejected(new):
        return
    scheduler = "ours" if new.scheduler_name in scheduler_names else "another"
    PODS_REJECTED.labels(scheduler).inc()


def _is_rejected(pod: ObservedPod) -> bool:
    return pod.failure is not None and pod.failure.reason.startswith(_NO_ROOM)


def _takes(other: WaitingPod, free: Resources, left: Resources) -> bool:
    """Whether a pod has room on a node now, but none beside ours."""
    return fits(other.requests, free) and not fits(other.requests, left)


def _crowd(others: Iterable[WaitingPod], free: Resources, left: Resources) -> bool:
    """Whether the same is true of any of these if all that have room now went there together.

    Their scheduler has found no room for any of them anywhere, so it tries all of them here.
    """
    for each in others:
        if _takes(each, free, left):
            return True
        if fits(each.requests, free):
            left = minus(left, with_pod(each.requests))
    return False


def _largest(pods: Iterable[WaitingPod]) -> Resources:
    """The largest amount of every resource that one of them takes: with this much left, all fit."""
    largest: dict[str, int] = {}
    for each in pods:
        raise_to(largest, each.requests)
    return largest
