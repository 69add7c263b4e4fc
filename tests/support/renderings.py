"""A plan as people see it: as text, as a page, in a notebook."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from kfp_placement_engine.plans.comparison import ScheduledStep
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.render.html import html_fragment, html_page
from kfp_placement_engine.render.text import TextStyle, document_text
from kfp_placement_engine.views.drawings import Bar, DrawnSchedule, Lane
from kfp_placement_engine.views.plans.detail import NOTEBOOK, PAGE, TEXT, WIDE, WITH_REASONS
from kfp_placement_engine.views.plans.view import plan_view
from kfp_placement_engine.views.plans.what_if import Answer


def plan_table(
    plan: Plan,
    *,
    wide: bool = False,
    reasons: bool = False,
    columns: int | None = None,
    colour: bool = False,
) -> str:
    """Return what `-o table`, `-o wide` or `demo` print, with reasons beside the usual columns."""
    detail = WIDE if wide else WITH_REASONS if reasons else TEXT
    return document_text(plan_view(plan, detail), TextStyle(columns, colour))


def steps_of_table(plan: Plan, **how: Any) -> str:
    """The part of `plan_table` that has a line for each step, below a line of titles."""
    return plan_table(plan, **how).split("\n\n")[2]


def plan_page(plan: Plan, answer: Answer | None = None) -> str:
    """Return the page that `-o html` writes."""
    return html_page(plan_view(plan, PAGE, answer=answer))


def plan_fragment(plan: Plan) -> str:
    """Return the HTML that a notebook shows."""
    return html_fragment(plan_view(plan, NOTEBOOK))


def schedule_of(title: str, steps: Iterable[ScheduledStep]) -> DrawnSchedule:
    """Return the drawing of steps, with a lane for each node in order of their names."""
    bars = defaultdict[str, list[Bar]](list)
    for each in steps:
        bars[each.node].append(Bar(each.name, "", each.start_seconds, each.finish_seconds))
    return DrawnSchedule(title, [Lane(node, "", bars[node]) for node in sorted(bars)])
