"""Which gated pods may go on now, and to which node.

On every node starts follow the plan's order: a pod waits for room on its node, and leaves alone
what those before it will need. Nothing waits beyond its deadline, whatever the plan says; a pod
that no plan knows does not wait at all.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kfp_placement_controller.kube.gates import is_overdue
from kfp_placement_controller.kube.pods import ObservedPod
from kfp_placement_engine.cluster import Node
from kfp_placement_engine.contract.keys import PLAN_GATE
from kfp_placement_engine.contract.quantities import Resources


@dataclass(frozen=True)
class Turn:
    """A step in the plan's order on its node.

    Attributes:
        run, step: names.
        node: where it is planned.
        start_seconds: planned start, in seconds since one moment for all runs.
        requests: of its pod.
    """

    run: tuple[str, str]
    step: str
    node: str
    start_seconds: float
    requests: Resources


@dataclass(frozen=True)
class GatedPod:
    """A pod that bears our gate.

    Attributes:
        pod: as observed.
        run: of which run.
        step: its step, or "" where no plan knows it.
    """

    pod: ObservedPod
    run: tuple[str, str]
    step: str = ""


@dataclass(frozen=True)
class Release:
    """A gate to take off.

    Attributes:
        pod: whose.
        node: where it is to go; "" = anywhere.
        required: nowhere else.
        overdue: its deadline has passed.
    """

    pod: ObservedPod
    node: str = ""
    required: bool = False
    overdue: bool = False


def releases(
    gated: Iterable[GatedPod],
    turns: Sequence[Turn],
    nodes: Mapping[str, Node],
    now: datetime,
    deadline_seconds: float,
    hard: frozenset[tuple[tuple[str, str], str]] = frozenset(),
) -> list[Release]:
    """The gates that come off now, in the plan's order.

    Args:
        gated: pods with our gate.
        turns: steps of planned runs that have a node and are not bound yet, whether or not they
            have a pod.
        nodes: with the room that bound pods take now, by name.
        now: the time.
        deadline_seconds: since a pod's creation; then it goes on, wherever it likes.
        hard: (run, step) of steps under a hard latency limit: they go nowhere else.
    """
    found: list[Release] = []
    waiting: dict[tuple[tuple[str, str], str], ObservedPod] = {}
    for each in gated:
        if PLAN_GATE not in each.pod.gates or each.pod.deleting:
            continue
        if is_overdue(each.pod, now, deadline_seconds):
            found.append(Release(each.pod, overdue=True))
        elif not each.step:
            found.append(Release(each.pod))
        else:
            waiting[each.run, each.step] = each.pod
    by_node: dict[str, list[Turn]] = {}
    planned = set()
    for turn in sorted(turns, key=lambda turn: (turn.start_seconds, turn.run, turn.step)):
        by_node.setdefault(turn.node, []).append(turn)
        planned.add((turn.run, turn.step))
    for key, pod in waiting.items():
        if key not in planned:
            found.append(Release(pod))
    for name, queue in by_node.items():
        found += _on_node(nodes.get(name), queue, waiting, hard)
    return found


def _on_node(
    node: Node | None,
    queue: Sequence[Turn],
    waiting: Mapping[tuple[tuple[str, str], str], ObservedPod],
    hard: frozenset[tuple[tuple[str, str], str]],
) -> list[Release]:
    """In the plan's order; what is before a pod has its room kept, so that none overtakes it."""
    if node is None:
        # It is gone: nothing is won by waiting for it.
        lost = [waiting[turn.run, turn.step] for turn in queue if (turn.run, turn.step) in waiting]
        return [Release(pod) for pod in lost]
    free = {name: amount - node.used.get(name, 0) for name, amount in node.allocatable.items()}
    found: list[Release] = []
    for turn in queue:
        key = (turn.run, turn.step)
        pod = waiting.get(key)
        if pod is not None and _fits(pod.requests, free):
            found.append(Release(pod, node.name, required=key in hard))
        _take(turn.requests if pod is None else pod.requests, free)
    return found


def _fits(requests: Resources, free: Mapping[str, int]) -> bool:
    return free.get("pods", 0) >= 1 and all(
        amount <= free.get(name, 0) for name, amount in requests.items() if amount
    )


def _take(requests: Resources, free: dict[str, int]) -> None:
    for name, amount in {**requests, "pods": 1}.items():
        free[name] = free.get(name, 0) - amount
