"""The plan beside the baselines and the bound: a table with bars."""

from kfp_placement.report import summary, values
from kfp_placement.report.markup import NOTHING, Markup, name, number, tag, text
from kfp_placement.report.summary import ScheduleSummary
from kfp_placement_engine.model.plan import Plan

_BAR_WIDTH = 100.0


def comparison(plan: Plan) -> Markup:
    """A table: a row for each schedule, its makespan as a bar, the bound as a line across."""
    rows = summary.schedules(plan)
    longest = max([row.makespan_seconds or 0.0 for row in rows] + [plan.lower_bound.seconds, 1e-9])
    latency = summary.shows_latency(plan)
    heads = ["schedule", "makespan", "", "the plan is", "unplaced"]
    if latency:
        heads.append("latency to users")
    body = [_row(plan, row, longest, latency=latency) for row in rows]
    body.append(_bound_row(plan, longest, latency=latency))
    return tag(
        "table",
        tag("caption", text(caption(plan))),
        tag("thead", tag("tr", *(_head(title) for title in heads))),
        tag("tbody", *body),
        class_="comparison",
    )


def caption(plan: Plan) -> str:
    """What the table compares."""
    by = f"All simulated with the same model, dispatch {plan.dispatch}."
    if plan.all_durations_assumed:
        by += " No percentages: all durations are assumed."
    if summary.shows_latency(plan):
        by += f" Beyond the rule: {summary.beyond_rule(plan)}."
    return by


def bar(seconds: float | None, bound: float, longest: float, css_class: str) -> Markup:
    """One makespan as a bar and the bound as a line; decorative, a cell has the number."""
    parts = []
    if seconds is not None:
        width = max(_BAR_WIDTH * seconds / longest, 0.5)
        parts.append(tag("rect", x="0", y="2", width=width, height="12", rx="1", class_=css_class))
    if 0 < bound <= longest:
        at = number(_BAR_WIDTH * bound / longest)
        parts.append(
            tag("path", d=f"M{at} 0V16", class_="bound", vector_effect="non-scaling-stroke")
        )
    return tag(
        "svg",
        *parts,
        class_="meter",
        viewBox=f"0 0 {number(_BAR_WIDTH)} 16",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def _head(title: str) -> Markup:
    if not title:
        return tag("td")
    return tag("th", text(title), scope="col", class_="num" if title == "makespan" else None)


def _row(plan: Plan, row: ScheduleSummary, longest: float, *, latency: bool) -> Markup:
    css = "mine" if row.is_plan else "other"
    cells = [
        tag("th", name(row.name), scope="row"),
        tag("td", Markup(row.makespan), *_small(row.spread), class_="num"),
        tag("td", bar(row.makespan_seconds, plan.lower_bound.seconds, longest, css), class_="bar"),
        tag("td", text(row.verdict), *_small(row.caveat), class_=_verdict_class(row)),
        tag("td", Markup(f"{row.unplaced:,}"), class_="bad" if row.unplaced else None),
    ]
    if latency:
        css_class = "bad" if row.latency_excess_ms > 0 else None
        cells.append(tag("td", text(summary.schedule_latency(row)), class_=css_class))
    return tag("tr", *cells, class_="plan" if row.is_plan else None)


def _small(remark: str) -> list[Markup]:
    return [tag("small", text(remark))] if remark else []


def _verdict_class(row: ScheduleSummary) -> str | None:
    return "good" if row.verdict.endswith(("shorter", "more")) else None


def _bound_row(plan: Plan, longest: float, *, latency: bool) -> Markup:
    seconds = plan.lower_bound.seconds
    kind = tag("small", text(f" ({plan.lower_bound.kind})"))
    cells = [
        tag("th", Markup("lower bound"), kind, scope="row"),
        tag("td", Markup(values.duration(seconds)), class_="num"),
        tag("td", bar(None, seconds, longest, "other"), class_="bar"),
        tag("td", NOTHING),
        tag("td", NOTHING),
    ]
    if latency:
        cells.append(tag("td", NOTHING))
    return tag("tr", *cells, class_="bound-row")
