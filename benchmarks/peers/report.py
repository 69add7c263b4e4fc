"""The table of the peers: how far each is above the bound, and ours below it."""

from collections.abc import Mapping, Sequence
from statistics import fmean, geometric_mean

from benchmarks.outcomes import Outcome, by_budget
from benchmarks.tables import Table, percent

_BESIDE = ("heft", "kube-default")
"""Baselines above the peers in the table, for orientation."""

_NOT_DEFINED = (
    "Runs with driver pods, volumes or limited loops have no peers: none is defined for them."
)


def peer_parts(outcomes: Sequence[Outcome], asked: Sequence[str]) -> list[Table | Sequence[str]]:
    """Return the paragraphs and table about the peers.

    Args:
        outcomes: measured outcomes.
        asked: names of the peers; none = no table.
    """
    if not asked:
        return []
    names = dict.fromkeys(name for each in outcomes for name in each.references.peers)
    if not names:
        return [[_NOT_DEFINED]]
    budgets = by_budget(outcomes)
    headings = [
        "peer",
        "cases",
        "above bound, %",
        "above optimum, %",
        *(f"ours shorter, {budget.text}, %" for budget in budgets),
    ]
    rows = [_row(name, list(budgets.values())) for name in (*_BESIDE, *names)]
    about = _about(names)
    if not all(each.references.peers for each in outcomes):
        about.append(_NOT_DEFINED)
    return [about, Table("Schedulers of others", headings, rows)]


def _row(name: str, by_budgets: Sequence[Sequence[Outcome]]) -> list[str]:
    """Means over cases and seeds that have the peer; it does not depend on the budget."""
    groups = [[each for each in group if name in _seconds(each)] for group in by_budgets]
    first = groups[0]
    above = [_seconds(each)[name] / each.optimum - 1 for each in first if each.optimum]
    return [
        name,
        str(len({each.case for each in first})),
        percent(geometric_mean([_seconds(each)[name] / each.bound for each in first]) - 1, 2),
        percent(fmean(above), 2) if above else "-",
        *(
            percent(1 - geometric_mean([each.makespan / _seconds(each)[name] for each in group]), 2)
            for group in groups
        ),
    ]


def _seconds(outcome: Outcome) -> Mapping[str, float]:
    """Makespans of baselines, where there are peers, and of the peers."""
    references = outcome.references
    return {**references.baselines, **references.peers} if references.peers else {}


def _about(names: Mapping[str, None]) -> list[str]:
    lines = ["Peers go through the same simulation; means over cases and seeds, of ratios."]
    if any(name.startswith("cws-") for name in names):
        lines += [
            "cws-ORDER-NODES is the Common Workflow Scheduler: an order of waiting steps, and how",
            "nodes are chosen; a step that fits nowhere is skipped.",
        ]
    if "wow" in names:
        lines += [
            "wow starts a step where the fewest of its bytes are missing; unlike WOW, it copies",
            "nothing ahead of time.",
        ]
    if "peft" in names:
        lines.append("peft is a plan made before the run, as HEFT's is.")
    return lines
