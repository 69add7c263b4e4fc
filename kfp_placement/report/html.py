"""The plan as one HTML page without scripts, and as a fragment for a notebook.

Both are made of the same parts. Every style is scoped to one class, so that a fragment changes
nothing else on the page it is put into; the page forbids itself everything but its own styles.
"""

import hashlib
from importlib import resources

from kfp_placement.report import parts
from kfp_placement.report.limits import NOTEBOOK, REPORT, Limits
from kfp_placement.report.markup import Markup, tag, text
from kfp_placement.report.palette import NodeColours, colour_rules
from kfp_placement.report.summary import steps_by_node
from kfp_placement_engine.model.plan import Plan

SCOPE = "kfp-placement"
"""Class of the element that holds everything; each selector of the style sheet starts with it."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def plan_html(plan: Plan) -> str:
    """One self-contained page: no scripts, nothing loaded from anywhere."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        # The attribute is `http-equiv`; the first of the page's own tags, before any style.
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", text(f"Plan of {plan.run_name}")),
        tag(
            "style",
            Markup(f"@page{{size:A4 landscape;margin:12mm}}body{{margin:0}}{style_sheet()}"),
        ),
    )
    main = tag("main", *_body(plan, REPORT, top=1), class_=f"{SCOPE} page")
    page = tag("html", head, tag("body", main), lang="en")
    return f"<!doctype html>\n{page}\n"


def notebook_html(plan: Plan) -> str:
    """The same parts as a fragment, for `_repr_html_`; its size is bounded whatever the plan."""
    style = tag("style", style_sheet())
    return tag("div", style, *_body(plan, NOTEBOOK, top=3), class_=SCOPE)


def style_sheet() -> Markup:
    """All styles, scoped."""
    file = resources.files("kfp_placement.report").joinpath("report.css")
    return Markup(colour_rules(f".{SCOPE}") + file.read_text("utf-8"))


def _body(plan: Plan, limits: Limits, *, top: int) -> list[Markup]:
    counts = steps_by_node(plan)
    order = dict.fromkeys((*plan.cluster_nodes, *sorted(counts)))
    colours = NodeColours([node for node in order if node in counts])
    context = parts.Context(plan, limits, colours, _prefix(plan), top)
    return [
        parts.header(context),
        parts.problems(context),
        parts.timeline(context),
        parts.graph(context),
        parts.compared(context),
        parts.steps(context),
        parts.notes(context),
        parts.footer(context),
    ]


def _prefix(plan: Plan) -> str:
    """Start of all ids, of this plan alone: two reports in one notebook share a page."""
    key = f"{plan.run_name}\0{plan.seed}\0{plan.figures}\0{plan.cluster_nodes}"
    return f"kp{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:8]}"
