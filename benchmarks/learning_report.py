"""The tables of `learning`: errors of forecasts beside simpler ones, and what intervals hold."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

from benchmarks.learning_memory_report import memory_figures, memory_table
from benchmarks.learning_plans_report import (
    ABOUT_PLANS,
    changed_table,
    first_runs_table,
    planning_table,
    retries_table,
)
from benchmarks.learning_runs.experiments import SEEN, Case
from benchmarks.learning_runs.live import Promise
from benchmarks.learning_runs.memory import MemoryCase
from benchmarks.learning_runs.planning import PlannedCase
from benchmarks.learning_runs.samples import SampleCost
from benchmarks.tables import Table, machine, percent

METHODS = ("60 s", "last", "mean of 5", "median of 5", "without size", "ours")
END_METHODS = ("plan alone", "past ends", "last 5 ends", "ours")
FROM_FIVE = ("5-9", "10-19", "20+")
LEVELS = ("same component", "same image", "same namespace", "new iteration")
SIZES = ("without size", "by size")
ORDERS = ("neither", "size", "size and node")


@dataclass(frozen=True)
class Figures:
    """What some forecasts are worth.

    Attributes:
        forecasts: how many.
        median_errors, mean_errors, weighted_errors: of each method, as shares; the last are errors
            in seconds over all seconds.
        covered: share of intervals of 90% that hold the truth.
        high_over_low: median of the ratios of their bounds.
    """

    forecasts: int
    median_errors: dict[str, float]
    mean_errors: dict[str, float]
    weighted_errors: dict[str, float]
    covered: float
    high_over_low: float


def figures_of(cases: Sequence[Case]) -> Figures:
    """Of at least one forecast; methods that not all of them have are left out."""
    names = dict.fromkeys((*METHODS, *END_METHODS))
    methods = [name for name in names if all(name in each.forecasts for each in cases)]
    errors = {name: [each.error(name) for each in cases] for name in methods}
    total = sum(each.seconds for each in cases)
    return Figures(
        forecasts=len(cases),
        median_errors={name: median(found) for name, found in errors.items()},
        mean_errors={name: fmean(found) for name, found in errors.items()},
        weighted_errors={
            name: sum(error * each.seconds for error, each in zip(found, cases, strict=True))
            / total
            for name, found in errors.items()
        },
        covered=fmean(each.is_covered for each in cases),
        high_over_low=median(each.high / each.low for each in cases),
    )


def grouped(cases: Sequence[Case], key: Callable[[Case], str]) -> dict[str, list[Case]]:
    """The cases by what a row is about, in the order in which these come."""
    groups: dict[str, list[Case]] = {}
    for each in cases:
        groups.setdefault(key(each), []).append(each)
    return groups


@dataclass(frozen=True)
class Results:
    """All cases of all experiments."""

    same_inputs: Sequence[Case]
    first_sight: Sequence[Case]
    after_two_runs: Sequence[Case]
    in_order: Sequence[Case]
    run_ends: Sequence[Case]
    promises: Sequence[Promise]
    samples: Sequence[SampleCost]
    memory: Sequence[MemoryCase] = ()
    planning: Sequence[PlannedCase] = ()
    changed: Sequence[Case] = ()
    first_runs: Sequence[Case] = ()
    retries: Sequence[Case] = ()

    def figures(self) -> dict[str, Any]:
        """For JSON: by group, and by group and pipeline."""
        lists = ("promises", "samples", "planning")
        others = (*lists, "memory")
        cases = {name: found for name, found in vars(self).items() if name not in others}
        by_group = {
            name: {
                key: asdict(figures_of(found))
                for by in (lambda each: each.group, lambda each: f"{each.group}, {each.pipeline}")
                for key, found in grouped(of_name, by).items()
            }
            for name, of_name in cases.items()
        }
        return {
            **by_group,
            **{name: [asdict(each) for each in getattr(self, name)] for name in lists},
            **memory_figures(self.memory),
        }

    def parts(self) -> list[Table | Sequence[str]]:
        """The tables."""
        return [
            _about(),
            self._by_runs_seen(),
            self._by_pipeline(),
            self._first_sight(),
            self._after_two_runs(),
            self._in_order(),
            self._run_ends(),
            first_runs_table(self.first_runs),
            self._promises(),
            retries_table(self.retries),
            self._samples(),
            memory_table(self.memory),
            planning_table(self.planning),
            changed_table(self.changed),
        ]

    def _by_runs_seen(self) -> Table:
        groups = grouped(self.same_inputs, lambda each: each.group)
        order = [*(text for _, text in SEEN), "20+"]
        rows = [_row(name, groups[name]) for name in order if name in groups]
        later = [each for each in self.same_inputs if each.group in FROM_FIVE]
        if later:
            found = figures_of(later)
            rows.append(["5+, by time", *_errors(found, "weighted_errors"), *_intervals(found)])
        headings = ["runs seen", *(f"{name}, %" for name in METHODS), *_INTERVALS]
        return Table("Same inputs: median errors", headings, rows)

    def _by_pipeline(self) -> Table:
        later = [each for each in self.same_inputs if each.group in FROM_FIVE]
        by_pipeline = grouped(later, lambda each: each.pipeline)
        rows = [_row(name, found) for name, found in by_pipeline.items()]
        headings = ["pipeline", *(f"{name}, %" for name in METHODS), *_INTERVALS]
        return Table("Same inputs, 5 or more runs seen: median errors", headings, rows)

    def _first_sight(self) -> Table:
        groups = grouped(self.first_sight, lambda each: each.group)
        new = [each for name in LEVELS[:-1] for each in groups.get(name, ())]
        named = [("new pipeline", new), *((name, groups.get(name, [])) for name in LEVELS)]
        kinds = [(name, figures_of(cases)) for name, cases in named if cases]
        rows = [
            [name, percent(found.median_errors["ours"], 1), *_intervals(found)]
            for name, found in kinds
        ]
        return Table("First sight", ["known", "median error, %", *_INTERVALS], rows)

    def _after_two_runs(self) -> Table:
        rows = []
        by_pipeline = grouped(self.after_two_runs, lambda each: each.pipeline)
        for name, found in [*by_pipeline.items(), ("all", list(self.after_two_runs))]:
            groups = grouped(found, lambda each: each.group)
            if not all(groups.get(group) for group in SIZES):
                continue
            kinds = [figures_of(groups[group]) for group in SIZES]
            errors = [percent(each.mean_errors["ours"], 1) for each in kinds]
            rows.append([name, *errors, *_intervals(kinds[-1])])
        headings = ["pipeline", *(f"{group}, %" for group in SIZES), *_INTERVALS]
        return Table("Two runs seen, iterations not told apart: mean errors", headings, rows)

    def _in_order(self) -> Table:
        rows = []
        by_pipeline = grouped(self.in_order, lambda each: each.pipeline)
        for name, found in [*by_pipeline.items(), ("all", list(self.in_order))]:
            groups = grouped(found, lambda each: each.group)
            if not all(groups.get(group) for group in ORDERS):
                continue
            kinds = [figures_of(groups[group]) for group in ORDERS]
            errors = [percent(each.median_errors["ours"], 1) for each in kinds]
            baseline = percent(kinds[0].median_errors["median of 5"], 1)
            rows.append([name, baseline, *errors, *_intervals(kinds[-1])])
        headings = ["pipeline", "median of 5, %", *(f"{group}, %" for group in ORDERS), *_INTERVALS]
        return Table(
            "3 or more values seen, iterations not told apart: median errors", headings, rows
        )

    def _run_ends(self) -> Table:
        rows = []
        by_group = grouped(self.run_ends, lambda each: each.group)
        for name, found in sorted(by_group.items(), reverse=True):
            pipelines = grouped(found, lambda each: each.pipeline)
            for pipeline, cases in [*pipelines.items(), ("all", found)]:
                figures = figures_of(cases)
                errors = _errors(figures, "median_errors", END_METHODS)
                widths = median((each.high - each.low) / each.seconds for each in cases)
                covered = percent(figures.covered, 1)
                rows.append([pipeline, name, *errors, str(len(cases)), covered, percent(widths, 1)])
        headings = ["pipeline", "runs seen", *(f"{name}, %" for name in END_METHODS)]
        headings += ["forecasts", "covered, %", "width, %"]
        return Table("Ends of whole runs: median errors", headings, rows, words=2)

    def _promises(self) -> Table:
        rows = []
        kinds: dict[tuple[str, float], list[Promise]] = {}
        for each in self.promises:
            kinds.setdefault((each.mixture, each.passed), []).append(each)
            kinds.setdefault(("all", each.passed), []).append(each)
        for (mixture, passed), found in sorted(kinds.items()):
            errors = [abs(each.typical / each.seconds - 1) for each in found]
            widths = [(each.high - each.low) / each.seconds for each in found]
            covered = fmean(each.low <= each.seconds <= each.high for each in found)
            figures = [percent(each, 1) for each in (covered, median(errors), median(widths))]
            rows.append([mixture, percent(passed, 0), str(len(found)), *figures])
        headings = ["run times", "passed, %", "runs", "covered, %", "median error, %", "width, %"]
        return Table("Ends of made-up runs while they run", headings, rows)

    def _samples(self) -> Table:
        rows = [
            [
                f"{each.steps:,}",
                f"{each.nodes:,}",
                each.dispatch,
                str(each.samples),
                f"{1000 * each.drawing_seconds:.0f}",
                f"{1000 * each.playing_seconds:.0f}",
                f"{1000 * (each.drawing_seconds + each.playing_seconds):.0f}",
            ]
            for each in self.samples
        ]
        headings = ["steps", "nodes", "dispatch", "samples"]
        headings += ["drawing, ms", "playing, ms", "both, ms"]
        return Table("Samples of made-up KFP runs: CPU time of one thread", headings, rows, words=0)


_INTERVALS = ("forecasts", "covered, %", "high/low")


def _row(name: str, cases: Sequence[Case]) -> list[str]:
    found = figures_of(cases)
    return [name, *_errors(found, "median_errors"), *_intervals(found)]


def _errors(found: Figures, kind: str, methods: Sequence[str] = METHODS) -> list[str]:
    errors: dict[str, float] = getattr(found, kind)
    return [percent(errors[name], 2) if name in errors else "" for name in methods]


def _intervals(found: Figures) -> list[str]:
    ratio = found.high_over_low
    shown = f"{ratio:.2f}" if ratio < 100 else f"{ratio:,.0f}"
    return [f"{found.forecasts:,}", percent(found.covered, 1), shown]


def _about() -> list[str]:
    return [
        "Every step of 2 s and more is forecast before its run, from the runs before. An error",
        "is |forecast / true - 1|. `covered`: how often the interval of 90% holds the truth;",
        "`high/low`: the median ratio of its bounds. `by time`: errors in seconds over all",
        "seconds. A new pipeline is known by 20 runs of each other one. `ours` knows where a step",
        "will be, and the size of its inputs (the bytes that it then read); `without size` does",
        "not know the size. A run is planned on learned times, without nodes and sizes, and played",
        "by kube-default; `plan alone` is its makespan, `past ends` the median of all planned runs",
        "before, `last 5 ends` that of the last five, `ours` the plan times the factor by which",
        "the last runs took longer; `width` is the interval over the truth. Its nodes have what",
        "pods of any run, later ones too, asked of them at a time, and its pipeline an order that",
        "has nearly all steps of every run.",
        "Made-up runs, while they run and after a change, differ from their plans by the times of",
        "their steps alone: no pod waits beside its step, drivers take what was planned, and times",
        "are not cut to whole seconds, all of which real runs have.",
        *ABOUT_PLANS,
        f"{machine()}.",
    ]
