"""Past runs -> the status of their PipelineHistory: as many as fit, and of a large one as much."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import chain, islice
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from kfp_placement_engine.contract.history_rows import (
    MAX_ROWS,
    IterationRow,
    LoopRow,
    Memory,
    RecordedRun,
    Seconds,
    StepRow,
    TellingRow,
)
from kfp_placement_engine.contract.pipeline_history import (
    MAX_HISTORY_BYTES,
    MAX_RUNS,
    PipelineHistoryStatus,
)
from kfp_placement_engine.contract.placement_size import json_bytes
from kfp_placement_engine.model.durations import format_duration
from kfp_placement_engine.model.history import PastRun, PastStep

MOST_ITERATIONS = 2_500
"""Of a step in one run, and half as many until `FEWEST_RUNS` fit."""

FEWEST_RUNS = 5
"""More are kept if there is room for them as they are."""

_OBJECT_BYTES = 2_000
"""Of what an object says beside its runs."""

_STEP: TypeAdapter[StepRow] = TypeAdapter(StepRow)
_ITERATION: TypeAdapter[IterationRow] = TypeAdapter(TellingRow)
_LOOP: TypeAdapter[LoopRow] = TypeAdapter(LoopRow)
_SECONDS: TypeAdapter[float | None] = TypeAdapter(Seconds | None)
_MEMORY: TypeAdapter[float | None] = TypeAdapter(Memory | None)

T = TypeVar("T")


def history_status(
    runs: Iterable[PastRun], *, runs_seen: int | None = None
) -> PipelineHistoryStatus:
    """The status that holds the last runs of a pipeline, as many as fit, and what can be true.

    Of wide loops the last iterations are left out where no room is left for a few runs, and of
    runs the last steps where there is none for one.

    Args:
        runs: of one pipeline.
        runs_seen: how many runs there were; None = these.
    """
    latest = sorted(runs, key=lambda run: run.order, reverse=True)[:MAX_RUNS]
    widths = (Counter(step.identity.step for step in run.steps).values() for run in latest)
    most, iterations = MAX_ROWS, min(MOST_ITERATIONS, max(chain([1], *widths)))
    kept = _fitting(latest, most, iterations)
    while len(kept) < min(FEWEST_RUNS if iterations > 1 else 1, len(latest)):
        if iterations > 1:
            iterations //= 2
        else:
            most //= 2
        kept = _fitting(latest, most, iterations)
    ends = sorted(run.seconds for run in kept if run.seconds is not None)
    return PipelineHistoryStatus(
        runs=tuple(reversed(kept)),
        runs_seen=len(kept) if runs_seen is None else runs_seen,
        typical=ends[len(ends) // 2] if ends else None,
        range=f"{format_duration(ends[0])}-{format_duration(ends[-1])}" if ends else None,
        last_run_at=kept[0].ended_at if kept else None,
    )


def _fitting(latest: Iterable[PastRun], most: int, of_step: int) -> list[RecordedRun]:
    """As many runs as fit, the last one first.

    Args:
        latest: the runs, in the same order.
        most: steps of one run, and loops.
        of_step: iterations of each step.
    """
    kept, left_bytes = list[RecordedRun](), MAX_HISTORY_BYTES - _OBJECT_BYTES
    for run in latest:
        recorded = _recorded(run, most, of_step)
        left_bytes -= json_bytes(recorded.model_dump(mode="json", by_alias=True))
        if left_bytes < 0:
            break
        kept.append(recorded)
    return kept


def _recorded(run: PastRun, most: int, of_step: int) -> RecordedRun:
    iterations: defaultdict[str, list[PastStep]] = defaultdict(list)
    for step in run.steps:
        iterations[step.identity.step].append(step)
    nodes: dict[str, int] = {}
    steps = filter(None, (_step_row(each, nodes, of_step) for each in iterations.values()))
    loops = filter(None, (_valid(_LOOP, each) for each in run.loops.items()))
    return RecordedRun(
        uid=run.uid,
        ended_at=run.ended_at,
        seconds=_valid(_SECONDS, _rounded(run.seconds, 1)),
        planned_seconds=_valid(_SECONDS, _rounded(run.planned_seconds, 1)),
        steps=tuple(islice(steps, most)),
        loops=tuple(islice(loops, most)),
        nodes=tuple(nodes),
    )


def _step_row(iterations: list[PastStep], nodes: dict[str, int], most: int) -> StepRow | None:
    """The row of a step; None = nothing of it can be true.

    Args:
        iterations: all of one step.
        nodes: names, each with its index; new ones are added.
        most: how many iterations are kept, of those that can be true.
    """
    rows = (
        (
            _rounded(each.seconds, 1),
            nodes.setdefault(each.node[:253], len(nodes)) if each.node else None,
            each.identity.iteration or "",
            _rounded(each.input_bytes),
            _rounded(each.peak_bytes),
            _rounded(each.killed_bytes),
            each.arguments,
        )
        for each in iterations
    )
    kept = filter(None, (_valid(_ITERATION, row) for row in rows))
    last = iterations[-1]
    of_step = (last.identity.step, last.identity.component, last.identity.image)
    asked = _valid(_MEMORY, _rounded(last.asked_bytes))
    return _valid(_STEP, (*of_step, (*islice(kept, most),), asked))


def _valid(kind: TypeAdapter[T], value: object) -> T | None:
    """A value that can be true; None = it cannot, and is left out."""
    try:
        return kind.validate_python(value)
    except ValidationError:
        return None


def _rounded(amount: float | None, digits: int = 0) -> float | None:
    return None if amount is None else round(amount, digits)
