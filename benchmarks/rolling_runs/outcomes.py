"""Outcome of a series, and its schedule as CSV."""

import csv
import io
import math
from dataclasses import dataclass
from typing import NamedTuple


class SimulatedStep(NamedTuple):
    """Outcome of a step; times are in seconds since the first arrival.

    Attributes:
        run: number of its run.
        name: name of the step.
        cores: requested cores.
        node: node on which it ran.
        created: time at which its pod was there.
        start, end: times at which it took its room and gave it back.
        planned: start by the plan in force then; 0 = there was none.
    """

    run: int
    name: str
    cores: float
    node: str
    created: float
    start: float
    end: float
    planned: float


@dataclass(frozen=True)
class Outcome:
    """Outcome of a series.

    Attributes:
        completion_seconds: time of each run from its arrival to its end.
        plans: number of plans that were made.
        steps: outcomes of the steps, by start.
    """

    completion_seconds: tuple[float, ...]
    plans: int
    steps: tuple[SimulatedStep, ...]

    @property
    def makespan_seconds(self) -> float:
        """Time from the first arrival to the last end."""
        return max(step.end for step in self.steps)

    def mean_wait_seconds(self, least_cores: float, most_cores: float) -> float:
        """Return mean time from creation to start, over steps with this many cores; NaN = none."""
        waits = [
            step.start - step.created
            for step in self.steps
            if least_cores <= step.cores <= most_cores
        ]
        return sum(waits) / len(waits) if waits else math.nan

    @property
    def mean_completion_seconds(self) -> float:
        """Mean completion of all runs."""
        return sum(self.completion_seconds) / len(self.completion_seconds)


def schedule_text(outcome: Outcome) -> str:
    """Run, step, node, start and end in seconds since the first arrival, as CSV, by start."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(("run", "step", "node", "start", "end"))
    writer.writerows(
        (step.run, step.name, step.node, step.start, step.end) for step in outcome.steps
    )
    return stream.getvalue()
