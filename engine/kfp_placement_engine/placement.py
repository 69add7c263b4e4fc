"""A placement: the planner's decision, before it is played."""

from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.problem import Floats, Integers, PlacementProblem


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
        gene_nodes = np.zeros(problem.genes, np.int64)
        for gene, members in enumerate(problem.gene_activities):
            gene_nodes[gene] = node[members[0]]
        return Placement(gene_nodes, start.copy(), start.copy() if hold else np.empty(0))
