"""The tables of `learning` on plans: what history is worth to them, and ends of whole runs."""

from collections.abc import Mapping, Sequence
from statistics import fmean, median

from benchmarks.learning_runs.experiments import Case
from benchmarks.learning_runs.planning import DISPATCHES, PlannedCase
from benchmarks.tables import Table, percent

ABOUT_PLANS = (
    "Plans with history: a run is planned on what ten runs before took, and with 60 s for every",
    "step; each plan is then played 100 times with real run times, as kube-default and HEFT are.",
    "Each task varies by 5, 20 or 70%. `medians` is the best plan on typical times, `samples` the",
    "one that is handed out; `bound` is what no plan can beat. `history earlier`: how much earlier",
    "the run ends than with 60 s for all; `samples later`: than with the best on typical times.",
    "After a change: ten runs are seen, then the pipeline, its arguments or the cluster change.",
)

_METHODS = ("past ends", "last 5 ends", "ours")
_ENDS = ("60 s", "medians", "samples", "kube-default", "HEFT", "bound")


def planning_table(cases: Sequence[PlannedCase]) -> Table:
    """Mean ends with real times, case by case, and by how much they differ on average."""
    rows = []
    for dispatch in DISPATCHES:
        of_dispatch = [each for each in cases if each.dispatch == dispatch]
        for each in of_dispatch:
            ends = [f"{each.ends[name]:,.0f}" for name in _ENDS]
            rows.append([each.case, dispatch, str(each.steps), *ends, *_shares([each])])
        if of_dispatch:
            name = f"all {len(of_dispatch)}"
            rows.append([name, dispatch, *[""] * (1 + len(_ENDS)), *_shares(of_dispatch)])
    headings = ["case", "dispatch", "steps", *(f"{name}, s" for name in _ENDS)]
    headings += ["history earlier, %", "samples later, %"]
    return Table("Plans with history: mean ends with real run times", headings, rows, words=2)


def planning_shares(cases: Sequence[PlannedCase]) -> Mapping[str, tuple[float, float]]:
    """By dispatch how much earlier history lets runs end, and how much later samples do."""
    return {
        dispatch: (
            1 - _ratio(found, "samples", "60 s"),
            _ratio(found, "samples", "medians") - 1,
        )
        for dispatch in DISPATCHES
        if (found := [each for each in cases if each.dispatch == dispatch])
    }


def _ratio(cases: Sequence[PlannedCase], plan: str, other: str) -> float:
    return fmean(each.ends[plan] / each.ends[other] for each in cases)


def _shares(cases: Sequence[PlannedCase]) -> list[str]:
    (shares,) = planning_shares(cases).values()
    return [percent(each, 2) for each in shares]


def changed_table(cases: Sequence[Case]) -> Table:
    """One row for each change."""
    return _ends_table("Ends of made-up runs after a change: median errors", "change", cases)


def first_runs_table(cases: Sequence[Case]) -> Table:
    """One row for each way in which run times vary, and number of runs that were seen."""
    title = "Ends of the first made-up runs before they start: median errors"
    return _ends_table(title, "run times: runs seen", cases)


def retries_table(cases: Sequence[Case]) -> Table:
    """One row for each pipeline whose steps are tried again, and share of its runs."""
    title = "Ends of made-up runs whose steps are tried again: median errors"
    return _ends_table(title, "attempts that fail: share of the run", cases)


def _ends_table(title: str, heading: str, cases: Sequence[Case]) -> Table:
    groups: dict[str, list[Case]] = {}
    for each in cases:
        groups.setdefault(each.group, []).append(each)
    rows = []
    for name, found in groups.items():
        errors = [percent(median(each.error(method) for each in found), 1) for method in _METHODS]
        covered = percent(fmean(each.is_covered for each in found), 1)
        width = percent(median((each.high - each.low) / each.seconds for each in found), 1)
        rows.append([name, *errors, str(len(found)), covered, width])
    headings = [heading, *(f"{name}, %" for name in _METHODS)]
    headings += ["forecasts", "covered, %", "width, %"]
    return Table(title, headings, rows)
