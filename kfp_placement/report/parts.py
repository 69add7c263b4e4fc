"""The parts of a report, from top to bottom."""

from collections.abc import Sequence
from dataclasses import dataclass

from kfp_placement.report import summary, values
from kfp_placement.report.comparison import comparison
from kfp_placement.report.dag import dag
from kfp_placement.report.gantt import gantt, is_summed_up, legend_items, nodes_busy, nodes_shown
from kfp_placement.report.limits import Limits
from kfp_placement.report.markup import NOTHING, Markup, join, name, tag, text
from kfp_placement.report.palette import NodeColours
from kfp_placement.report.steps_table import steps_table
from kfp_placement.report.verdict import headline, search_verdict
from kfp_placement_engine.model.plan import Plan

_SOURCES = {
    "kfp-package": "a KFP package",
    "argo-workflow": "an Argo Workflow",
    "wfformat": "a workflow in wfformat",
}

_SMALLEST = 0.6
"""Share of its natural size to which the graph shrinks: its names are 7.5 pixels high then."""

_PAGE_ROOM, _NOTEBOOK_ROOM = 1198.0, 760.0
"""Room for the graph on a wide screen, in pixels."""


@dataclass(frozen=True)
class Context:
    """What all parts need.

    Attributes:
        plan: the plan.
        limits: how much is drawn one by one.
        colours: colours of nodes.
        prefix: start of all ids.
        top: level of the main heading (1 to 5).
    """

    plan: Plan
    limits: Limits
    colours: NodeColours
    prefix: str
    top: int


def header(context: Context) -> Markup:
    """Name of the run, what it is planned on, and the figures that matter most."""
    plan = context.plan
    nodes = values.counted(len(plan.cluster_nodes), "node")
    source = f" ({plan.cluster_source})" if plan.cluster_source else ""
    count = values.counted(len(plan.steps), "step")
    source_words = _SOURCES.get(plan.run_source, plan.run_source)
    return tag(
        "header",
        tag("p", Markup("Placement plan"), class_="eyebrow"),
        tag(f"h{context.top}", name(plan.run_name)),
        tag("p", text(f"{count} on {nodes}{source}, read from {source_words}"), class_="lead"),
        tag("p", text(headline(plan)), class_="headline"),
        tag("dl", *_tiles(plan), class_="tiles"),
    )


def _tiles(plan: Plan) -> list[Markup]:
    total, placed = len(plan.steps), summary.placed(plan)
    missing = total - placed
    ends = summary.ends(plan)
    tiles = [
        _tile(
            "Makespan",
            summary.makespan(plan.figures),
            "from submission to end" if ends else "while a step fits no node",
            "" if ends else "bad",
        ),
        _tile(
            "Steps placed",
            f"{placed:,} of {total:,}",
            f"{missing:,} {'fits' if missing == 1 else 'fit'} no node"
            if missing
            else f"on {values.counted(len(summary.steps_by_node(plan)), 'node')}",
            "bad" if missing else "",
        ),
    ]
    compared = summary.schedules(plan)[1:]
    if compared and compared[0].verdict != values.NONE:
        first = compared[0]
        word = "than" if first.verdict.endswith(("shorter", "longer")) else "against"
        against = f"{word} {first.name} ({first.makespan})"
        if first.latency_excess_ms > plan.figures.latency_excess_ms:
            against += ", which breaks a latency rule"
        good = "good" if first.verdict.endswith("shorter") else ""
        tiles.append(_tile("The plan is", first.verdict, against, good))
    if ends:
        words, _, gates = search_verdict(plan).partition("; ")
        bound = f"no plan ends before {values.duration(plan.lower_bound.seconds)}"
        tiles.append(_tile("Search", words, f"{gates}; {bound}" if gates else bound))
    if summary.shows_latency(plan):
        excess = plan.figures.latency_excess_ms
        note = "beyond the latency rule" if excess > 0 else "every latency rule is kept"
        unknown = summary.is_latency_unknown(plan.figures)
        value = "unknown" if unknown else values.latency(plan.figures.latency_ms)
        tiles.append(_tile("Latency to users", value, note, "bad" if excess > 0 else ""))
    return tiles


def _tile(title: str, value: str, note: str, css_class: str = "") -> Markup:
    return tag(
        "div",
        tag("dt", text(title)),
        tag("dd", text(value), class_=f"value {css_class}".strip()),
        tag("dd", text(note), class_="note"),
    )


def problems(context: Context) -> Markup:
    """Steps that no node can take, before anything else."""
    missing = context.plan.unschedulable
    if not missing:
        return NOTHING
    shown = missing[: context.limits.lines]
    items = [tag("li", tag("b", name(step)), Markup(": "), text(reason)) for step, reason in shown]
    heading = f"{values.counted(len(missing), 'step')} cannot be scheduled"
    return tag(
        "section",
        _heading(context, heading),
        tag("ul", *items, *_rest(len(missing) - len(shown))),
        *_note(summary.unending(context.plan)),
        class_="alert bad",
    )


def timeline(context: Context) -> Markup:
    """The Gantt chart with its legend."""
    plan, limits = context.plan, context.limits
    drawing = gantt(plan, context.colours, limits, context.prefix)
    shown = len(nodes_shown(plan, limits))
    notes = []
    if is_summed_up(plan, limits):
        notes.append(f"{len(plan.steps):,} steps are too many to draw one by one.")
    busy = len(nodes_busy(plan))
    if busy > shown:
        notes.append(f"The {shown:,} nodes with most work of {busy:,} that carry pods of the run.")
    # Nodes with nothing but driver pods are drawn too.
    idle = len(plan.cluster_nodes) - busy
    if idle > 0:
        notes.append(f"{values.counted(idle, 'node')} without pods of the run not shown.")
    legend = [_legend_item(context, css, words) for css, words in legend_items(plan, limits)]
    return _figure(
        context,
        "Time line",
        tag("ul", *legend, class_="legend", aria_label="Legend"),
        _scroll("Time line by node", drawing, "wide"),
        *_note(" ".join(notes)),
    )


def _legend_item(context: Context, css_class: str, words: str) -> Markup:
    parts = []
    if css_class in ("conditional", "assumed"):
        parts.append(tag("rect", width="22", height="12", rx="2", class_="run"))
        fill = f"url(#{context.prefix}-{css_class})"
        parts.append(tag("rect", width="22", height="12", rx="2", fill=fill))
    elif css_class == "driver":
        parts.append(tag("rect", y="4", width="22", height="5", class_="driver"))
    else:
        parts.append(tag("rect", width="22", height="12", rx="2", class_=css_class))
    if css_class not in ("driver", "load"):
        parts.append(tag("rect", width="22", height="12", rx="2", class_="outline"))
    swatch = tag("svg", *parts, viewBox="-1 -1 24 14", class_="swatch n-key", aria_hidden="true")
    return tag("li", swatch, text(words))


def graph(context: Context) -> Markup:
    """The DAG, with the nodes' colours as its legend."""
    drawing = dag(context.plan, context.colours, context.limits, context.prefix)
    pictures = []
    if drawing.svg:
        # Large graphs shrink while they can be read, then scroll; small ones are not blown up.
        least = drawing.width * _SMALLEST
        box = tag("div", drawing.svg, style=f"min-width:{least:.0f}px", class_="natural")
        if least > (_PAGE_ROOM if context.top == 1 else _NOTEBOOK_ROOM):
            hint = "The graph is wider than the page; scroll it sideways to see its end →"
            pictures.append(tag("p", text(hint), class_="hint"))
        pictures.append(_scroll("Graph of steps", box, "shaded"))
    return _figure(context, "Graph", _nodes_legend(context), *pictures, *_note(drawing.note))


def _nodes_legend(context: Context) -> Markup:
    counts = summary.steps_by_node(context.plan)
    nodes = [node for node in nodes_shown(context.plan, context.limits) if counts[node]]
    items = []
    for node in nodes[:24]:
        rect = tag("rect", width="12", height="12", rx="3", class_="run")
        css = f"swatch small {context.colours.css_class(node)}"
        swatch = tag("svg", rect, viewBox="0 0 12 12", class_=css, aria_hidden="true")
        count = tag("small", Markup(f" {values.counted(counts[node], 'step')}"))
        items.append(tag("li", swatch, name(node), count))
    more = len(counts) - len(items)
    if more > 0:
        items.append(tag("li", text(f"and {values.counted(more, 'node')} more; colours repeat")))
    elif context.colours.repeat:
        items.append(tag("li", Markup("colours repeat")))
    return tag("ul", *items, class_="legend", aria_label="Nodes")


def compared(context: Context) -> Markup:
    """Baselines and bound beside the plan."""
    return _figure(
        context, "Comparison", _scroll("Comparison with baselines", comparison(context.plan), "")
    )


def steps(context: Context) -> Markup:
    """The step table."""
    plan, limits = context.plan, context.limits
    notes = []
    if len(plan.steps) > limits.rows:
        rest = len(plan.steps) - limits.rows
        notes.append(f"{rest:,} more steps not shown; kfp-placement plan -o json has them all.")
    if unused := summary.unused_locations(plan):
        notes.append(f"{unused[0].upper()}{unused[1:]}.")
    table = steps_table(plan, context.colours, limits)
    return _figure(context, "Steps", _scroll("Steps", table, ""), *_note(" ".join(notes)))


def notes(context: Context) -> Markup:
    """Warnings, what a policy set, and assumptions."""
    plan, limits = context.plan, context.limits
    parts = []
    if plan.notices:
        shown = plan.notices[: limits.lines]
        items = []
        for notice in shown:
            step = [tag("b", name(notice.step)), Markup(": ")] if notice.step else []
            code = tag("code", name(notice.code))
            items.append(tag("li", *step, text(notice.message), Markup(" "), code))
        items += _rest(len(plan.notices) - len(shown))
        parts.append(
            tag("section", _heading(context, "Warnings"), tag("ul", *items), class_="alert warn")
        )
    parts.append(_list(context, "From the cluster's policy", plan.policy))
    parts.append(_list(context, "Assumed", summary.assumption_lines(plan)))
    return join(parts)


def _list(context: Context, title: str, lines: Sequence[str]) -> Markup:
    if not lines:
        return NOTHING
    limit = context.limits.lines
    items = [tag("li", text(line)) for line in lines[:limit]]
    body = tag("ul", *items, *_rest(len(lines) - limit))
    return tag("section", _heading(context, title), body, class_="card")


def footer(context: Context) -> Markup:
    """What it takes to get the same plan again."""
    plan = context.plan
    replay = f"--seed {plan.seed} --generations {plan.generations}"
    facts = (
        f"Dispatch {plan.dispatch}, objective {plan.objective}, {summary.searched(plan)}."
        " The same plan again: "
    )
    return tag("footer", tag("p", text(facts), tag("code", text(replay))))


def _figure(context: Context, title: str, *children: Markup) -> Markup:
    return tag("section", _heading(context, title), *children, class_="card")


def _heading(context: Context, title: str) -> Markup:
    return tag(f"h{context.top + 1}", text(title))


def _scroll(label: str, child: Markup, css_class: str) -> Markup:
    """A region that scrolls sideways, reachable by keyboard, so that the page itself never does."""
    return tag(
        "div",
        child,
        class_=f"scroll {css_class}".strip(),
        tabindex="0",
        role="region",
        aria_label=label,
    )


def _note(words: str) -> list[Markup]:
    return [tag("p", text(words), class_="remark")] if words else []


def _rest(count: int) -> list[Markup]:
    return [tag("li", Markup(f"and {count:,} more"))] if count > 0 else []
