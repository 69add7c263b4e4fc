"""Result of one search of a case: its figures, and its schedule step by step."""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.budget import Budget, Spent, search
from benchmarks.cases import Instance
from kfp_placement_engine import PlacementProblem
from kfp_placement_engine.model.objective import ResourceWeights
from kfp_placement_engine.problem.schedule import Schedule, completions

Row = tuple[str, str, float, float]
"""Step, node ("" = none), start and end in seconds; infinite if it never starts."""


@dataclass(frozen=True)
class SearchOutcome:
    """Result of a search; times are in seconds.

    Attributes:
        spent: resources that the search spent.
        makespan: the latest end.
        completions: completion of each run.
        unplaced: steps that never end.
        rows: the schedule, by start.
        use: mean use of each resource until the latest end, by name.
        measured: further figures by the names that they have in JSON.
    """

    spent: Spent
    makespan: float
    completions: tuple[float, ...]
    unplaced: int
    rows: tuple[Row, ...] = ()
    use: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, float] = field(default_factory=dict)

    @property
    def figures(self) -> dict[str, Any]:
        """The figures for JSON, without the schedule."""
        return {
            "spent": self.spent.figures,
            "makespanSeconds": self.makespan,
            "completionSeconds": list(self.completions),
            "unplaced": self.unplaced,
            **use_figures(self.use),
            **self.measured,
        }

    @staticmethod
    def of_fields(fields: Mapping[str, Any]) -> "SearchOutcome":
        """Read what another process wrote with `dataclasses.asdict` as JSON."""
        return SearchOutcome(
            spent=Spent(**fields["spent"]),
            makespan=fields["makespan"],
            completions=tuple(fields["completions"]),
            unplaced=fields["unplaced"],
            rows=tuple((name, node, start, end) for name, node, start, end in fields["rows"]),
            use=fields["use"],
            measured=fields["measured"],
        )


def find(instance: Instance, budget: Budget, seed: int) -> SearchOutcome:
    """Search an instance in this process."""
    result, spent = search(instance.problem, budget, seed)
    return SearchOutcome(
        spent=spent,
        makespan=result.schedule.makespan_seconds,
        completions=tuple(completions(instance.problem, result.schedule).tolist()),
        unplaced=int((~result.schedule.finished).sum()),
        rows=rows_of(instance, result.schedule),
        use=use_of(instance.problem, result.schedule),
    )


def use_of(problem: PlacementProblem, schedule: Schedule) -> dict[str, float]:
    """Return requests x seconds over room x makespan, by resource of which there is room.

    Of all runs together, drivers included. It is computed here and not by the engine, whose
    `mean_use` is of one run, and which may be that of an older checkout.
    """
    arrays = problem.arrays
    placed = schedule.finished & (schedule.node >= 0)
    seconds = (schedule.end - schedule.start)[placed]
    used = seconds @ arrays.requests[placed].astype(np.float64)
    room = np.maximum(arrays.free, 0).sum(axis=0) * float(schedule.end[placed].max(initial=0.0))
    return {
        name: float(each / most)
        for name, each, most in zip(problem.resource_names, used, room, strict=True)
        if most > 0
    }


def use_figures(use: Mapping[str, float]) -> dict[str, Any]:
    """Return for JSON the use of each resource, and of CPU and memory as one figure if known."""
    return {"use": dict(use), "weightedUse": ResourceWeights().mean_of(use)}


def rows_of(instance: Instance, schedule: Schedule) -> tuple[Row, ...]:
    """Return the steps of a schedule by start; one without duration has no node."""
    ends = {name: float(schedule.end[at]) for name, at in instance.activities.items()}
    rows = [
        (name, _node(instance, int(schedule.node[at])), float(schedule.start[at]), ends[name])
        for name, at in instance.activities.items()
    ]
    for name, before in instance.instants.items():
        at = max((ends[each] for each in before), default=0.0)
        rows.append((name, "", at, at))
    return tuple(sorted(rows, key=by_start))


def by_start(row: Row) -> tuple[float, float, str]:
    """Return the order of the rows of a schedule."""
    name, _, start, end = row
    return start, end, name


def schedule_text(rows: Iterable[Row]) -> str:
    """Return a schedule as CSV: step, node, start and end in seconds."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(("step", "node", "start", "end"))
    writer.writerows(rows)
    return stream.getvalue()


def _node(instance: Instance, node: int) -> str:
    return instance.nodes[node] if node >= 0 else ""
