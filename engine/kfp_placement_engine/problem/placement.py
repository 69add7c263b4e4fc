"""A placement: the decision of the planner, from which the simulation makes a schedule."""

from dataclasses import dataclass, field

import numpy as np

from kfp_placement_engine.problem.problem import Floats, Integers, PlacementProblem

LAST = 1e300
"""Priority of an activity that never starts."""


@dataclass(frozen=True)
class Placement:
    """The node of every gene, and the order in which steps start.

    Attributes:
        gene_nodes: [G] node index of each gene.
        priority: [A] numbers by which steps start on their node, smaller ones first; used by
            `ordered` dispatch, and never in contradiction to the precedences.
        not_before: [A] planned starts that steps wait for (`ordered`), or empty.
    """

    gene_nodes: Integers
    priority: Floats
    not_before: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def variants(self) -> tuple["Placement", ...]:
        """The placement, and if it holds starts, one without them: either may be better."""
        if not self.not_before.size:
            return (self,)
        return (self, Placement(self.gene_nodes, self.priority))

    @staticmethod
    def of_schedule(
        problem: PlacementProblem, start: Floats, node: Integers, *, hold: bool = False
    ) -> "Placement":
        """Return the placement that leads to a schedule.

        Args:
            problem: problem that the schedule is of.
            start: [A] starts.
            node: [A] nodes, -1 for none.
            hold: whether steps wait for these starts, which leads to exactly the same schedule.
        """
        first_members = np.array([members[0] for members in problem.gene_activities], np.int64)
        gene_nodes = _repaired(problem, node[first_members])
        order = np.where(np.isfinite(start), start, LAST)
        return Placement(gene_nodes, order, order.copy() if hold else np.empty(0))


def _repaired(problem: PlacementProblem, gene_nodes: Integers) -> Integers:
    """Replace nodes that a gene may not take by the best: baselines do not know latency limits."""
    allowed = problem.arrays.allowed
    nodes = gene_nodes.copy()
    for gene in range(problem.genes):
        if nodes[gene] < 0 or not allowed[gene, nodes[gene]]:
            kind = problem.arrays.class_of[problem.gene_activities[gene][0]]
            excess = problem.arrays.latency_excess_ms[kind]
            cost = np.where(allowed[gene], excess + 1e-6 / problem.arrays.speed, np.inf)
            nodes[gene] = int(cost.argmin())
    return nodes
