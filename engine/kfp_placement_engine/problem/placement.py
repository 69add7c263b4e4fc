"""A placement: the planner's decision, before it is played."""

from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.problem.problem import Floats, Integers, PlacementProblem

LAST = 1e300
"""Priority of an activity that never starts."""


@dataclass(frozen=True)
class Placement:
    """Where every gene goes and in which order its steps start.

    Attributes:
        gene_nodes: [G] node index of each gene.
        priority: [A] the smaller, the earlier a step starts on its node; used by `ordered` dispatch
            and never in contradiction to the precedences.
        not_before: [A] planned starts that a step waits for (`ordered`), or empty.
    """

    gene_nodes: Integers
    priority: Floats
    not_before: Floats

    @property
    def variants(self) -> tuple["Placement", ...]:
        """Itself, and where it holds starts the same without: either may be better."""
        if not self.not_before.size:
            return (self,)
        return (self, Placement(self.gene_nodes, self.priority, np.empty(0)))

    @staticmethod
    def of_schedule(
        problem: PlacementProblem, start: Floats, node: Integers, *, hold: bool = False
    ) -> "Placement":
        """The placement that says what a schedule did.

        Args:
            problem: the problem.
            start: [A] starts.
            node: [A] nodes, -1 for none.
            hold: also keep the starts as earliest starts, so that the schedule is replayed exactly.
        """
        first_members = np.array([members[0] for members in problem.gene_activities], np.int64)
        gene_nodes = _repaired(problem, node[first_members])
        order = np.where(np.isfinite(start), start, LAST)
        return Placement(gene_nodes, order, order.copy() if hold else np.empty(0))


def _repaired(problem: PlacementProblem, gene_nodes: Integers) -> Integers:
    """Replace nodes a gene may not take (a baseline knows no latency limits) by the best it may."""
    allowed = problem.arrays.allowed
    nodes = gene_nodes.copy()
    for gene in range(problem.genes):
        if nodes[gene] < 0 or not allowed[gene, nodes[gene]]:
            kind = problem.arrays.class_of[problem.gene_activities[gene][0]]
            excess = problem.arrays.latency_excess_ms[kind]
            cost = np.where(allowed[gene], excess + 1e-6 / problem.arrays.speed, np.inf)
            nodes[gene] = int(cost.argmin())
    return nodes
