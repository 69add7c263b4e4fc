"""The tables of `learning`: errors of forecasts beside simpler ones, and what ranges hold."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from benchmarks.learning_runs.cases import Case
from benchmarks.learning_runs.memory import METHODS, MemoryCase
from benchmarks.learning_runs.planning import DISPATCHES, PlannedCase
from benchmarks.tables import Table, percent

ABOUT = (
    "Every step of 2 s and more is forecast before its run, from the runs before. An error",
    "is |forecast / true - 1|, and here the median; `by time`: errors in seconds over all seconds.",
    "`covered`: how often the range of 90% holds the truth; `high/low`: the median ratio of its",
    "bounds; `width`: the median of the range over the truth. `ours` knows the size of a step's",
    "inputs (the bytes that it then read). A new pipeline is known by 20 runs of each other one.",
    "A recorded run is planned on learned times, without sizes, and simulated under kube-default;",
    "`plan alone` is its makespan. Its nodes have what pods of any run, later ones too, asked of",
    "them at a time, and its pipeline an order that has nearly all steps of every run.",
    "Made-up runs differ from their plans by the times of their steps alone: no pod waits beside",
    "its step, drivers take what was planned, and times are not cut to whole seconds, all of which",
    "real runs have. While a run goes on, steps start as long after what they wait for as planned.",
    "After a change: ten runs are seen, then the pipeline, its arguments or the cluster change.",
    "Plans with history: a run is planned on what ten runs before took, and with 60 s for every",
    "step; each plan is simulated 100 times with real run times, as kube-default is. Each task",
    "varies by 5, 20 or 70%. `history earlier`: how much earlier the run ends than with 60 s.",
)


@dataclass(frozen=True)
class Figures:
    """Quality of some forecasts, in shares.

    Attributes:
        forecasts: number of forecasts.
        errors: the median of each method.
        by_time: sum of our errors over all seconds.
        covered: ranges of 90% that hold the truth.
        high_over_low: median of the ratios of their bounds.
        width: median of their widths over the truth.
    """

    forecasts: int
    errors: dict[str, float]
    by_time: float
    covered: float
    high_over_low: float
    width: float

    @staticmethod
    def of(cases: Sequence[Case]) -> "Figures":
        """Return the quality of some forecasts, without methods that not all of them have."""
        methods = [name for name in cases[0].others if all(name in each.others for each in cases)]
        return Figures(
            forecasts=len(cases),
            errors={
                name: median(each.error(name) for each in cases) for name in (*methods, "ours")
            },
            by_time=sum(each.error() * each.seconds for each in cases)
            / sum(each.seconds for each in cases),
            covered=fmean(each.is_covered for each in cases),
            high_over_low=median(
                each.ours.high_seconds / max(each.ours.low_seconds, 1e-9) for each in cases
            ),
            width=median(each.width for each in cases),
        )


def figures_of(cases: Iterable[Case]) -> dict[tuple[str, str], Figures]:
    """Return figures by group and pipeline, with all pipelines of a group first."""
    groups: dict[tuple[str, str], list[Case]] = {}
    for each in cases:
        for pipeline in ("all", each.pipeline):
            groups.setdefault((each.group, pipeline), []).append(each)
    names = list(dict.fromkeys(group for group, _ in groups))
    order = sorted(groups, key=lambda key: names.index(key[0]))
    return {key: Figures.of(groups[key]) for key in order}


def cases_table(title: str, figures: dict[tuple[str, str], Figures]) -> Table:
    """One row for each group and pipeline."""
    methods = list(dict.fromkeys(name for each in figures.values() for name in each.errors))
    rows = []
    for (group, pipeline), each in figures.items():
        errors = [percent(each.errors[name], 2) if name in each.errors else "" for name in methods]
        ratio = each.high_over_low
        rows.append(
            [
                group,
                pipeline,
                *errors,
                percent(each.by_time, 2),
                f"{each.forecasts:,}",
                percent(each.covered, 1),
                f"{ratio:.2f}" if ratio < 100 else f"{ratio:,.0f}",
                percent(each.width, 1),
            ]
        )
    headings = ["known", "of", *(f"{name}, %" for name in methods), "ours by time, %"]
    headings += ["forecasts", "covered, %", "high/low", "width, %"]
    return Table(title, headings, rows, words=2)


def memory_of(cases: Iterable[MemoryCase]) -> dict[tuple[str, str, str], dict[str, float]]:
    """Return by group, pipeline and method: pods, use of held memory (MAQ), and failed share.

    Of each group all pipelines come last.
    """
    by_method: dict[tuple[str, str, str], list[MemoryCase]] = {}
    memory_cases = list(cases)
    for pipeline in (*dict.fromkeys(each.pipeline for each in memory_cases), "all"):
        for each in memory_cases:
            if pipeline in ("all", each.pipeline):
                by_method.setdefault((each.group, pipeline, each.method), []).append(each)
    return {key: _memory_figures(by_method[key]) for key in by_method}


def _memory_figures(cases: Sequence[MemoryCase]) -> dict[str, float]:
    pods, failed, used, wasted = (
        sum(getattr(each, name) for each in cases)
        for name in ("pods", "failed", "used_gbh", "wasted_gbh")
    )
    return {"pods": pods, "maq": used / ((used + wasted) or 1.0), "failed": failed / pods}


def memory_table(figures: dict[tuple[str, str, str], dict[str, float]]) -> Table:
    """One row for each group and pipeline."""
    rows = []
    for group, pipeline in dict.fromkeys(key[:2] for key in figures):
        of_methods = [figures[group, pipeline, method] for method in METHODS]
        row = [group, pipeline, f"{of_methods[0]['pods']:,}"]
        for each in of_methods:
            row += [f"{each['maq']:.3f}", percent(each["failed"], 2)]
        rows.append(row)
    headings = ["known", "pipeline", "pods"]
    for method in METHODS:
        headings += [f"{method}, MAQ", f"{method}, failed %"]
    title = "Memory, from nothing: used of all that was held (MAQ), given too little at first"
    return Table(title, headings, rows, words=2)


def planning_table(cases: Sequence[PlannedCase]) -> Table:
    """Mean ends with real times, case by case, and by how much they differ on average."""
    rows = []
    for dispatch in DISPATCHES:
        of_dispatch = [each for each in cases if each.dispatch == dispatch]
        for each in of_dispatch:
            ends = [f"{seconds:,.0f}" for seconds in each.ends.values()]
            rows.append([each.case, dispatch, f"{each.steps}", *ends, _earlier([each])])
        if of_dispatch:
            blank = [""] * (1 + len(of_dispatch[0].ends))
            rows.append([f"all {len(of_dispatch)}", dispatch, *blank, _earlier(of_dispatch)])
    headings = ["case", "dispatch", "steps", "60 s, s", "history, s", "kube-default, s"]
    title = "Plans with history: mean ends with real run times"
    return Table(title, [*headings, "history earlier, %"], rows, words=2)


def _earlier(cases: Sequence[PlannedCase]) -> str:
    return percent(1 - fmean(each.ends["history"] / each.ends["60 s"] for each in cases), 2)
