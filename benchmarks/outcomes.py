"""What one search of a case gave, beside its baselines, bounds and optimum; its schedule as CSV."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.budget import Budget, Spent, search
from benchmarks.cases import Instance
from kfp_placement._files import write_whole
from kfp_placement_engine import BASELINES, PlacementProblem, lower_bound
from kfp_placement_engine.bounds.lower_bound import critical_path_bounds
from kfp_placement_engine.search.simulation import Schedule

_MARGIN = 1e-6
_NOT_COMPARED = ("brute-force",)
"""It takes all time there is on all but tiny runs."""


@dataclass(frozen=True)
class References:
    """What the makespans of a problem are compared with, by name, in seconds."""

    baselines: Mapping[str, float]
    bounds: Mapping[str, float]


@dataclass(frozen=True)
class Outcome:
    """One case, one seed, one budget; times in seconds.

    Attributes:
        case: its name.
        seed: of the search, and of the case where it is drawn.
        input_hash: of what was planned.
        steps: how many, those of no duration left out.
        budget, spent: of the search.
        makespan: the latest end.
        completions: of each run.
        unplaced: steps that never end.
        references: baselines and bounds.
        optimum: the least makespan, if known.
    """

    case: str
    seed: int
    input_hash: str
    steps: int
    budget: Budget
    spent: Spent
    makespan: float
    completions: tuple[float, ...]
    unplaced: int
    references: References
    optimum: float | None = None

    @property
    def bound(self) -> float:
        """The largest of the bounds."""
        return max(self.references.bounds.values())

    @property
    def gap(self) -> float:
        """How far above the optimum the makespan is, relatively; NaN if it is not known."""
        if self.optimum is None:
            return math.nan
        return self.makespan / self.optimum - 1

    @property
    def is_optimal(self) -> bool:
        """Whether the makespan is the optimum."""
        return self.optimum is not None and self.makespan <= self.optimum * (1 + _MARGIN)

    @property
    def fault(self) -> str:
        """What cannot be, or nothing."""
        least = max(self.bound, self.optimum or 0.0)
        if self.unplaced:
            return f"{self.unplaced} steps are left out"
        if self.makespan < least * (1 - _MARGIN):
            return f"{self.makespan:g} s is below the bound or optimum of {least:g} s"
        for name, seconds in self.references.baselines.items():
            if self.spent.has_begun and self.makespan > seconds * (1 + _MARGIN):
                return f"{self.makespan:g} s is worse than {name}'s {seconds:g} s"
        return ""

    @property
    def figures(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "case": self.case,
            "seed": self.seed,
            "input": self.input_hash,
            "steps": self.steps,
            "budget": self.budget.figures,
            "spent": {
                "schedules": self.spent.schedules,
                "cpuSeconds": round(self.spent.cpu_seconds, 6),
            },
            "makespanSeconds": self.makespan,
            "completionSeconds": list(self.completions),
            "unplaced": self.unplaced,
            "baselineSeconds": dict(self.references.baselines),
            "boundSeconds": dict(self.references.bounds),
            "optimumSeconds": self.optimum,
        }


def references_of(
    problem: PlacementProblem, seed: int, bounds: Mapping[str, float] | None = None
) -> References:
    """Every baseline but brute force, and the bounds.

    Args:
        problem: the problem.
        seed: of the baselines that draw.
        bounds: of the same problem, where they are known already.
    """
    baselines = {
        name: baseline(problem, seed).makespan_seconds
        for name, baseline in BASELINES.items()
        if name not in _NOT_COMPARED
    }
    return References(baselines, bounds or bounds_of(problem))


def bounds_of(problem: PlacementProblem) -> dict[str, float]:
    """The critical path and the largest bound, by name."""
    bounds = (*critical_path_bounds(problem, 1), lower_bound(problem))
    return {bound.kind: bound.seconds for bound in bounds}


def baseline_gaps(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """How far baselines are above the optimum, relatively: means over outcomes that have one."""
    known = [(each.references.baselines, each.optimum) for each in outcomes if each.optimum]
    names = known[0][0] if known else ()
    return {name: fmean(found[name] / optimum - 1 for found, optimum in known) for name in names}


def measure(
    name: str,
    instance: Instance,
    budget: Budget,
    seed: int,
    references: References,
    folder: Path | None = None,
) -> Outcome:
    """Search one case.

    Args:
        name: of the case.
        instance: what is planned.
        budget: what the search may spend.
        seed: of the search.
        references: what it is compared with.
        folder: where its schedule is written; None = nowhere.

    Raises:
        RunError: the schedule cannot be written.
    """
    result, spent = search(instance.problem, budget, seed)
    schedule = result.schedule
    if folder is not None:
        file = f"{name}.seed-{seed}.{budget.word}.csv".replace("/", "-").replace(" ", "-")
        write_whole(folder.resolve() / file, schedule_text(instance, schedule))
    return Outcome(
        case=name,
        seed=seed,
        input_hash=instance.input_hash,
        steps=len(instance.activities),
        budget=budget,
        spent=spent,
        makespan=schedule.makespan_seconds,
        completions=_completions(instance.problem, schedule),
        unplaced=int((~schedule.finished).sum()),
        references=references,
        optimum=instance.optimum_seconds,
    )


def _completions(problem: PlacementProblem, schedule: Schedule) -> tuple[float, ...]:
    """Of each run the latest end of what ends."""
    ends = np.where(schedule.finished, schedule.end, 0.0)
    latest = np.zeros(problem.arrays.run_weight.size)
    np.maximum.at(latest, problem.arrays.run, ends)
    return tuple(latest.tolist())


def schedule_text(instance: Instance, schedule: Schedule) -> str:
    """Step, node, start and end in seconds, as CSV, by start; a step of no duration has no node."""
    ends = {name: float(schedule.end[at]) for name, at in instance.activities.items()}
    rows = [
        (float(schedule.start[at]), ends[name], name, _node(instance, int(schedule.node[at])))
        for name, at in instance.activities.items()
    ]
    for name, before in instance.instants.items():
        at = max((ends[each] for each in before), default=0.0)
        rows.append((at, at, name, ""))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(("step", "node", "start", "end"))
    writer.writerows((name, node, start, end) for start, end, name, node in sorted(rows))
    return stream.getvalue()


def _node(instance: Instance, node: int) -> str:
    return instance.nodes[node] if node >= 0 else ""
