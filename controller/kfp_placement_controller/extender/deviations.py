"""Notes why a pod is not sent to its planned node, until the pod is bound.

An answer to `filter` is not a placement yet: the attempt may fail, or be one of several. So the
reason is noted with the answer, and reported when the pod is seen on another node.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kfp_placement_controller.extender.decisions import Decision, DecisionReason
from kfp_placement_controller.extender.knowledge import Knowledge
from kfp_placement_controller.observed.deviations import Deviation, why_left_out
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_kube.change import Change

MAX_NOTES = 10_000
"""Largest number of notes; the oldest are forgotten."""


class _Note(NamedTuple):
    planned: str
    reason: str
    why: str


@dataclass
class DeviationNotes:
    """Notes between the answer to a question and the pod's binding.

    Attributes:
        max_notes: largest number of notes.
    """

    max_notes: int = MAX_NOTES
    _notes: OrderedDict[str, _Note] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def decided(self, knowledge: Knowledge, pod: ObservedPod, decision: Decision) -> None:
        """Note why the answer for a pod is not its planned node, if so."""
        why, uid = _why_deviating(knowledge, pod, decision), pod.uid
        with self._lock:
            self._notes.pop(uid, None)
            if why and decision.planned is not None and uid:
                self._notes[uid] = _Note(decision.planned, decision.reason, why)
                if len(self._notes) > self.max_notes:
                    self._notes.popitem(last=False)

    def pod_changed(self, change: Change[ObservedPod]) -> Deviation | None:
        """Return the deviation to report, or None unless the pod is bound to an unplanned node."""
        pod = change.new if change.new is not None else change.old
        if pod is None or (change.new is not None and not pod.node_name):
            return None
        with self._lock:
            note = self._notes.pop(pod.uid, None)
        if note is None or change.new is None or pod.node_name == note.planned:
            return None
        return Deviation(pod, note.planned, note.reason, note.why)


def _why_deviating(knowledge: Knowledge, pod: ObservedPod, decision: Decision) -> str:
    """Say why the planned node is not the answer; "" where it is, or where nothing is planned."""
    planned, location = decision.planned, pod.location
    if planned is None:
        return ""
    match decision.reason:
        case DecisionReason.LIMIT | DecisionReason.REFUSED:
            return f"its round trip to {location} is over the step's limit"
        case DecisionReason.VOLUME:
            return f"the step's volume is in use on {', '.join(decision.nodes)}"
        case DecisionReason.LATENCY:
            return f"other nodes are nearer to {location} now"
        case DecisionReason.NEXT_BEST:
            return _why_not_offered(knowledge, pod, planned)
        case DecisionReason.PLAN | DecisionReason.NOTHING_KNOWN | DecisionReason.TAKEN:
            return ""


def _why_not_offered(knowledge: Knowledge, pod: ObservedPod, name: str) -> str:
    """Say why kube-scheduler left a node out, as far as we can see."""
    observed, used = knowledge.nodes.get(name), knowledge.used.get(name, {})
    node = None if observed is None else replace(observed.node, used=used)
    return why_left_out(pod.requests, node) or "it does not take the pod now"
