"""Tells people that a pod is not where its plan wanted it, once it is bound and off the request.

What `filter` answers is not a placement yet: the attempt may fail, or be one of several. So the
reason is only noted there, and told when the pod is seen on another node.
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
"""Pods that are waited for; the oldest are forgotten."""


class _Note(NamedTuple):
    planned: str
    reason: str
    why: str


@dataclass
class DeviationNotes:
    """Notes between the answer to a question and the pod's binding.

    Attributes:
        max_notes: pods that are waited for.
    """

    max_notes: int = MAX_NOTES
    _notes: OrderedDict[str, _Note] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def decided(self, known: Knowledge, pod: ObservedPod, decision: Decision) -> None:
        """Note what was answered for a pod."""
        why, uid = _why_deviating(known, pod, decision), pod.uid
        with self._lock:
            self._notes.pop(uid, None)
            if why and decision.planned is not None and uid:
                self._notes[uid] = _Note(decision.planned, decision.reason, why)
                if len(self._notes) > self.max_notes:
                    self._notes.popitem(last=False)

    def pod_changed(self, change: Change[ObservedPod]) -> Deviation | None:
        """What to report if the pod has been bound to a node other than the planned one."""
        pod = change.new if change.new is not None else change.old
        if pod is None or (change.new is not None and not pod.node_name):
            return None
        with self._lock:
            note = self._notes.pop(pod.uid, None)
        if note is None or change.new is None or pod.node_name == note.planned:
            return None
        return Deviation(pod, note.planned, note.reason, note.why)


def _why_deviating(known: Knowledge, pod: ObservedPod, decision: Decision) -> str:
    """Why the planned node is not the answer; "" where it is, or where nothing is planned."""
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
            return _why_not_offered(known, pod, planned)
        case DecisionReason.PLAN | DecisionReason.NOTHING_KNOWN | DecisionReason.TAKEN:
            return ""


def _why_not_offered(known: Knowledge, pod: ObservedPod, name: str) -> str:
    """Why kube-scheduler left a node out, as far as we can see."""
    found, used = known.nodes.get(name), known.used.get(name, {})
    node = None if found is None else replace(found.node, used=used)
    return why_left_out(pod.requests, node) or "it does not take the pod now"
