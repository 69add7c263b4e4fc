"""The plan beside the baselines and the bound: a table with bars."""

from kfp_placement.report import summary, values
from kfp_placement.report.markup import BREAK, NOTHING, Markup, name, tag, text
from kfp_placement.report.palette import FILLS, NEUTRAL
from kfp_placement.report.summary import ScheduleSummary
from kfp_placement_engine.model.plan import Plan

_LEFT = "text-align:left"
"""In every cell: what notebooks set for cells is stronger than what a row says."""


def comparison(plan: Plan) -> Markup:
    """A table: a row for each schedule, its makespan as a bar."""
    rows = summary.schedules(plan)
    longest = max([row.makespan_seconds or 0.0 for row in rows] + [plan.lower_bound.seconds, 1e-9])
    latency = summary.shows_latency(plan)
    heads = [("schedule", 23), ("makespan", 21), ("", 15), ("the plan is", 23)]
    heads += [("latency to users", 20)] if latency else []
    whole = sum(share for _, share in heads)
    body = [_row(row, longest, latency=latency) for row in rows]
    body.append(_bound_row(plan, longest, len(heads)))
    return tag(
        "table",
        tag("caption", text(caption(plan)), style=_LEFT),
        tag("thead", tag("tr", *(_head(title, share / whole) for title, share in heads))),
        tag("tbody", *body),
        class_="kp-comparison",
        style="table-layout:fixed;width:100%;min-width:420px",
    )


def caption(plan: Plan) -> str:
    """What the table compares."""
    by = f"All simulated with the same model, dispatch {plan.dispatch}."
    if plan.all_durations_assumed:
        by += " No percentages: all durations are assumed."
    if summary.shows_latency(plan):
        by += f" Beyond the rule: {summary.beyond_rule(plan)}."
    if use := summary.use_lines(plan):
        by += f" Use of the nodes: {'; '.join(use)}."
    return by


def bar(seconds: float | None, longest: float, colour: str) -> Markup:
    """One makespan as a bar; decorative, a cell has the number."""
    if seconds is None:
        return NOTHING
    share = max(100.0 * seconds / longest, 0.5)
    return tag("div", style=f"background:{colour};height:12px;width:{share:.1f}%")


def _head(title: str, share: float) -> Markup:
    style = f"{_LEFT};width:{share:.0%}"
    return tag("th", text(title), scope="col", style=style) if title else tag("td", style=style)


def _row(row: ScheduleSummary, longest: float, *, latency: bool) -> Markup:
    colour = FILLS[0][0] if row.is_plan else NEUTRAL
    cells = [
        tag("th", name(row.name), scope="row", style=_LEFT),
        _cell(Markup(row.makespan), *_small(row.spread), *_small(_unplaced(row), "kp-bad")),
        _cell(bar(row.makespan_seconds, longest, colour)),
        _cell(text(row.verdict), *_small(row.caveat), css_class=_verdict_class(row)),
    ]
    if latency:
        css_class = "kp-bad" if row.latency_excess_ms > 0 else None
        cells.append(_cell(text(summary.schedule_latency(row)), css_class=css_class))
    return tag("tr", *cells, class_="kp-plan" if row.is_plan else None)


def _cell(*children: Markup, css_class: str | None = None) -> Markup:
    return tag("td", *children, class_=css_class, style=_LEFT)


def _small(remark: str, css_class: str | None = None) -> list[Markup]:
    return [BREAK, tag("small", text(remark), class_=css_class)] if remark else []


def _unplaced(row: ScheduleSummary) -> str:
    return f"{values.counted(row.unplaced, 'step')} unplaced" if row.unplaced else ""


def _verdict_class(row: ScheduleSummary) -> str | None:
    return "kp-good" if row.verdict.endswith(("shorter", "more")) else None


def _bound_row(plan: Plan, longest: float, columns: int) -> Markup:
    seconds = plan.lower_bound.seconds
    cells = [
        tag(
            "th",
            Markup("lower bound"),
            BREAK,
            tag("small", text(f"({plan.lower_bound.kind})")),
            scope="row",
            style=_LEFT,
        ),
        _cell(Markup(values.duration(seconds))),
        _cell(bar(seconds, longest, NEUTRAL)),
    ]
    cells += [_cell() for _ in range(columns - len(cells))]
    return tag("tr", *cells, class_="kp-bound-row")
