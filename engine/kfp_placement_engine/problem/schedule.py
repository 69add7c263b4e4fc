"""Schedules, which a simulation makes of a placement, and how ties fall in it."""

from dataclasses import dataclass, field

import numpy as np

from kfp_placement_engine.problem.problem import Booleans, Floats, Integers, PlacementProblem


@dataclass(frozen=True, eq=False)
class TieBreak:
    """One way in which kube-scheduler may decide among nodes of equal score.

    Attributes:
        listed: [N] nodes in the order in which kube-scheduler lists them; empty = as numbered.
            Since Kubernetes 1.35 a heap over that list decides.
        draw: seed, 0 or more, of the random choice that decided until Kubernetes 1.34.
    """

    listed: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    draw: int = 0


AS_LISTED = TieBreak()
"""Tie-break in simulations of plans, where only the nodes of driver pods depend on it."""


@dataclass(frozen=True)
class Schedule:
    """Result of a simulation: where and when each activity runs.

    Attributes:
        start: [A] time of the bind, in seconds after submission; infinite if it never starts.
        begin: [A] time at which its volumes are attached.
        end: [A] end of the upload.
        node: [A] node index, -1 = none.
        pull_seconds: [A] time of waiting for the image.
        cause: [A] activity whose end let this one start, -1 = none.
        terms: [5] terms of the objective, see `fitness`.
        after_failure: [A] whether it runs only after a failure; ends of runs do not wait for it.
    """

    start: Floats
    begin: Floats
    end: Floats
    node: Integers
    pull_seconds: Floats
    cause: Integers
    terms: Floats
    after_failure: Booleans

    @property
    def finished(self) -> Booleans:
        """[A] Whether the activity ends."""
        return np.asarray(np.isfinite(self.end))

    @property
    def awaited(self) -> Booleans:
        """[A] Whether it ends, and the end of its run waits for it."""
        return np.asarray(self.finished & ~self.after_failure)

    @property
    def makespan_seconds(self) -> float:
        """Latest end of what ends of runs wait for; 0 if nothing ends."""
        ends = self.end[self.awaited]
        return float(ends.max()) if ends.size else 0.0


def completions(problem: PlacementProblem, schedule: Schedule) -> Floats:
    """Return [runs] the latest end of what each run's end waits for; 0 if nothing ends."""
    ends = np.zeros(problem.arrays.run_weight.size)
    np.maximum.at(ends, problem.arrays.run[schedule.awaited], schedule.end[schedule.awaited])
    return ends
