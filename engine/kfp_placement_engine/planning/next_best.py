"""The next best nodes of each step, with their losses, if a step cannot go to its planned node."""

import math
from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.contract.rows import MAX_ALTERNATIVES
from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.planning.alternatives import (
    ALTERNATIVES_WORK,
    move_step,
    seconds_on_nodes,
)
from kfp_placement_engine.plans.planned_step import Alternative
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import Floats
from kfp_placement_engine.problem.schedule import Schedule, completions

TRIED = 4
"""Number of nodes that are tried for a step; the best of them are named."""


@dataclass(frozen=True)
class NextBest:
    """The search for the next best nodes of a plan's steps.

    Attributes:
        lowered: problem with its origin.
        placement: placement of the plan.
        schedule: schedule of the plan.
    """

    lowered: Lowered
    placement: Placement
    schedule: Schedule

    def alternatives(self) -> dict[int, tuple[Alternative, ...]]:
        """Return, by activity, at most three nodes for every planned step that may go elsewhere.

        The loss is the time by which the runs end later with that one step there, weighted against
        its own run. Steps are tried in order of their start, as far as the work allows; from then
        on the loss is the time by which the step takes longer there. Users of a shared volume do
        not have alternatives, since they only move together. Where a latency rule or limit applies,
        the round trip is named too.
        """
        problem = self.lowered.problem
        arrays, result = problem.arrays, dict[int, tuple[Alternative, ...]]()
        trials, busy = ALTERNATIVES_WORK // problem.simulation_work, self._busy_share()
        deciders = np.flatnonzero((arrays.gene >= 0) & (self.schedule.node >= 0))
        for index in deciders[np.argsort(self.schedule.start[deciders], kind="stable")].tolist():
            if arrays.sticky[arrays.gene[index]]:
                continue
            others = self._candidates(index, busy)
            if trials >= len(others):
                trials -= len(others)
                losses = {node: self._loss(index, node) for node in others}
            else:
                seconds = seconds_on_nodes(problem, index)
                here = seconds[self.schedule.node[index]]
                losses = {node: max(0.0, float(seconds[node] - here)) for node in others}
            excess = arrays.latency_excess_ms[arrays.class_of[index]]
            ranked = sorted(
                (float(excess[node]), loss, rank, node)
                for rank, (node, loss) in enumerate(losses.items())
                if loss is not None
            )
            result[index] = tuple(
                Alternative(node, loss, self._latency_ms(index, node))
                for _, loss, _, node in ranked[:MAX_ALTERNATIVES]
            )
        return result

    def _busy_share(self) -> Floats:
        """Return [N] the CPU time that the plan takes of each node, relative to its size."""
        arrays, schedule = self.lowered.problem.arrays, self.schedule
        placed = (schedule.node >= 0) & schedule.finished
        seconds = schedule.end[placed] - schedule.start[placed]
        busy = np.zeros(self.lowered.problem.nodes)
        np.add.at(busy, schedule.node[placed], seconds * arrays.requests[placed, 0])
        return np.asarray(busy / np.maximum(1, arrays.allocatable[:, 0]))

    def _candidates(self, index: int, busy: Floats) -> list[int]:
        """Return the nodes to try: near the users, quick with the image there, little used."""
        problem, node = self.lowered.problem, int(self.schedule.node[index])
        arrays = problem.arrays
        seconds, image = seconds_on_nodes(problem, index), int(arrays.image[index])
        if image >= 0:
            missing = ~arrays.image_present[image]
            seconds = seconds + missing * arrays.image_bytes[image] / arrays.pull_rate
        excess = arrays.latency_excess_ms[arrays.class_of[index]]
        allowed = arrays.allowed[arrays.gene[index]]
        order = np.lexsort((busy, seconds, excess))
        return [int(other) for other in order[allowed[order]] if other != node][:TRIED]

    def _latency_ms(self, index: int, node: int) -> float | None:
        """Return the round trip from a node; None = unknown, or no rule needs it."""
        problem = self.lowered.problem
        latency_ms = float(problem.latency_ms[problem.arrays.class_of[index], node])
        return None if math.isnan(latency_ms) else latency_ms

    def _loss(self, index: int, node: int) -> float | None:
        """Return how much later the runs end; None where the step does not get onto the node."""
        problem, arrays = self.lowered.problem, self.lowered.problem.arrays
        other = move_step(problem, self.placement, index, node).schedule
        if other.node[index] != node or other.terms[0] > self.schedule.terms[0]:
            return None
        later = completions(problem, other) - completions(problem, self.schedule)
        own = float(arrays.run_weight[arrays.run[index]])
        weighted = float(arrays.run_weight @ later) / own if own > 0 else float(later.sum())
        return max(0.0, weighted)
