"""What the extender knows at one moment: frozen, so that an answer sees one state of the cluster.

Nothing here takes locks or asks anybody; `memory` makes a new one for every change.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.sources.source import RunSources
from kfp_placement_engine.contract.keys import KUBERNETES_SCHEDULER
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.contract.resources import (
    PipelinePlacement,
    PlacementPolicy,
    read_resource,
)
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.keys import ClaimKey, RunKey
from kfp_placement_engine.units.resources import Resources, free_room, minus, with_pod

_DEFAULT_RULES = PlacementPolicySpec()


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """What a plan says of a step.

    Attributes:
        node: where it goes; None = nowhere.
        seconds: from its binding to its end there; 0 = not said.
        losses: other nodes -> seconds that the run would end later.
    """

    node: str | None
    seconds: float = 0.0
    losses: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KnownPlan:
    """The plan of one run.

    Attributes:
        run_uid: of its object; a new run of the same name is another.
        steps: by name.
    """

    run_uid: str
    steps: Mapping[str, PlannedStep]


class KnownNode(NamedTuple):
    """One node, and where it is.

    Attributes:
        node: without its images, and without what is taken on it.
        latencies_ms: place, lower case -> round trip.
    """

    node: Node
    latencies_ms: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """A pod that has no node yet, and no gate.

    Attributes:
        scheduler_name: the scheduler that places it.
        requests: what it takes.
        is_refused: its scheduler has found no room for it.
        since: when it was first seen to wait, in seconds of the memory's clock.
    """

    scheduler_name: str
    requests: Resources
    is_refused: bool
    since: float


@dataclass(frozen=True, slots=True)
class Grant:
    """Room that we have given away and that the pod is not seen in yet.

    Attributes:
        node: where.
        requests: what the pod takes.
        at: when, in seconds of the memory's clock.
    """

    node: str
    requests: Resources
    at: float


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Everything the extender knows.

    Attributes:
        sources: say which run and step a pod is of.
        policy: the policy `default`; None = there is none, and its defaults apply.
        plans: of all runs.
        nodes: by name.
        used: node -> what pods bound to it request.
        freed_at: node -> when a pod last left it, in seconds of the memory's clock.
        taken_at: node -> when a pod was last seen to be bound to it, by the same clock.
        waiting: pods that wait to be placed, by uid; not all where there are very many.
        granted: of these, by uid, those that we have just sent to a node.
        binders: schedulers that have been seen to give a pod a node, and Kubernetes' own.
        places: places, lower case, to which any node states a round trip.
        claim_nodes: claim -> nodes where pods that have not ended mount it.
        shared_claims: claims that several nodes may mount at a time.
        holding: namespaces in which new runs wait for their queue.
    """

    sources: RunSources
    policy: PlacementPolicy | None = None
    plans: Mapping[RunKey, KnownPlan] = field(default_factory=dict)
    nodes: Mapping[str, KnownNode] = field(default_factory=dict)
    used: Mapping[str, Resources] = field(default_factory=dict)
    freed_at: Mapping[str, float] = field(default_factory=dict)
    taken_at: Mapping[str, float] = field(default_factory=dict)
    waiting: Mapping[str, WaitingPod] = field(default_factory=dict)
    granted: Mapping[str, Grant] = field(default_factory=dict)
    binders: frozenset[str] = frozenset({KUBERNETES_SCHEDULER})
    places: frozenset[str] = frozenset()
    claim_nodes: Mapping[ClaimKey, tuple[str, ...]] = field(default_factory=dict)
    shared_claims: frozenset[ClaimKey] = frozenset()
    holding: frozenset[str] = frozenset()

    @property
    def rules(self) -> PlacementPolicySpec:
        """What admins decide, or the defaults."""
        return _DEFAULT_RULES if self.policy is None else self.policy.spec

    def free(self, name: str, besides: str = "") -> Resources:
        """What a node has left, as far as we see; nothing if it is not known.

        Args:
            name: of the node.
            besides: uid of a pod whose own grant takes nothing.
        """
        known = self.nodes.get(name)
        if known is None:
            return {}
        free = free_room(known.node.allocatable, self.used.get(name, {}))
        for uid, grant in self.granted.items():
            if grant.node == name and uid != besides:
                free = minus(free, with_pod(grant.requests))
        return free

    def planned_step(self, pod: ObservedPod) -> PlannedStep | None:
        """What is planned for a pod; None = nothing."""
        run = self.sources.run_of(pod)
        plan = None if run is None else self.plans.get(run.key)
        if run is None or plan is None or run.uid not in ("", plan.run_uid):
            return None
        name = self.sources.step_of(pod, plan.steps)
        return None if name is None else plan.steps[name]


def read_plan(raw: Mapping[str, Any]) -> KnownPlan:
    """Keep what matters of a PipelinePlacement; unreadable rows are left out.

    Raises:
        InputError: it is malformed.
    """
    placement = read_resource(PipelinePlacement, raw)
    spec = placement.spec
    steps = {}
    for row in placement.planned_rows().rows:
        if row is None:
            continue
        start, finish = row.start_seconds or 0.0, row.finish_seconds or 0.0
        steps[row.name] = PlannedStep(
            node=placement.node_name(row.node),
            seconds=max(0.0, finish - start),
            losses={spec.nodes[each.node]: each.loss_seconds for each in row.alternatives},
        )
    return KnownPlan(spec.workflow_uid, steps)
