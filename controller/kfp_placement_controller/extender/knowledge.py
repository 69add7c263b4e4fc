"""Knowledge of the cluster at one moment: frozen, so that an answer sees a single state.

`knowledge_store` makes a new one for every change. Reading it takes no lock and calls nobody.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.observed.run_queues import HoldRule
from kfp_placement_controller.sources.source import RunSources
from kfp_placement_engine.contract.custom_resources import (
    PipelinePlacement,
    PlacementPolicy,
    read_resource,
)
from kfp_placement_engine.contract.keys import KUBERNETES_SCHEDULER
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.keys import ClaimKey, RunKey
from kfp_placement_engine.units.resources import Resources, free_room, minus, with_pod
from kfp_placement_kube.kinds import JsonObject

_DEFAULT_RULES = PlacementPolicySpec()


@dataclass(frozen=True, slots=True)
class StepTarget:
    """The node to which a plan sends a step, and the price of others.

    Attributes:
        node: planned node; None = the plan has none for the step.
        seconds: time from the binding to the end on that node; 0 = unknown.
        losses: seconds that the run would end later, by other node.
    """

    node: str | None = None
    seconds: float = 0.0
    losses: Mapping[str, float] = field(default_factory=dict)


_NO_TARGET = StepTarget()


@dataclass(frozen=True, slots=True)
class KnownPlan:
    """The plan of one run.

    Attributes:
        run_uid: uid of the run's object; a new run of the same name has another.
        steps: targets of the steps, by the step's name.
    """

    run_uid: str
    steps: Mapping[str, StepTarget]


_EMPTY_PLAN = KnownPlan("", {})


class KnownNode(NamedTuple):
    """A node and its round trips to places.

    Attributes:
        node: the node, without its images and what its pods use.
        latencies_ms: round trips by place, in lower case.
    """

    node: Node
    latencies_ms: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """A pod that has no node yet, and no gate.

    Attributes:
        scheduler_name: the scheduler that places it.
        requests: resources that the pod requests.
        is_refused: whether its scheduler has found no room for it.
        since: first time it was seen to wait, by the clock of the `KnowledgeStore`.
    """

    scheduler_name: str
    requests: Resources
    is_refused: bool
    since: float


@dataclass(frozen=True, slots=True)
class Grant:
    """Room that we have given to a pod which is not seen on the node yet.

    Attributes:
        node: the node.
        requests: resources that the pod requests.
        at: time by the clock of the `KnowledgeStore`.
    """

    node: str
    requests: Resources
    at: float


@dataclass(frozen=True, slots=True)
class Knowledge:
    """State of the cluster, as the extender knows it at one moment.

    Attributes:
        sources: sources of runs, which tell the run and step of a pod.
        policy: the policy `default`; None = there is no policy, and its defaults apply.
        plans: plans of all runs.
        nodes: nodes by name.
        used: requests of the pods bound to a node, by node.
        freed_at: time at which a pod last left a node, by node; by the clock of the store.
        taken_at: time at which a pod was last seen to be bound to a node, by node.
        waiting: pods that wait for a node, by uid; not all of them where there are very many.
        granted: room of waiting pods that we have just sent to a node, by uid.
        binders: schedulers that were seen to give a pod a node, and Kubernetes' own.
        places: places to which any node states a round trip, in lower case.
        claim_nodes: nodes where running pods mount a claim, by claim.
        shared_claims: claims that several nodes may mount at a time.
        holding: rules of the namespaces in which new runs wait for their queue.
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
    holding: Mapping[str, HoldRule] = field(default_factory=dict)

    @property
    def rules(self) -> PlacementPolicySpec:
        """The policy's rules, or the defaults without a policy."""
        return _DEFAULT_RULES if self.policy is None else self.policy.spec

    def free(self, name: str, besides: str = "") -> Resources:
        """Return the room that a node has left, as far as we see; empty for an unknown node.

        Args:
            name: name of the node.
            besides: uid of a pod whose own grant takes nothing.
        """
        knowledge = self.nodes.get(name)
        if knowledge is None:
            return {}
        free = free_room(knowledge.node.allocatable, self.used.get(name, {}))
        for uid, grant in self.granted.items():
            if grant.node == name and uid != besides:
                free = minus(free, with_pod(grant.requests))
        return free

    def plan_of(self, pod: ObservedPod) -> KnownPlan | None:
        """Return the plan of a pod's run, empty where the pod is of no run; None = not there."""
        run = self.sources.run_of(pod)
        if run is None:
            return _EMPTY_PLAN
        plan = self.plans.get(run.key)
        return None if plan is None or run.uid != plan.run_uid else plan

    def target_of(self, pod: ObservedPod) -> StepTarget:
        """Return the target that the plan gives to a pod's step; without a plan it has no node."""
        plan = self.plan_of(pod) or _EMPTY_PLAN
        name = self.sources.step_of(pod, plan.steps)
        return _NO_TARGET if name is None else plan.steps[name]


def read_plan(raw: JsonObject) -> KnownPlan:
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
        steps[row.name] = StepTarget(
            node=placement.node_name(row.node),
            seconds=max(0.0, finish - start),
            losses={spec.nodes[each.node]: each.loss_seconds for each in row.alternatives},
        )
    return KnownPlan(spec.workflow_uid, steps)
