"""What a backend, which admits runs, answers at every decision.

It is given everything each time (`Situation`), and nothing in between. That a run waits is the
request for room; its demand says when it shrinks; that it has no pods any more releases it; its end
finishes it. What the backend answers is what is observed of all that. So nothing that was said once
can be lost, and a process that begins to lead continues from any state.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kfp_placement_controller.queueing.forecast import PlayedQueues
from kfp_placement_controller.queueing.kueue.actions import KueueAction
from kfp_placement_controller.queueing.verdicts import Verdict
from kfp_placement_engine.contract.run_request import NodeGroups
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.units.resources import Resources

BY_KUEUE = "kueue"
"""What a run makes room for that Kueue has evicted."""

BY_REQUEST = "request"
"""What a run makes room for that somebody has asked to stop: it lets all others go first."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a run must make no new pods.

    Attributes:
        preempted_for: the uid of the run that it makes room for, or a word.
        note: why, for people.
    """

    preempted_for: str
    note: str


@dataclass(frozen=True)
class Decisions:
    """What backends have decided.

    Attributes:
        verdicts: of the waiting runs.
        stops: runs that must stop.
        used: what admitted runs demand, by queue.
        nodes: that runs were assigned, of backends that assign some.
        problems: why queues can admit nobody, or "", of backends that can be missing.
        played: what starts are forecast from; queues that share room are together.
        writes: what a backend lets others write.
    """

    verdicts: Mapping[RunKey, Verdict] = field(default_factory=dict)
    stops: Mapping[RunKey, Stop] = field(default_factory=dict)
    used: Mapping[QueueKey, Resources] = field(default_factory=dict)
    nodes: Mapping[RunKey, NodeGroups] = field(default_factory=dict)
    problems: Mapping[QueueKey, str] = field(default_factory=dict)
    played: Sequence[PlayedQueues] = ()
    writes: Sequence[KueueAction] = ()

    def and_of(self, other: "Decisions") -> "Decisions":
        """Those of two backends; no run or queue is of both."""
        return Decisions(
            verdicts={**self.verdicts, **other.verdicts},
            stops={**self.stops, **other.stops},
            used={**self.used, **other.used},
            nodes={**self.nodes, **other.nodes},
            problems={**self.problems, **other.problems},
            played=(*self.played, *other.played),
            writes=(*self.writes, *other.writes),
        )
