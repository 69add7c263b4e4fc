"""Table of the steps of a plan: a row for a single step, or one for all items of a loop."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kfp_placement_engine.model.run_graph import StepKind
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.planned_step import PlannedStep
from kfp_placement_engine.units.quantities import format_resources
from kfp_placement_engine.views.document import Cell, Column, NumberColumn, Row, Table, Tone
from kfp_placement_engine.views.formatting import counted, duration, latency, noticeable
from kfp_placement_engine.views.plans import promises
from kfp_placement_engine.views.plans.detail import Detail
from kfp_placement_engine.views.plans.step_texts import (
    display_name,
    is_missing,
    reference_seconds,
    remarks,
    run_time,
    where,
    why,
)

_LEAST_NAME = 12
_LEAST_WORD = 8
_LEAST_REASON = 30
_LEAST_NOTE = 22
_NODES_NAMED = 2
"""Number of nodes of a loop's items that are named; more are counted."""

RowSteps = Sequence[PlannedStep]
"""Steps of one row: a single step, or the items of a loop."""

Texts = Mapping[Column, Callable[[RowSteps], str | Cell]]
"""Columns, each with the function that returns the cell of a group."""


def steps_table(plan: Plan, detail: Detail) -> Table:
    """Return a table with a row for each step in the plan's order; long loops are folded."""
    columns, rows, shown, notes = _columns(plan, detail), [], 0, []
    for group in grouped(plan, detail.folded_above):
        if listed := group[: detail.rows - shown]:
            rows.append(_row(group, listed, columns))
            shown += len(listed)
    if not detail.reasons:
        items = "every item of a loop, and " if any(row.items for row in rows) else ""
        notes.append(f"{items}why each step goes there: -o wide")
    if shown < len(plan.steps):
        rest = counted(len(plan.steps) - shown, "more step")
        notes.append(f"{rest} not shown; kfp-placement plan -o json has them all.")
    titles = [replace(column, optional=column.title != "STEP") for column in columns]
    table = Table("Steps", titles, rows, caption=_caption(plan, shown), notes=notes)
    return table.without_empty()


def grouped(plan: Plan, most: int) -> list[RowSteps]:
    """Group the plan's steps in its order; loops of more than this many items are one group.

    A folded loop is one group for each of its tasks, where the first item of that task is. Nested
    loops are folded together.
    """
    items: dict[str, list[PlannedStep]] = {}
    for step in plan.steps:
        if step.spec.iteration:
            items.setdefault(step.spec.task, []).append(step)
    groups: dict[str, RowSteps] = {}
    for step in plan.steps:
        together = items.get(step.spec.task, []) if step.spec.iteration else []
        if len(together) <= max(most, 1):
            groups[f"step {step.name}"] = (step,)
        else:
            groups.setdefault(f"task {step.spec.task}", tuple(together))
    return list(groups.values())


def waiting_for(plan: Plan) -> dict[str, PlannedStep]:
    """Return steps that never start, each with a step before it that fits no node."""
    stuck = {step.name: step for step in plan.steps if is_missing(step)}
    waiting: dict[str, PlannedStep] = {}
    for step in plan.steps if stuck else ():
        for parent in step.spec.depends_on:
            cause = stuck.get(parent) or waiting.get(parent)
            if cause is not None:
                waiting[step.name] = cause
                break
    return waiting


def node_text(group: RowSteps, named: int = _NODES_NAMED) -> str:
    """Format the node; for items of a loop `worker-1 x 4, worker-2 x 3`, or their number."""
    places = Counter(map(where, group))
    if len(places) == 1:
        return next(iter(places))
    nodes = Counter(step.node for step in group if step.node is not None).most_common()
    rest = Counter(where(step) for step in group if step.node is None)
    texts = [f"{node} x {count:,}" for node, count in nodes]
    if len(nodes) > named:
        texts = [counted(len(nodes), "node")]
    return ", ".join([*texts, *(f"{words} x {count:,}" for words, count in rest.items())])


def _columns(plan: Plan, detail: Detail) -> Texts:
    """Return the columns with their functions; a page puts some below others."""
    waiting = waiting_for(plan)

    def time(which: Callable[..., float | None], moments: Iterable[float | None]) -> str:
        times = [each for each in moments if each is not None]
        return promises.plan_moment(which(times, default=None), plan.run.submitted_at)

    def notes(group: RowSteps) -> str:
        return _remarks_text(group, waiting, speed=not detail.reasons)

    def names(group: RowSteps) -> list[str]:
        """Return the step's own name and its author's, which is the first on a page.

        Of a loop's items it is their task and number: `for-loop-1[*].work x 12`.
        """
        own, given = group[0].name, display_name(group[0])
        if len(group) > 1:
            return [f"{group[0].spec.task} x {len(group):,}", given]
        return [given, own] if given and detail.draws else [own, given]

    columns: Texts = {
        Column("STEP", shrink_to=_LEAST_NAME, is_path=True): lambda group: names(group)[0],
        Column("NAME", shrink_to=_LEAST_NAME, under="STEP"): lambda group: names(group)[1],
        Column("TYPE", shrink_to=_LEAST_WORD, under="STEP"): lambda group: _type_text(group[0]),
        Column(
            "LOCATION", shrink_to=_LEAST_WORD, under="STEP", reads="location {}"
        ): lambda group: _location(group[0]),
        Column("NODE", shrink_to=_LEAST_NAME): _node_cell,
        NumberColumn("START"): lambda group: time(min, (step.start_seconds for step in group)),
        NumberColumn("END", under="START", reads="to {}"): lambda group: time(
            max, (step.finish_seconds for step in group)
        ),
        NumberColumn("RUN"): _run_text,
        Column("RESTS ON", shrink_to=_LEAST_WORD, under="RUN"): _single(
            lambda step: "" if plan.promise is None else promises.basis(step)
        ),
        Column("STARTS", spare=2, under="START", reads="starts {}"): _single(
            lambda step: promises.start_and_end(plan, step)[0]
        ),
        Column("ENDS", spare=1, under="START", reads="ends {}"): _single(
            lambda step: promises.start_and_end(plan, step)[1]
        ),
        NumberColumn("PULL", under="RUN", reads="pull {}"): _single(
            lambda step: _amount(step.phases.image_pull_seconds)
        ),
        NumberColumn("TRANSFER", under="RUN", reads="transfers {}"): _single(
            lambda step: _amount(step.phases.transfer_seconds)
        ),
        NumberColumn("LATENCY", under="NODE", reads="{} round trip"): _latency_text,
        Column("NOTE", shrink_to=_LEAST_NOTE, under="STEP"): notes,
        Column("REQUESTS", spare=3, under="REASON", reads="requests {}"): _single(
            lambda step: _requests(step, is_estimate=_has_estimates(plan, step))
        ),
        Column("REASON", wrap_from=_LEAST_REASON): _single(why),
    }
    usual = {"STEP", "NAME", "NODE", "START", "END", "RUN", "LATENCY", "NOTE"}
    usual |= {"REASON"} if detail.reasons else set()
    return {key: text for key, text in columns.items() if detail.wide or key.title in usual}


def _row(group: RowSteps, items: RowSteps, columns: Texts) -> Row:
    """Return the row of a group, with rows for some of a loop's items."""
    rows = [_row((step,), (), columns) for step in items] if len(group) > 1 else []
    return Row([text(group) for text in columns.values()], items=rows)


def _single(text: Callable[[PlannedStep], str]) -> Callable[[RowSteps], str]:
    """Limit a column to single steps; for a loop's items the cell is empty."""
    return lambda group: text(group[0]) if len(group) == 1 else ""


def _node_cell(group: RowSteps) -> Cell:
    """Return the cell of the node, in its colour; `3 nodes` is its short form."""
    nodes = {step.node for step in group}
    return Cell(
        node_text(group),
        tone=Tone.BAD if any(map(is_missing, group)) else Tone.PLAIN,
        node=(group[0].node or "") if len(nodes) == 1 else "",
        short=node_text(group, named=1),
    )


def _run_text(group: RowSteps) -> str:
    """Format the run time; of a loop's items `5m each`, or a range."""
    texts = list(dict.fromkeys(map(run_time, group)))
    if len(group) == 1:
        return texts[0]
    if len(texts) == 1:
        return f"{texts[0]} each"
    mark = "~" if any(text.startswith("~") for text in texts) else ""
    seconds = [step.phases.duration_seconds for step in group]
    return f"{mark}{duration(min(seconds))} to {duration(max(seconds))}"


def _latency_text(group: RowSteps) -> str:
    """Format the round trip, or a range; "" = there is none."""
    times = [step.latency_ms for step in group if step.latency_ms is not None]
    texts = dict.fromkeys(latency(each) for each in (min(times), max(times))) if times else ()
    return " to ".join(texts)


def _remarks_text(group: RowSteps, waiting: Mapping[str, PlannedStep], *, speed: bool) -> str:
    """Return special properties; those of only some items of a loop are counted."""
    counts = Counter(
        words for step in group for words in remarks(step, waiting.get(step.name), speed=speed)
    )
    whole = len(group)
    texts = [
        words if count == whole else f"{count:,} of {whole:,} {words}"
        for words, count in counts.items()
    ]
    reference = reference_seconds(group[0]) if speed and whole == 1 else None
    if reference is not None:
        texts[-1] += f" ({duration(reference)} at speed 1)"
    return ", ".join(texts)


def _type_text(step: PlannedStep) -> str:
    """Return the type of a step, marked if it was guessed."""
    spec = step.spec
    return f"{spec.type} (guessed)" if spec.type and spec.type_guessed else spec.type


def _location(step: PlannedStep) -> str:
    """Return the location of a step; "" if it has no effect."""
    ruled = step.latency_ms is not None or step.is_latency_ruled
    return step.spec.location if ruled or step.node is None else ""


def _amount(seconds: float) -> str:
    return duration(seconds) if noticeable(seconds) else ""


def _has_estimates(plan: Plan, step: PlannedStep) -> bool:
    """Return whether the requests of a step are not those that its author stated."""
    is_outlined = plan.run.is_outline and step.spec.kind is StepKind.CONTAINER
    return is_outlined or step.requests_nothing


def _requests(step: PlannedStep, *, is_estimate: bool) -> str:
    """Format the requests by resource; `~` marks estimates."""
    mark = "~" if is_estimate else ""
    amounts = format_resources(step.requests).items()
    return " ".join(f"{resource}={mark}{amount}" for resource, amount in amounts)


def _caption(plan: Plan, shown: int) -> str:
    whole = counted(len(plan.steps), "step")
    text = f"{shown:,} of {whole}" if shown < len(plan.steps) else whole
    marks = {
        "a run time that was assumed": any(step.run_time.is_guess for step in plan.steps),
        "requests that nobody made": any(_has_estimates(plan, step) for step in plan.steps),
    }
    marked = [words for words, occurs in marks.items() if occurs]
    text += ", dependencies first" + (f"; ~ marks {' and '.join(marked)}." if marked else ".")
    if plan.promise is None or not plan.promise.steps:
        return text
    return f"{text} In brackets the range that holds in {promises.percent(plan)} of the cases."
