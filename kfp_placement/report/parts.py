"""The parts of a report, from top to bottom."""

from collections.abc import Sequence
from dataclasses import dataclass

from kfp_placement.report import promises, summary, values
from kfp_placement.report.comparison import comparison
from kfp_placement.report.critical_path import LimitRow, limit_rows, scarcest, shares_by_kind
from kfp_placement.report.dag import dag
from kfp_placement.report.drawing import Drawing, Pen, image, inline
from kfp_placement.report.gantt import gantt, is_summed_up, nodes_busy, nodes_shown
from kfp_placement.report.limits import Limits
from kfp_placement.report.markup import NOTHING, Markup, join, name, tag, text
from kfp_placement.report.palette import NodeColours
from kfp_placement.report.steps_table import steps_table
from kfp_placement.report.verdict import bound_words, headline, search_verdict, tells_every_choice
from kfp_placement_engine.model.plan import Plan

_SOURCES = {
    "kfp-package": "a KFP package",
    "argo-workflow": "an Argo Workflow",
    "wfformat": "a workflow in wfformat",
}

_PAGE_ROOM, _NOTEBOOK_ROOM = 1198.0, 760.0
"""Room for the graph on a wide screen, in pixels."""

_HEADING = "line-height:1.25"
"""Notebooks set lines of a heading so close that they touch."""

_SPACE = Markup(" ")

_STEPS_NAMED = 10
"""Steps that one line names, of those that fit no node for one reason."""


@dataclass(frozen=True)
class Context:
    """What all parts need.

    Attributes:
        plan: the plan.
        limits: how much is drawn one by one.
        colours: colours of nodes.
        pen: how drawings are written.
        top: level of the main heading (1 to 5).
    """

    plan: Plan
    limits: Limits
    colours: NodeColours
    pen: Pen
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
        tag("p", Markup("Placement plan"), class_="kp-eyebrow"),
        tag(f"h{context.top}", name(plan.run_name), style=_HEADING),
        tag("p", text(f"{count} on {nodes}{source}, read from {source_words}"), class_="kp-lead"),
        tag("p", text(headline(plan)), class_="kp-verdict"),
        *_lead(promises.headline(plan)),
        *_lead(promises.submission(plan)),
        tag("ul", *_tiles(plan), class_="kp-tiles"),
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
            "" if ends else "kp-bad",
        ),
        _tile(
            "Steps placed",
            f"{placed:,} of {total:,}",
            f"{missing:,} {'fits' if missing == 1 else 'fit'} no node"
            if missing
            else f"on {values.counted(len(summary.steps_by_node(plan)), 'node')}",
            "kp-bad" if missing else "",
        ),
    ]
    promised = promises.end(plan)
    if promised is not None:
        tiles.append(_tile("End, by past runs", *promised))
    compared = summary.schedules(plan)[1:]
    if compared and compared[0].verdict != values.NONE:
        first = compared[0]
        word = "than" if first.verdict.endswith(("shorter", "longer")) else "against"
        against = f"{word} {first.name} ({first.makespan})"
        if first.latency_excess_ms > plan.figures.latency_excess_ms:
            against += ", which breaks a latency rule"
        good = "kp-good" if first.verdict.endswith("shorter") else ""
        tiles.append(_tile("The plan is", first.verdict, against, good))
    if ends:
        value, *notes = search_verdict(plan).split("; ")
        if tells_every_choice(plan):
            value, notes = "every choice tried", [value, *notes]
        note = "; ".join(filter(None, (*notes, bound_words(plan))))
        tiles.append(_tile("Search", value, note))
    if summary.shows_latency(plan):
        excess = plan.figures.latency_excess_ms
        note = "beyond the latency rule" if excess > 0 else "every latency rule is kept"
        unknown = summary.is_latency_unknown(plan.figures)
        value = "unknown" if unknown else values.latency(plan.figures.latency_ms)
        tiles.append(_tile("Latency to users", value, note, "kp-bad" if excess > 0 else ""))
    return tiles


def _lead(words: str) -> list[Markup]:
    return [tag("p", text(words), class_="kp-lead")] if words else []


def _tile(title: str, value: str, note: str, css_class: str = "") -> Markup:
    """A figure; without any style it reads as a sentence."""
    return tag(
        "li",
        tag("span", text(title), class_="kp-label"),
        _SPACE,
        tag("b", text(value), class_=f"kp-value {css_class}".strip()),
        _SPACE,
        tag("span", text(note), class_="kp-note"),
    )


def problems(context: Context) -> Markup:
    """Steps that no node can take, before anything else."""
    missing = context.plan.unschedulable
    if not missing:
        return NOTHING
    alike, most = summary.steps_by_obstacle(context.plan), context.limits.lines
    items = [tag("li", _named(steps), Markup(": "), text(reason)) for steps, reason in alike[:most]]
    heading = f"{values.counted(len(missing), 'step')} cannot be scheduled"
    return tag(
        "section",
        _heading(context, heading),
        tag("ul", *items, *_rest(len(alike) - len(items))),
        *_note(summary.unending(context.plan)),
        class_="kp-alert kp-bad",
    )


def _named(steps: Sequence[str]) -> Markup:
    more = [Markup("...")] if len(steps) > _STEPS_NAMED else []
    return tag("b", join([*map(name, steps[:_STEPS_NAMED]), *more], ", "))


def timeline(context: Context) -> Markup:
    """The Gantt chart."""
    plan, limits = context.plan, context.limits
    drawing = gantt(plan, context.colours, limits, context.pen)
    shown = len(nodes_shown(plan, limits))
    notes = []
    if is_summed_up(plan, limits):
        notes.append(f"{len(plan.steps):,} steps are too many to draw one by one.")
    busy = len(nodes_busy(plan.steps, plan.drivers))
    if busy > shown:
        notes.append(f"The {shown:,} nodes with most work of {busy:,} that carry pods of the run.")
    # Nodes with nothing but driver pods are drawn too.
    idle = len(plan.cluster_nodes) - busy
    if idle > 0:
        notes.append(f"{values.counted(idle, 'node')} without pods of the run not shown.")
    picture = _scroll("Time line by node", _picture(context, drawing), "")
    return _figure(context, "Time line", picture, *_note(" ".join(notes)))


def limiting(context: Context) -> Markup:
    """What the end of the run waits for, and what is scarce."""
    rows = limit_rows(context.plan)
    if not rows:
        return NOTHING
    kinds = ", ".join(f"{words} {share:.0%}" for words, share in shares_by_kind(context.plan))
    resource = scarcest(context.plan)
    scarce = f" Scarcest resource: {resource}." if resource else ""
    return _figure(
        context,
        "What limits this run",
        tag("ol", *map(_limit_item, rows)),
        *_note(f"What the end of the run waits for, in order of time. In all: {kinds}.{scarce}"),
    )


def _limit_item(row: LimitRow) -> Markup:
    time = tag("b", text(values.duration(row.seconds)))
    return tag("li", time, Markup(f" ({row.share:.0%}): "), text(row.text))


def graph(context: Context) -> Markup:
    """The DAG."""
    drawing = dag(context.plan, context.colours, context.limits, context.pen)
    pictures = []
    if drawing.parts:
        # Large graphs shrink while they can be read, then scroll; small ones are not blown up.
        if drawing.least > (_PAGE_ROOM if context.top == 1 else _NOTEBOOK_ROOM):
            hint = "The graph is wider than the page; scroll it sideways to see its end →"
            pictures.append(tag("p", text(hint), class_="kp-hint"))
        pictures.append(_scroll("Graph of steps", _picture(context, drawing), "kp-shaded"))
    return _figure(context, "Graph", *pictures, *_note(drawing.note))


def _picture(context: Context, drawing: Drawing) -> Markup:
    # Where nobody can point at a part of a drawing, it is an image.
    return inline(drawing, context.pen) if context.pen.tooltips else image(drawing)


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
            items.append(tag("li", *step, text(notice.message), _SPACE, code))
        items += _rest(len(plan.notices) - len(shown))
        parts.append(
            tag(
                "section",
                _heading(context, "Warnings"),
                tag("ul", *items),
                class_="kp-alert kp-warn",
            )
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
    return tag("section", _heading(context, title), body, class_="kp-card")


def what_if(context: Context, answer: Markup) -> Markup:
    """What changes would make of the run, as `what_if_html` makes it; nothing without an answer."""
    return _figure(context, "What if", answer) if answer else NOTHING


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
    return tag("section", _heading(context, title), *children, class_="kp-card")


def _heading(context: Context, title: str) -> Markup:
    return tag(f"h{context.top + 1}", text(title), style=_HEADING)


def _scroll(label: str, child: Markup, css_class: str) -> Markup:
    """A region that scrolls sideways, reachable by keyboard, so that the page itself never does."""
    return tag(
        "div",
        child,
        class_=f"kp-scroll {css_class}".strip(),
        style="overflow-x:auto",
        tabindex="0",
        role="region",
        aria_label=label,
    )


def _note(words: str) -> list[Markup]:
    return [tag("p", text(words), class_="kp-remark")] if words else []


def _rest(count: int) -> list[Markup]:
    return [tag("li", Markup(f"and {count:,} more"))] if count > 0 else []
