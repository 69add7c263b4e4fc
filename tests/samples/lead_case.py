"""The lead case, sample 04, as the engine simulates it: what it states is computed here."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kfp_placement_engine.lowering import lower_runs
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.pod_constraints import NodeAffinity, NodeSelectorTerm, Requirement
from kfp_placement_engine.model.run_graph import RunGraph, Step
from kfp_placement_engine.planning.given_values import with_durations
from kfp_placement_engine.planning.plan_options import PlanOptions, lowering_options_of
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.readers import read_cluster, read_run
from kfp_placement_engine.search.baselines import schedules_of
from kfp_placement_engine.search.simulation import simulate
from kfp_placement_engine.search.solve import solve
from kfp_placement_engine.search.stop import MaxGenerations
from tests.support.prepared_runs import prepared
from tests.support.samples import SAMPLES

SAMPLE = SAMPLES / "04_unequal_steps"
HOST = "kubernetes.io/hostname"
LONGEST = "xgboost"
GENERATIONS = 60
"""Generations of a search, which take a tenth of a second."""


@dataclass(frozen=True)
class LeadCase:
    """The sample's run on one of its clusters.

    Attributes:
        graph: the run.
        cluster: the cluster; its nodes have the label of their host name, as real ones do.
    """

    graph: RunGraph
    cluster: Cluster

    def plan(self, **options: Any) -> Plan:
        """The plan with these options of planning."""
        return prepared(
            self.graph, self.cluster, options={"generations": GENERATIONS, **options}
        ).plan()

    @cached_property
    def trainings(self) -> tuple[str, ...]:
        """Names of the seven, in the order in which KFP writes them."""
        return tuple(step.name for step in self.graph.steps if step.type == "Training")

    def problem(self) -> PlacementProblem:
        """The problem of a plan whose steps may wait."""
        runs = (ActiveRun("", self.graph),)
        options = lowering_options_of(runs, self.cluster, PlanOptions(dispatch="ordered"))
        return lower_runs(runs, self.cluster, options).problem

    def default_makespans(self) -> list[float]:
        """Ends of the run under the default scheduler, for each way to break its ties."""
        return [each.makespan_seconds for each in schedules_of("kube-default", self.problem())]

    def heft_makespan(self) -> float:
        """End of the run as HEFT, a list scheduler, orders it."""
        return schedules_of("heft", self.problem())[0].makespan_seconds

    def where(self, change: Callable[[Step], Step]) -> "LeadCase":
        """The same with changed steps."""
        steps = tuple(map(change, self.graph.steps))
        return replace(self, graph=replace(self.graph, steps=steps))

    def lasting(self, seconds: Mapping[str, float]) -> "LeadCase":
        """The same with other run times."""
        return replace(self, graph=with_durations(self.graph, seconds))

    def without_images(self, image_bytes: int) -> "LeadCase":
        """The same where no node holds the image, which is of this size."""
        nodes = tuple(replace(node, images={}) for node in self.cluster.nodes)
        defaults = {**self.cluster.defaults, "image_bytes": image_bytes}
        return replace(self, cluster=replace(self.cluster, nodes=nodes, defaults=defaults))

    def in_every_order(self) -> Iterator["LeadCase"]:
        """The same run times, given to the trainings in every order."""
        seconds = {step.name: step.duration_seconds for step in self.graph.steps}
        lengths = [seconds[name] for name in self.trainings]
        for order in itertools.permutations(lengths):
            yield self.lasting(dict(zip(self.trainings, order, strict=True)))  # type: ignore[arg-type]

    def gains_with_wrong_hints(self, draws: int, sigma: float) -> list[float]:
        """Share of the default's time that the plan saves where run times are not as hinted.

        The plan keeps its nodes and its order; each run time is the hint times a lognormal factor.
        """
        rng = np.random.default_rng(0)
        placement = solve(self.problem(), MaxGenerations(GENERATIONS), seed=0).placement
        gains = []
        for _ in range(draws):
            factors = np.exp(rng.normal(0.0, sigma, len(self.graph.steps))).tolist()
            steps = zip(self.graph.steps, factors, strict=True)
            true = self.lasting({step.name: step.duration_seconds * by for step, by in steps})
            default = float(np.mean(true.default_makespans()))
            gains.append(1 - simulate(true.problem(), placement).makespan_seconds / default)
        return gains


def lead_case(cluster_file: str = "cluster.yaml") -> LeadCase:
    """The run on a cluster of the sample."""
    cluster = read_cluster((SAMPLE / cluster_file).read_bytes(), name=cluster_file)
    nodes = (replace(node, labels={**node.labels, HOST: node.name}) for node in cluster.nodes)
    cluster = replace(cluster, nodes=tuple(nodes))
    graph = read_run((SAMPLE / "pipeline.yaml").read_bytes(), name="pipeline.yaml")
    return LeadCase(graph, cluster)


def on_node(step: Step, node: str) -> Step:
    """The step with a node selector for that node."""
    return replace(step, node_selector={HOST: node})


def not_on_node(step: Step, node: str) -> Step:
    """The step with a node affinity that keeps it off that node."""
    term = NodeSelectorTerm((Requirement(HOST, "NotIn", (node,)),))
    return replace(step, affinity=NodeAffinity(required=(term,)))
