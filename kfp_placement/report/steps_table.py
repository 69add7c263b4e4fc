"""The step table of a report; loops of many items are one row that opens."""

import re
from collections.abc import Sequence

from kfp_placement.report import promises, summary, values
from kfp_placement.report.labels import display_name
from kfp_placement.report.limits import FOLDED, Limits
from kfp_placement.report.markup import BREAK, NOTHING, Markup, join, name, tag, text
from kfp_placement.report.palette import NodeColours
from kfp_placement.report.steps_rows import (
    StepGroup,
    display_text,
    grouped,
    name_text,
    node_text,
    run_text,
)
from kfp_placement.report.visible import visible
from kfp_placement_engine.model.plan import Plan, PlannedStep

_CELL = "text-align:left"
"""In every cell: what notebooks set for cells is stronger than what a row says."""

_TABLE = "table-layout:fixed;width:100%;min-width:420px"
"""Columns of fixed shares: no name, however long, makes the table wider than its place."""

_COLUMNS = (("step", 23), ("node", 19), ("when", 16), ("run", 16), ("why there", 26))
"""Titles, and shares of the width in per cent."""

_BETWEEN_UNITS = re.compile(r"(?<=[dhm])(?=\d)")


def steps_table(plan: Plan, colours: NodeColours, limits: Limits) -> Markup:
    """A row for each step, up to the limit, with the reason for its node."""
    waiting = summary.waiting_for(plan)
    rows, shown = [], 0
    for group in grouped(plan, most=FOLDED):
        steps = group.steps[: limits.rows - shown]
        shown += len(steps)
        lines = [_row(plan, step, colours, waiting.get(step.name)) for step in steps]
        rows += [_folded(plan, group, lines)] if group.is_folded and lines else lines
    return tag(
        "table",
        tag("caption", text(_caption(plan, shown)), style=_CELL),
        tag("thead", tag("tr", *(_head(title, share) for title, share in _COLUMNS))),
        tag("tbody", *rows),
        class_="kp-steps",
        style=_TABLE,
    )


def _caption(plan: Plan, shown: int) -> str:
    whole = values.counted(len(plan.steps), "step")
    words = f"{shown:,} of {whole}" if shown < len(plan.steps) else whole
    marked = ["a run time that was assumed"] if _any_assumed(plan) else []
    if any(step.requests_nothing for step in plan.steps):
        marked.append("requests that nobody made")
    assumed = f"; ~ marks {' and '.join(marked)}" if marked else ""
    learned = ""
    if plan.promise is not None and plan.promise.steps:
        learned = f" In brackets the range that holds in {promises.percent(plan)} of the cases."
    return f"{words}, dependencies first{assumed}.{learned}"


def _any_assumed(plan: Plan) -> bool:
    return any(summary.run_time(step).startswith("~") for step in plan.steps)


def _head(title: str, share: int) -> Markup:
    return tag("th", text(title), scope="col", style=f"{_CELL};width:{share}%")


def _folded(plan: Plan, group: StepGroup, rows: Sequence[Markup]) -> Markup:
    """A row for the items of a loop: what is true of all, and the items when it is opened."""
    known = group.start_seconds, group.finish_seconds
    times = (
        "" if None in known else f"; {' to '.join(promises.moment(plan, each) for each in known)}"
    )
    words = f" on {node_text(group)}{times}; run {run_text(group)}"
    given = f"{display_text(group)}: " if display_text(group) else ""
    inner = tag("table", tag("tbody", *rows), class_="kp-steps", style=_TABLE)
    details = tag(
        "details",
        tag("summary", tag("b", name(f"{given}{name_text(group)}")), text(words)),
        tag("div", inner, style="overflow-x:auto"),
    )
    return tag("tr", tag("td", details, colspan=len(_COLUMNS), style=_CELL))


def _row(plan: Plan, step: PlannedStep, colours: NodeColours, cause: PlannedStep | None) -> Markup:
    waits = [tag("small", text(summary.waits(cause)), class_="kp-bad")] if cause is not None else []
    cells = [
        tag("th", _lines([*_names(step), *_remarks(step), *waits]), scope="row", style=_CELL),
        _node_cell(step, colours),
        _cell([_when(plan, step), *_ranges(plan, step)]),
        _cell([_time(summary.run_time(step)), *_basis(plan, step), *_phases(step)]),
    ]
    requests = ", ".join(f"{resource} {amount}" for resource, amount in summary.requests(step))
    small = [tag("small", text(f"requests {requests}"))] if requests else []
    cells.append(_cell([text(summary.why(step)), *small], "kp-why"))
    return tag("tr", *cells, class_="kp-missing" if step.node is None and not step.cached else None)


def _cell(lines: Sequence[Markup], css_class: str | None = None) -> Markup:
    return tag("td", _lines(lines), class_=css_class, style=_CELL)


def _lines(lines: Sequence[Markup]) -> Markup:
    return Markup(BREAK.join(lines))


def _names(step: PlannedStep) -> list[Markup]:
    """The name that its author gave to the step, and its own."""
    given = display_name(step)
    if not given:
        return [name(step.name)]
    return [name(given), tag("small", name(step.name))]


def _remarks(step: PlannedStep) -> list[Markup]:
    words = [summary.type_text(step), ", ".join(summary.remarks(step))]
    if step.latency_ms is not None:
        words.append(f"near {visible(step.location)}")
    elif summary.location(step):
        words.append(f"location {summary.location(step)}")
    line = " · ".join(word for word in words if word)
    return [tag("small", text(line))] if line else []


def _node_cell(step: PlannedStep, colours: NodeColours) -> Markup:
    if step.node is None:
        where = text(summary.where(step))
        return tag("td", where, class_=None if step.cached else "kp-bad", style=_CELL)
    edge = f"border-left:4px solid {colours.fill(step.node)}"
    latency = [] if step.latency_ms is None else [values.latency(step.latency_ms)]
    lines = [name(step.node), *(tag("small", text(f"{words} round trip")) for words in latency)]
    return tag("td", _lines(lines), class_="kp-node", style=f"{_CELL};{edge}")


def _when(plan: Plan, step: PlannedStep) -> Markup:
    if step.start_seconds is None or step.finish_seconds is None:
        return NOTHING
    moments = (step.start_seconds, step.finish_seconds)
    return join([_time(promises.moment(plan, each)) for each in moments], " to ")


def _ranges(plan: Plan, step: PlannedStep) -> list[Markup]:
    """When it starts and ends by past runs."""
    known = {"starts": promises.starts(plan, step), "ends": promises.ends(plan, step)}
    return [tag("small", text(f"{word} {when}")) for word, when in known.items() if when]


def _basis(plan: Plan, step: PlannedStep) -> list[Markup]:
    return [] if plan.promise is None else [tag("small", text(promises.basis(step)))]


def _time(words: str) -> Markup:
    """A duration that may break between its units."""
    return Markup("<wbr>".join(map(text, _BETWEEN_UNITS.split(words))))


def _phases(step: PlannedStep) -> list[Markup]:
    phases = []
    if values.noticeable(step.image_pull_seconds):
        phases.append(f"pull {values.duration(step.image_pull_seconds)}")
    if values.noticeable(step.transfer_seconds):
        phases.append(f"transfers {values.duration(step.transfer_seconds)}")
    return [tag("small", text(phase)) for phase in phases]
