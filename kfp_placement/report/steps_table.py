"""The step table of a report."""

from kfp_placement.report import summary, values
from kfp_placement.report.limits import Limits
from kfp_placement.report.markup import NOTHING, Markup, name, tag, text
from kfp_placement.report.palette import NodeColours
from kfp_placement.report.visible import visible
from kfp_placement_engine.model.plan import Plan, PlannedStep


def steps_table(plan: Plan, colours: NodeColours, limits: Limits) -> Markup:
    """A row for each step, up to the limit, with the reason for its node."""
    shown = plan.steps[: limits.rows]
    latency = any(step.latency_ms is not None for step in plan.steps)
    heads = [("step", ""), ("node", ""), ("start", "num"), ("end", "num"), ("run", "num")]
    if latency:
        heads.append(("latency", "num"))
    heads += [("requests", ""), ("why there", "")]
    waiting = summary.waiting_for(plan)
    rows = [_row(step, colours, waiting.get(step.name), latency=latency) for step in shown]
    count = f"{len(shown):,} of {values.counted(len(plan.steps), 'step')}"
    words = f"{count if len(shown) < len(plan.steps) else values.counted(len(shown), 'step')}"
    marked = ["a run time that was assumed"] if _any_assumed(plan) else []
    if any(step.requests_nothing for step in plan.steps):
        marked.append("requests that nobody made")
    assumed = f"; ~ marks {' and '.join(marked)}" if marked else ""
    return tag(
        "table",
        tag("caption", text(f"{words}, dependencies first{assumed}.")),
        tag(
            "thead",
            tag("tr", *(tag("th", text(t), scope="col", class_=c or None) for t, c in heads)),
        ),
        tag("tbody", *rows),
        class_="steps",
    )


def _any_assumed(plan: Plan) -> bool:
    return any(summary.run_time(step).startswith("~") for step in plan.steps)


def _row(
    step: PlannedStep, colours: NodeColours, cause: PlannedStep | None, *, latency: bool
) -> Markup:
    waits = [tag("small", text(summary.waits(cause)), class_="bad")] if cause is not None else []
    cells = [
        tag("th", name(step.name), _remarks(step), *waits, scope="row"),
        _node_cell(step, colours),
        _amount(values.duration(step.start_seconds)),
        _amount(values.duration(step.finish_seconds)),
        _amount(summary.run_time(step), _phases(step)),
    ]
    if latency:
        cells.append(_amount("" if step.latency_ms is None else values.latency(step.latency_ms)))
    requests = summary.requests(step)
    lines = [tag("small", text(f"{resource} {amount}")) for resource, amount in requests]
    cells.append(tag("td", *lines, class_="requests"))
    cells.append(tag("td", text(step.reason), class_="why"))
    return tag("tr", *cells, class_="missing" if step.node is None and not step.cached else None)


def _remarks(step: PlannedStep) -> Markup:
    words = [summary.type_text(step), summary.remark(step)]
    if step.latency_ms is not None:
        words.append(f"near {visible(step.location)}")
    elif summary.location(step):
        words.append(f"location {summary.location(step)}")
    line = " · ".join(word for word in words if word)
    return tag("small", text(line)) if line else NOTHING


def _node_cell(step: PlannedStep, colours: NodeColours) -> Markup:
    if step.node is None:
        return tag("td", text(summary.where(step)), class_=None if step.cached else "bad")
    dot = tag("i", class_=f"dot {colours.css_class(step.node)}", aria_hidden="true")
    return tag("td", dot, name(step.node), class_="node")


def _phases(step: PlannedStep) -> str:
    phases = []
    if values.noticeable(step.image_pull_seconds):
        phases.append(f"pull {values.duration(step.image_pull_seconds)}")
    if values.noticeable(step.transfer_seconds):
        phases.append(f"transfers {values.duration(step.transfer_seconds)}")
    return " · ".join(phases)


def _amount(words: str, below: str = "") -> Markup:
    small = tag("small", text(below)) if below else NOTHING
    return tag("td", text(words), small, class_="num")
