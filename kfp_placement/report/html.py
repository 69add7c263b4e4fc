"""The plan as one HTML page without scripts, and as a fragment for a notebook.

Both are made of the same parts. Every style is scoped to one class, so that a fragment changes
nothing else on the page it is put into; the page forbids itself everything but its own styles.

A notebook brings styles of its own for tables, lists and images (JupyterLab, VS Code, nbconvert);
the fragment's win by naming their class three times. One that is not trusted drops all of them:
the fragment must read without, so what matters most is in the elements themselves.
"""

import hashlib
from functools import cache
from importlib import resources

from kfp_placement.report import drawing, parts
from kfp_placement.report.drawing import Pen, compact
from kfp_placement.report.limits import NOTEBOOK, REPORT, Limits
from kfp_placement.report.markup import NOTHING, Markup, tag, text
from kfp_placement.report.palette import NodeColours, colour_rules, theme_rules
from kfp_placement.report.summary import steps_by_node
from kfp_placement_engine.model.plan import Plan

SCOPE = "kfp-placement"
"""Class of the element that holds everything; each selector of the style sheet starts with it."""

_STRONG = f".{SCOPE}" * 3

_NO_FORMULAS = "mathjax_ignore tex2jax_ignore"
"""Classes that keep notebooks from reading `$(id)` in a name as the start of a formula."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def plan_html(plan: Plan, more: Markup = NOTHING) -> str:
    """One self-contained page: no scripts, nothing loaded from anywhere.

    Args:
        plan: the plan.
        more: what changes would make of it, as `what_if_html` says it.
    """
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        # The attribute is `http-equiv`; the first of the page's own tags, before any style.
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", text(f"Plan of {plan.run_name}")),
        tag("style", page_style()),
    )
    main = tag(
        "main", *_body(plan, REPORT, tooltips=True, top=1, more=more), class_=f"{SCOPE} kp-page"
    )
    page = tag("html", head, tag("body", main), lang="en")
    return f"<!doctype html>\n{page}\n"


def notebook_html(plan: Plan) -> str:
    """The same parts as a fragment, for `_repr_html_`; its size is bounded whatever the plan."""
    style = tag("style", notebook_style())
    body = _body(plan, NOTEBOOK, tooltips=False, top=3)
    return tag("div", style, *body, class_=f"{SCOPE} {_NO_FORMULAS}")


@cache
def page_style() -> Markup:
    """All styles of a page of its own."""
    own = (
        f"{colour_rules(f'.{SCOPE}')}{drawing.style_sheet()}{_read('view.css')}{_read('page.css')}"
    )
    return Markup(f"@page{{size:A4 landscape;margin:12mm}}body{{margin:0}}{own}")


@cache
def notebook_style() -> Markup:
    """All styles of a fragment, stronger than those of the page around it."""
    own = _read("view.css").replace(f".{SCOPE}", _STRONG)
    return Markup(colour_rules(_STRONG) + theme_rules(_STRONG) + own)


def _read(file: str) -> str:
    return compact(resources.files("kfp_placement.report").joinpath(file).read_text("utf-8"))


def node_colours(plan: Plan) -> NodeColours:
    """The colours of all nodes on which the plan, or the default scheduler, puts a step."""
    used = {*steps_by_node(plan), *(step.node for step in plan.default_schedule)}
    order = dict.fromkeys((*plan.cluster_nodes, *sorted(used)))
    return NodeColours([node for node in order if node in used])


def _body(
    plan: Plan, limits: Limits, *, tooltips: bool, top: int, more: Markup = NOTHING
) -> list[Markup]:
    context = parts.Context(plan, limits, node_colours(plan), Pen(_prefix(plan), tooltips), top)
    return [
        parts.header(context),
        parts.problems(context),
        parts.timeline(context),
        parts.limiting(context),
        parts.graph(context),
        parts.compared(context),
        parts.steps(context),
        parts.notes(context),
        parts.what_if(context, more),
        parts.footer(context),
    ]


def _prefix(plan: Plan) -> str:
    """Start of all ids, of this plan alone: two reports in one notebook share a page."""
    key = f"{plan.run_name}\0{plan.seed}\0{plan.figures}\0{plan.cluster_nodes}"
    return f"kp{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:8]}"
