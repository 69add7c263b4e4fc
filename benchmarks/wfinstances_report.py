"""Tables of the workflow instances: ratios side by side, first figures beside ours."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.tables import Table, machine
from benchmarks.wfinstances_origin import ORIGIN
from kfp_placement_engine.model.plan import Bound

_MARGIN = 1e-6


@dataclass(frozen=True)
class Outcome:
    """One file on one cluster; makespans in seconds.

    Attributes:
        cluster: its name.
        name: the file's, without `.json`.
        tasks: how many.
        bound: what no plan can beat.
        kube: kube-default, mean over all orders of the nodes.
        heft: HEFT.
        ours: seconds of search -> our plan.
    """

    cluster: str
    name: str
    tasks: int
    bound: Bound
    kube: float
    heft: float
    ours: Mapping[float, float]

    @property
    def is_possible(self) -> bool:
        """Whether no plan beats the bound, and ours is not worse than HEFT, its start."""
        makespans = (self.kube, self.heft, *self.ours.values())
        honest = all(each >= self.bound.seconds * (1 - _MARGIN) for each in makespans)
        return honest and all(each <= self.heft * (1 + _MARGIN) for each in self.ours.values())


def parts_of(outcomes: Sequence[Outcome], budgets: Sequence[float]) -> list[Table | Sequence[str]]:
    """What was measured, a table for each cluster, geometric means."""
    parts: list[Table | Sequence[str]] = [_about(budgets)]
    for cluster in dict.fromkeys(each.cluster for each in outcomes):
        group = [each for each in outcomes if each.cluster == cluster]
        parts += [_makespans(cluster, group, budgets), _ratios(cluster, group, budgets)]
    return parts


def figures_of(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """What the tables are made of, for JSON; times in seconds."""
    return [
        {
            "cluster": each.cluster,
            "file": each.name,
            "tasks": each.tasks,
            "boundSeconds": each.bound.seconds,
            "boundKind": each.bound.kind,
            "makespanSeconds": {"kube-default": each.kube, "heft": each.heft},
            "ours": [
                {"budgetSeconds": budget, "makespanSeconds": makespan_seconds}
                for budget, makespan_seconds in each.ours.items()
            ],
        }
        for each in outcomes
    ]


def _about(budgets: Sequence[float]) -> list[str]:
    searched = " and ".join(f"{budget:g}" for budget in budgets)
    return [
        "3x2: 3 nodes of 2 slots. het 4x4: 4 nodes of 4 slots, speeds 0.5, 1, 1, 2. A task takes a",
        "slot; 125 MB/s between nodes; ordered dispatch. kube-default is the mean over all",
        f"orders of the nodes. Our search: {searched} s, seed 0; {machine()}.",
        'The columns "first" are figures of an earlier, throwaway search of 6 s and its baselines.',
    ]


def _makespans(cluster: str, group: Sequence[Outcome], budgets: Sequence[float]) -> Table:
    rows = []
    for each in group:
        first = ORIGIN[cluster].get(each.name)
        cells = [each.bound.seconds, each.kube, each.heft, *(each.ours[b] for b in budgets)]
        origin = [first.kube, first.heft, first.search] if first else [None] * 3
        ratio = each.ours[budgets[-1]] / each.heft
        rows.append(
            [
                each.name,
                each.bound.kind,
                str(each.tasks),
                *(_seconds(value) for value in cells),
                f"{ratio:.3f}",
                *(_seconds(value) for value in origin),
            ]
        )
    return Table(
        f"Cluster {cluster}: makespans, s",
        [
            "file",
            "bound by",
            "tasks",
            "bound",
            "kube",
            "HEFT",
            *(f"ours {budget:g} s" for budget in budgets),
            "ours/HEFT",
            "first kube",
            "first HEFT",
            "first search",
        ],
        rows,
        words=2,
    )


def _ratios(cluster: str, group: Sequence[Outcome], budgets: Sequence[float]) -> Table:
    origin = ORIGIN[cluster]
    searched = [e for e in group if e.name in origin and origin[e.name].search is not None]
    rows = []
    for title, some in (("all", group), ("with a first search", searched)):
        if not some:
            continue
        cells = [_mean(e.heft / e.kube for e in some)]
        for budget in budgets:
            cells.append(_mean(e.ours[budget] / e.heft for e in some))
        cells.append(_mean(e.ours[budgets[-1]] / e.kube for e in some))
        cells.append(_mean(e.bound.seconds / e.heft for e in some))
        rows.append([f"{title}: {len(some)} files", *(f"{cell:.3f}" for cell in cells)])
    if searched:
        first = [origin[each.name] for each in searched]
        by_search = _mean((each.search or math.nan) / each.heft for each in first)
        rows.append(
            [
                f"first figures: {len(first)} files",
                f"{_mean(each.heft / each.kube for each in first):.3f}",
                *(f"{by_search:.3f}" for _ in budgets),
                f"{_mean((each.search or math.nan) / each.kube for each in first):.3f}",
                "",
            ]
        )
    return Table(
        f"Cluster {cluster}: geometric means",
        [
            "",
            "HEFT/kube",
            *(f"ours {budget:g} s/HEFT" for budget in budgets),
            "ours/kube",
            "bound/HEFT",
        ],
        rows,
    )


def _mean(ratios: Iterable[float]) -> float:
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logarithms) / len(logarithms))


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"
