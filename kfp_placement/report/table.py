"""The plan as plain text, for `-o table` and `-o wide`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kfp_placement.report import promises, summary, values
from kfp_placement.report.columns import Column, layout, natural_width
from kfp_placement.report.critical_path import limits_lines
from kfp_placement.report.steps_rows import (
    StepGroup,
    display_text,
    grouped,
    latency_text,
    name_text,
    node_text,
    remark_text,
    run_text,
)
from kfp_placement.report.terminal import Paint, notice_lines, wrapped
from kfp_placement.report.verdict import headline, search_sentence
from kfp_placement.report.visible import visible, width
from kfp_placement_engine.model.plan import Plan, PlannedStep
from kfp_placement_engine.model.run_graph import Notice
from kfp_placement_engine.model.step_names import listed

_MIN_NAME = 12
_MIN_WORD = 8
_MIN_REASON = 30
_MIN_NOTE = 22
_REQUESTS = "REQUESTS"
_FEW_ALIKE, _STEPS_NAMED = 2, 5


@dataclass(frozen=True)
class TableStyle:
    """How to print.

    Attributes:
        wide: all columns, with the reason of every step.
        reasons: the reason of every step beside the usual columns.
        columns: width of the terminal; None: as wide as the text is (a file or a pipe).
        colour: escape sequences for bold, dim, red and yellow.
    """

    wide: bool = False
    reasons: bool = False
    columns: int | None = None
    colour: bool = False


def plan_table(plan: Plan, style: TableStyle | None = None, past_runs: str = "") -> str:
    """The whole plan as text, ending with a line break.

    Args:
        plan: the plan.
        style: how to print it.
        past_runs: which ones it rests on, in words; "" = not known, or on none.
    """
    style = style or TableStyle()
    paint = Paint(style.colour)
    blocks = [
        _header(plan, style, paint, past_runs),
        _schedules(plan, style, paint),
        _steps(plan, style, paint),
        *_limits(plan, style, paint),
        *_problems(plan, style, paint),
    ]
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks) + "\n"


def _header(plan: Plan, style: TableStyle, paint: Paint, past_runs: str) -> list[str]:
    nodes = values.counted(len(plan.cluster_nodes), "node")
    source = f" ({visible(plan.cluster_source)})" if plan.cluster_source else ""
    run = f"{visible(plan.run_name)} ({visible(plan.run_source)})"
    facts = (
        f"dispatch {plan.dispatch}, objective {plan.objective},"
        f" lower bound {visible(plan.lower_bound.kind)}, seed {plan.seed},"
        f" {summary.searched(plan)}"
    )
    title = f"{run}: {values.counted(len(plan.steps), 'step')} on {nodes}{source}"
    lines = [
        *map(paint.bold, wrapped(title, style.columns)),
        *map(paint.bold, wrapped(headline(plan), style.columns)),
        *map(paint.bold, wrapped(promises.headline(plan), style.columns)),
        *wrapped(search_sentence(plan), style.columns),
    ]
    small = [facts, *filter(None, (promises.submission(plan), visible(past_runs)))]
    small += [f"policy: {visible(line)}" for line in plan.policy]
    small += [f"assumed: {line}" for line in summary.assumption_lines(plan)]
    for line in small:
        lines += map(paint.dim, wrapped(line, style.columns, further="  "))
    return lines


def _schedules(plan: Plan, style: TableStyle, paint: Paint) -> list[str]:
    schedules = summary.schedules(plan)
    latency = summary.shows_latency(plan)
    unplaced = any(item.unplaced for item in schedules)
    beyond = any(item.latency_excess_ms > 0 for item in schedules)
    columns = [
        Column("SCHEDULE", shrink_to=_MIN_NAME),
        Column("MAKESPAN", right=True),
        Column("THE PLAN IS"),
        *([Column("UNPLACED", right=True)] if unplaced else []),
        *([Column("LATENCY", right=True)] if latency else []),
        *([Column("BEYOND RULE", right=True)] if beyond else []),
    ]
    rows = []
    for item in schedules:
        verdict = f"{item.verdict}, {item.caveat}" if item.caveat else item.verdict
        row = [item.name, item.makespan, verdict] + [str(item.unplaced)] * unplaced
        rows.append(row + [_round_trips(item)] * latency + [_excess(item)] * beyond)
    bound = ["lower bound", values.duration(plan.lower_bound.seconds)]
    rows.append(bound + [""] * (len(columns) - len(bound)))
    lines, below = layout(columns, rows, style.columns), []
    if style.columns is not None and max(map(width, lines)) > style.columns:
        # What a verdict does not say is below where there is no room beside it.
        for item, row in zip(schedules, rows, strict=False):
            if item.caveat:
                row[2] = f"{item.verdict} *"
                below.append(f"* {item.verdict}, {item.caveat}")
        lines = layout(columns, rows, style.columns)
    below += [f"{item.name}: a mean, {item.spread}" for item in schedules if item.spread]
    if beyond:
        below.append(f"beyond rule: {summary.beyond_rule(plan)}")
    if use := summary.use_lines(plan):
        below.append(f"use of the nodes: {'; '.join(use)}")
    below = [line for words in below for line in wrapped(words, style.columns)]
    head = [paint.dim(lines[0]), paint.bold(lines[1]), *lines[2:], *map(paint.dim, below)]
    return [*head, *map(paint.red, wrapped(summary.unending(plan), style.columns))]


def _round_trips(schedule: summary.ScheduleSummary) -> str:
    unknown = summary.is_latency_unknown(schedule)
    return "unknown" if unknown else values.latency(schedule.latency_ms)


def _excess(schedule: summary.ScheduleSummary) -> str:
    excess = schedule.latency_excess_ms
    known = excess > 0 and not summary.is_latency_unknown(schedule)
    return values.latency(excess) if known else ""


def _steps(plan: Plan, style: TableStyle, paint: Paint) -> list[str]:
    reasons = style.wide or style.reasons
    groups = grouped(plan, most=len(plan.steps) if reasons else 1)
    columns, rows = _step_columns(plan, groups, wide=style.wide, reasons=reasons)
    if style.columns is not None and natural_width(columns, rows) > style.columns:
        # `3 nodes` says more than a list of nodes of which the middle is cut out.
        columns, rows = _step_columns(plan, groups, wide=style.wide, reasons=reasons, named=1)
    below = []
    if style.columns is not None and natural_width(columns, rows) > style.columns:
        # Of all columns these are the easiest to do without: the author knows them.
        at = next((at for at, each in enumerate(columns) if each.title == _REQUESTS), None)
        if at is not None:
            below.append(f"no room for {_REQUESTS}: widen the terminal, or use -o json")
            columns = columns[:at] + columns[at + 1 :]
            rows = [row[:at] + row[at + 1 :] for row in rows]
    lines = layout(columns, rows, style.columns)
    if not reasons:
        items = "every item of a loop, and " if any(group.is_folded for group in groups) else ""
        below.append(f"{items}why each step goes there: -o wide")
    return [paint.dim(lines[0]), *lines[1:], *map(paint.dim, below)]


def _step_columns(
    plan: Plan, groups: Sequence[StepGroup], *, wide: bool, reasons: bool, named: int = 2
) -> tuple[list[Column], list[list[str]]]:
    waiting = summary.waiting_for(plan)
    # Columns of `-o wide` are of single steps: loops are not folded there.
    steps = [group.steps[0] for group in groups]
    # The reason says it all where there is room for it.
    notes: Iterable[str] = (remark_text(group, waiting) for group in groups)
    if reasons:
        notes = (", ".join(summary.remarks(step, waiting.get(step.name))) for step in steps)
    candidates: list[tuple[Column, Iterable[str], bool]] = [
        (Column("STEP", shrink_to=_MIN_NAME, is_path=True), map(name_text, groups), True),
        (Column("NAME", shrink_to=_MIN_NAME), map(display_text, groups), True),
        (Column("TYPE", shrink_to=_MIN_WORD), map(summary.type_text, steps), wide),
        (Column("LOCATION", shrink_to=_MIN_WORD), map(summary.location, steps), wide),
        (Column("NODE", shrink_to=_MIN_NAME), (node_text(group, named) for group in groups), True),
        (
            Column("START", right=True),
            (promises.moment(plan, group.start_seconds) for group in groups),
            True,
        ),
        (
            Column("END", right=True),
            (promises.moment(plan, group.finish_seconds) for group in groups),
            True,
        ),
        (Column("RUN", right=True), map(run_text, groups), True),
        (
            Column("RESTS ON", shrink_to=_MIN_WORD),
            map(promises.basis, steps),
            wide and plan.promise is not None,
        ),
        (Column("STARTS", spare=2), (promises.starts(plan, step) for step in steps), wide),
        (Column("ENDS", spare=1), (promises.ends(plan, step) for step in steps), wide),
        (Column("PULL", right=True), _amounts(step.image_pull_seconds for step in steps), wide),
        (Column("TRANSFER", right=True), _amounts(step.transfer_seconds for step in steps), wide),
        (Column("LATENCY", right=True), map(latency_text, groups), True),
        (Column("NOTE", shrink_to=_MIN_NOTE), notes, True),
        (Column(_REQUESTS, shrink_to=_MIN_NAME), map(_requests, steps), wide),
        (Column("REASON", wrap_from=_MIN_REASON), map(summary.why, steps), reasons),
    ]
    shown = [(column, list(cells)) for column, cells, wanted in candidates if wanted]
    # A column that is empty in every row says nothing.
    kept = [(column, cells) for column, cells in shown if any(cells)]
    columns = [column for column, _ in kept] or [Column("STEP")]
    return columns, [list(row) for row in zip(*(cells for _, cells in kept), strict=True)]


def _amounts(seconds: Iterable[float]) -> list[str]:
    return [values.duration(each) if values.noticeable(each) else "" for each in seconds]


def _requests(step: PlannedStep) -> str:
    return " ".join(f"{resource}={amount}" for resource, amount in summary.requests(step))


def _limits(plan: Plan, style: TableStyle, paint: Paint) -> list[list[str]]:
    """What limits the run, as a block of its own if it is known."""
    heading, *lines = limits_lines(plan, style.columns) or [""]
    return [[paint.bold(heading), *lines]] if lines else []


def _problems(plan: Plan, style: TableStyle, paint: Paint) -> list[list[str]]:
    blocks = []
    if plan.unschedulable:
        count = values.counted(len(plan.unschedulable), "step")
        lines = [paint.red(f"Unschedulable ({count}):")]
        for names, reason in summary.steps_by_obstacle(plan):
            label = visible(listed(names, len(names) if style.wide else _STEPS_NAMED))
            lines += notice_lines(visible(reason), style.columns, paint, label=label)
        blocks.append(lines)
    if plan.notices:
        lines = [paint.yellow(f"Warnings ({len(plan.notices)}):")]
        for notice in _folded(plan.notices) if not style.wide else plan.notices:
            label, code = visible(notice.step), visible(notice.code)
            text = visible(notice.message)
            lines += notice_lines(text, style.columns, paint, label=label, code=code)
        blocks.append(lines)
    return blocks


def _folded(notices: Sequence[Notice]) -> list[Notice]:
    """The warnings; of many that say the same of different steps the first, then their number."""
    alike: dict[str, list[Notice]] = {}
    for notice in notices:
        alike.setdefault(notice.code if notice.step else f"run {notice.message}", []).append(notice)
    shown: list[Notice] = []
    for first, *others in alike.values():
        if len(others) <= _FEW_ALIKE:
            shown += [first, *others]
            continue
        steps = list(dict.fromkeys(notice.step for notice in others))
        words = f"{len(others):,} more like it: {listed(steps, _STEPS_NAMED)}; all: -o wide"
        shown += [first, Notice(first.code, words)]
    return shown
