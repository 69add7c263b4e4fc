"""A plan beside the schedules of others: the table, and how two makespans compare.

A percentage stands only where both figures rest on something: with all durations assumed, plan and
baseline are compared in words.
"""

import math

from kfp_placement_engine.plans.comparison import Figures
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.views.document import Cell, Column, NumberColumn, Row, Table, Tone
from kfp_placement_engine.views.formatting import NONE, counted, duration, finite, latency

NEVER_ENDS = "does not end"
"""Text in place of a makespan if a step fits no node."""

_PLAN = "this plan"
_LEAST_NAME = 12

_NOTICEABLE_MS = 1e-3
"""Difference below which two round trips are equal."""

_SAME = 5e-4
"""Makespans closer than this share of each other count as equal: it prints as 0.0%."""


def comparison_table(plan: Plan) -> Table:
    """Return a table with the plan, each baseline in the order asked for, and the lower bound."""
    schedules = {_PLAN: plan.figures, **plan.comparison.baselines}
    ending = [each.makespan_seconds for each in schedules.values() if not each.unplaced]
    longest = max([*filter(math.isfinite, ending), plan.comparison.lower_bound.seconds, 1e-9])
    columns = [
        Column("SCHEDULE", shrink_to=_LEAST_NAME),
        NumberColumn("MAKESPAN"),
        Column("THE PLAN IS"),
        NumberColumn("UNPLACED", optional=True, under="MAKESPAN", reads="{} unplaced"),
        NumberColumn("LATENCY", optional=True),
        NumberColumn("BEYOND RULE", optional=True, under="LATENCY", reads="{} beyond the rule"),
    ]
    rows = []
    for name, figures in schedules.items():
        is_plan = figures is plan.figures
        tone = Tone.STRONG if is_plan else Tone.PLAIN
        share = None if figures.unplaced else figures.makespan_seconds / longest
        words = "" if is_plan else difference_text(plan, figures)
        is_better = (change(plan, figures) or 0.0) < 0 or figures.unplaced > plan.figures.unplaced
        excess, trips = figures.latency_excess_ms, round_trips_text(figures)
        beyond = Cell(latency(excess), Tone.BAD) if math.isfinite(excess) and excess > 0 else ""
        cells: list[str | Cell] = [
            name,
            Cell(makespan(figures), tone, share=finite(share)),
            Cell(words, Tone.GOOD if is_better else Tone.PLAIN),
            Cell(f"{figures.unplaced}", Tone.BAD) if figures.unplaced else "",
            trips if shows_latency(plan) else "",
            beyond,
        ]
        rows.append(Row(cells, tone))
    bound = plan.comparison.lower_bound.seconds
    if not plan.leaves_out:
        limit = Cell(duration(bound), share=finite(bound / longest))
        rows.append(Row(["lower bound", limit, "", "", "", ""]))
    caption = f"All simulated with the same model, dispatch {plan.search.dispatch}."
    if plan.grounds.all_durations_assumed:
        caption += " No percentages: all durations are assumed."
    table = Table("Comparison", columns, rows, caption=caption, notes=_notes(plan))
    return table.without_empty()


def _notes(plan: Plan) -> list[str]:
    """Return notes on verdicts, ranges of means, the latency rule, and the use of nodes."""
    notes = []
    for name, figures in plan.comparison.baselines.items():
        liberties = taken_liberties(plan, figures)
        if (change(plan, figures) or 0.0) > 0 and liberties:
            notes.append(f"{difference_text(plan, figures)}, but {name} {' and '.join(liberties)}")
        if over := spread(figures):
            notes.append(f"{name}: a mean, {over}")
    schedules = {_PLAN: plan.figures, **plan.comparison.baselines}
    if any(each.latency_excess_ms > 0 for each in schedules.values()):
        rule = f"round trip above the best node's plus {plan.search.latency_tolerance.text}"
        notes.append(f"beyond rule: {rule}")
    uses = [use for name, each in schedules.items() if (use := _use(plan, name, each))]
    return [*notes, f"use of the nodes: {'; '.join(uses)}"] if uses else notes


def _use(plan: Plan, name: str, figures: Figures) -> str:
    """Describe the average use of the nodes: `this plan 52% (cpu 71%, memory 33%)`.

    The first figure is the mean of CPU and memory by the plan's weights; resources that nothing
    requests, and the number of pods, are left out.
    """
    used = figures.use.items()
    each = [f"{key} {share:.0%}" for key, share in used if share > 0 and key != "pods"]
    if not each or figures.unplaced:
        return ""
    weighted = plan.search.weights.mean_of(figures.use)
    whole = "" if weighted is None else f"{weighted:.0%} "
    return f"{name} {whole}({', '.join(each)})"


def difference_text(plan: Plan, figures: Figures) -> str:
    """Compare the plan with a baseline: `14.2% shorter`, `equal`, `places 2 more`."""
    difference = figures.unplaced - plan.figures.unplaced
    if difference:
        return f"places {abs(difference)} {'more' if difference > 0 else 'fewer'}"
    share = change(plan, figures)
    if share is None:
        return NONE
    if not share:
        return "equal"
    word = "shorter" if share < 0 else "longer"
    return word if plan.grounds.all_durations_assumed else f"{abs(share):.1%} {word}"


def change(plan: Plan, figures: Figures) -> float | None:
    """Return how much longer the plan is than a baseline, as a share; None if one does not end.

    Below 0 it is shorter; makespans that print the same are equal.
    """
    mine, other = finite(plan.figures.makespan_seconds), finite(figures.makespan_seconds)
    if not can_end(plan) or figures.unplaced or mine is None or other is None:
        return None
    return 0.0 if is_same(plan.figures, figures) else (mine - other) / max(other, 1e-9)


def can_end(plan: Plan) -> bool:
    """Return whether the run can end: each of its steps has a node."""
    return plan.figures.unplaced == 0


def makespan(figures: Figures) -> str:
    """Format the makespan of a schedule; a run with a step without a node does not end."""
    return NEVER_ENDS if figures.unplaced else duration(figures.makespan_seconds)


def spread(figures: Figures) -> str:
    """Return the range behind a mean: `11m17s to 43m39s over 24 tie-breaks`, or ""."""
    least, most = duration(figures.fastest_seconds), duration(figures.slowest_seconds)
    if figures.unplaced or least == most:
        return ""
    return f"{least} to {most} over {figures.tie_breaks} tie-breaks"


def is_same(figures: Figures, other: Figures) -> bool:
    """Return whether two makespans print the same, or differ by what prints as 0.0%."""
    mine, others = figures.makespan_seconds, other.makespan_seconds
    if mine == others or duration(mine) == duration(others):
        return True
    return abs(mine - others) < _SAME * max(others, 1e-9)


def taken_liberties(plan: Plan, figures: Figures) -> list[str]:
    """Return what a baseline does that the plan may not: `breaks a latency rule`."""
    liberties = ["breaks a latency rule"] if breaks_more(plan, figures) else []
    if figures.moves_volumes and not plan.figures.moves_volumes:
        liberties.append("moves a volume between nodes")
    return liberties


def breaks_more(plan: Plan, figures: Figures) -> bool:
    """Return whether a baseline breaks latency rules that the plan keeps, or keeps better."""
    return figures.latency_excess_ms > plan.figures.latency_excess_ms + _NOTICEABLE_MS


def shows_latency(plan: Plan) -> bool:
    """Return whether the plan or a baseline has any figure on latency."""
    schedules = (plan.figures, *plan.comparison.baselines.values())
    return any(step.latency_ms is not None for step in plan.steps) or any(
        figures.latency_ms > 0 for figures in schedules
    )


def round_trips_text(figures: Figures) -> str:
    """Format the round trips of a schedule; unknown if that of a step with a latency rule is."""
    return "unknown" if math.isinf(figures.latency_excess_ms) else latency(figures.latency_ms)


def unending(plan: Plan) -> str:
    """Return what times mean in the plan of a run that does not end, or ""."""
    if can_end(plan):
        return ""
    one = plan.figures.unplaced == 1
    steps = f"{counted(plan.figures.unplaced, 'step')} {'gets' if one else 'get'} no node"
    elsewhere = "it ran elsewhere for its" if one else "they ran elsewhere for their"
    return (
        f"The run does not end while {steps}; all times are what they would be if {elsewhere}"
        " run time on the reference node."
    )
