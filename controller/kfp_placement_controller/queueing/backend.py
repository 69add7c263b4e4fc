"""Interface between the coordinator of the queue and the backends, which admit runs.

A backend is given everything at every decision (`Situation`), and answers for all runs of its
RunQueues. That a run waits is the request for room; its demand says when it shrinks; that it has no
pods any more releases it; its end finishes it. So nothing that was said once can be lost, and a
process that begins to lead continues from any state. What a backend observes beside runs and queues
are objects of its own kinds.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from kfp_placement_controller.queueing.actions import BackendAction
from kfp_placement_controller.queueing.situation import Situation
from kfp_placement_controller.queueing.start_forecast import Simulation
from kfp_placement_controller.queueing.verdicts import Verdict
from kfp_placement_engine.contract.run_request import NodeGroups
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.units.resources import Resources
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import Kind

BY_KUEUE = "kueue"
"""Word in place of a uid, for a run that makes room since Kueue has evicted it."""

BY_REQUEST = "request"
"""Word in place of a uid, for a run that somebody has asked to stop: all others go first."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Decision that a run must make no new pods.

    Attributes:
        preempted_for: uid of the run that it makes room for, or `BY_KUEUE` or `BY_REQUEST`.
        note: explanation for people.
    """

    preempted_for: str
    note: str


@dataclass(frozen=True)
class Decisions:
    """Decisions of one backend, or of all of them.

    Attributes:
        verdicts: verdict on each waiting run: its place in the order, and the room that is missing.
        stops: runs that must stop, and why.
        used: demand of the admitted runs of each queue.
        nodes: groups of nodes that runs are limited to.
        problems: reason why each queue admits nobody, or "", for the queues of backends that may be
            missing from the cluster.
        assigning: queues whose backend assigns nodes: an admitted run that is not in `nodes` keeps
            the nodes that it has.
        simulations: simulations that forecast starts, one for all queues that share room.
        writes: actions that the backend's own writer carries out.
    """

    verdicts: Mapping[RunKey, Verdict] = field(default_factory=dict)
    stops: Mapping[RunKey, Stop] = field(default_factory=dict)
    used: Mapping[QueueKey, Resources] = field(default_factory=dict)
    nodes: Mapping[RunKey, NodeGroups] = field(default_factory=dict)
    problems: Mapping[QueueKey, str] = field(default_factory=dict)
    assigning: Collection[QueueKey] = frozenset()
    simulations: Sequence[Simulation] = ()
    writes: Sequence[BackendAction] = ()

    def together_with(self, other: "Decisions") -> "Decisions":
        """Return the decisions of two backends together; no run or queue belongs to both."""
        return Decisions(
            verdicts={**self.verdicts, **other.verdicts},
            stops={**self.stops, **other.stops},
            used={**self.used, **other.used},
            nodes={**self.nodes, **other.nodes},
            problems={**self.problems, **other.problems},
            assigning={*self.assigning, *other.assigning},
            simulations=(*self.simulations, *other.simulations),
            writes=(*self.writes, *other.writes),
        )


class Backend(Protocol):
    """Decides about the runs of the RunQueues that name it."""

    @property
    def kinds(self) -> Collection[Kind]:
        """Kinds of its own objects; all else that it needs is in the situation."""
        ...

    def observe(self, kind: Kind, change: Change[Any]) -> None:
        """Take in that one of its own objects is new, has changed or is gone."""
        ...

    def decide(self, situation: Situation, now: datetime) -> Decisions:
        """Decide which runs may start, which must stop, and what to write for that."""
        ...
