"""Tables of the workflow instances: ratios side by side, first figures beside ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean
from typing import Any

from benchmarks.budget import Budget
from benchmarks.measuring import Parts, searched
from benchmarks.outcomes import MARGIN, Outcome, by_budget
from benchmarks.tables import Table, percent
from benchmarks.wfinstances_origin import ORIGIN, Origin
from kfp_placement_engine.bounds.lower_bound import ROUNDED

PLAIN_BOUNDS = ("critical-path", "area", "pattern-lp")
"""Earlier figures were compared with the largest of these, so it is in the table as well."""


@dataclass(frozen=True)
class File:
    """One file on one cluster; makespans in seconds.

    Attributes:
        cluster: name of the cluster.
        name: the file's, without `.json`.
        tasks: number of tasks.
        bound, bound_kind: lower bound of any plan, and its kind.
        plain_bound: the largest of the bounds that know neither windows of time nor kinds of nodes.
        kube: kube-default, mean over all orders of the nodes.
        heft: HEFT.
        ours: makespan of our plan for each budget, mean over seeds.
    """

    cluster: str
    name: str
    tasks: int
    bound: float
    bound_kind: str
    plain_bound: float
    kube: float
    heft: float
    ours: Mapping[Budget, float]

    @property
    def origin(self) -> Origin | None:
        """The first figures; None = there are none."""
        return ORIGIN[self.cluster].get(self.name)

    @property
    def best(self) -> float:
        """Makespan of our plan with the last budget."""
        return list(self.ours.values())[-1]


def files_of(outcomes: Sequence[Outcome]) -> list[File]:
    """Return the files in the order in which they were measured."""
    groups: dict[str, list[Outcome]] = {}
    for each in outcomes:
        groups.setdefault(each.case, []).append(each)
    return [_file(group) for group in groups.values()]


def _file(group: Sequence[Outcome]) -> File:
    first = group[0]
    cluster = next(name for name in ORIGIN if first.case.startswith(f"{name} "))
    return File(
        cluster=cluster,
        name=first.case.removeprefix(f"{cluster} "),
        tasks=first.steps,
        bound=first.bound,
        bound_kind=first.bound_kind,
        plain_bound=max(
            seconds
            for kind, seconds in first.references.bounds.items()
            if kind.removesuffix(ROUNDED) in PLAIN_BOUNDS
        ),
        kube=first.references.baselines["kube-default"],
        heft=first.references.baselines["heft"],
        ours={
            budget: fmean(each.makespan for each in some)
            for budget, some in by_budget(group).items()
        },
    )


def parts_of(outcomes: Sequence[Outcome]) -> Parts:
    """Return the page: the method, a table for each cluster, geometric means."""
    parts: list[Table | Sequence[str]] = [_about(outcomes)]
    for cluster, group in _by_cluster(files_of(outcomes)).items():
        parts += [_makespans(cluster, group), _ratios(cluster, group)]
    return parts


def totals(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Geometric means of ratios for each cluster and budget.

    The share of HEFT's gap is what our plans close of the room between HEFT and the bound.
    """
    rows = []
    for cluster, group in _by_cluster(files_of(outcomes)).items():
        bound = geometric_mean([each.bound / each.heft for each in group])
        plain = geometric_mean([each.plain_bound / each.heft for each in group])
        for budget in group[0].ours:
            ours = geometric_mean([each.ours[budget] / each.heft for each in group])
            rows.append(
                {
                    "cluster": cluster,
                    "budget": budget.figures,
                    "files": len(group),
                    "heftByKube": geometric_mean([each.heft / each.kube for each in group]),
                    "oursByHeft": ours,
                    "boundByHeft": bound,
                    "plainBoundByHeft": plain,
                    "shareOfHeftsGap": _share(ours, bound),
                    "shareOfHeftsPlainGap": _share(ours, plain),
                }
            )
    return rows


def _share(ours: float, bound: float) -> float:
    """Return how much of the gap between HEFT and a bound our plans close, in shares of HEFT."""
    return (1 - ours) / (1 - bound) if bound < 1 - MARGIN else 1.0


def _by_cluster(files: Sequence[File]) -> dict[str, list[File]]:
    clusters = dict.fromkeys(each.cluster for each in files)
    return {name: [each for each in files if each.cluster == name] for name in clusters}


def _about(outcomes: Sequence[Outcome]) -> list[str]:
    budgets = " and ".join(budget.text for budget in by_budget(outcomes))
    return [
        "3x2: 3 nodes of 2 slots. het 4x4: 4 nodes of 4 slots, speeds 0.5, 1, 1, 2. 6 nodes: of 1,",
        "2, 4, 8, 4 and 2 slots, speeds 0.8, 1, 1.2, 1, 0.6 and 1.5. A task takes a slot; 125 MB/s",
        "between nodes; ordered dispatch. kube-default is the mean over 24 orders of the nodes, or",
        f"all there are. Our search: {budgets}; {searched(outcomes)}.",
        "The gap is that between HEFT and the bound, closed by the last budget; the plain bound is",
        "the largest of those that know neither windows of time nor kinds of nodes.",
        'The columns "first" are figures of an earlier, throwaway search of 6 s and its baselines.',
    ]


def _makespans(cluster: str, group: Sequence[File]) -> Table:
    rows = []
    for each in group:
        first = each.origin
        origin = [first.kube, first.heft, first.search] if first else [None] * 3
        rows.append(
            [
                each.name,
                each.bound_kind,
                str(each.tasks),
                *(_seconds(value) for value in (each.bound, each.kube, each.heft)),
                *(_seconds(value) for value in each.ours.values()),
                f"{each.best / each.heft:.3f}",
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
            *(f"ours {budget.text}" for budget in group[0].ours),
            "ours/HEFT",
            "first kube",
            "first HEFT",
            "first search",
        ],
        rows,
        words=2,
    )


def _ratios(cluster: str, group: Sequence[File]) -> Table:
    budgets = list(group[0].ours)
    # Makespans of kube-default, HEFT and the first search, where one was run.
    first = [
        (each, each.origin.kube, each.origin.heft, each.origin.search)
        for each in group
        if each.origin and each.origin.search is not None
    ]
    rows = []
    for title, some in (("all", group), ("with a first search", [each for each, *_ in first])):
        if not some:
            continue
        cells = [geometric_mean([each.heft / each.kube for each in some])]
        cells += [geometric_mean([each.ours[b] / each.heft for each in some]) for b in budgets]
        cells.append(geometric_mean([each.best / each.kube for each in some]))
        bound = geometric_mean([each.bound / each.heft for each in some])
        plain = geometric_mean([each.plain_bound / each.heft for each in some])
        shares = [_share(cells[len(budgets)], each) for each in (bound, plain)]
        rows.append(
            [
                f"{title}: {len(some)} files",
                *(f"{cell:.3f}" for cell in (*cells, bound)),
                percent(shares[0]),
                f"{plain:.3f}",
                percent(shares[1]),
            ]
        )
    if first:
        by_heft = geometric_mean([search / heft for _, _, heft, search in first])
        rows.append(
            [
                f"first figures: {len(first)} files",
                f"{geometric_mean([heft / kube for _, kube, heft, _ in first]):.3f}",
                *(f"{by_heft:.3f}" for _ in budgets),
                f"{geometric_mean([search / kube for _, kube, _, search in first]):.3f}",
                *[""] * 4,
            ]
        )
    headings = [
        "",
        "HEFT/kube",
        *(f"ours {budget.text}/HEFT" for budget in budgets),
        "ours/kube",
        "bound/HEFT",
        "gap closed, %",
        "plain bound/HEFT",
        "gap closed, %",
    ]
    return Table(f"Cluster {cluster}: geometric means", headings, rows)


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"
