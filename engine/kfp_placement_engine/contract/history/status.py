"""Past runs -> the status of their PipelineHistory: as many as fit, and of a large one as much."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from kfp_placement_engine.contract.history.pipeline_history import (
    MAX_HISTORY_BYTES,
    MAX_RUNS,
    PipelineHistoryStatus,
)
from kfp_placement_engine.contract.history.rows import (
    MAX_LIST_ROWS,
    IterationRow,
    LoopRow,
    PlainSeconds,
    RanRow,
    RecordedRun,
    StepRow,
    TellingRow,
    written,
)
from kfp_placement_engine.contract.placement_size import json_bytes
from kfp_placement_engine.model.history import MAX_IMAGE_CHARACTERS, PastRun, PastStep
from kfp_placement_engine.units.durations import format_duration

MOST_ITERATIONS = 2_500
"""Limit of iterations of a step in one run; half as many until `FEWEST_RUNS` fit."""

FEWEST_RUNS = 5
"""Runs below which rows are made smaller; more are kept if they fit as they are."""

_OBJECT_BYTES = 2_000
"""Bytes that an object takes beside its runs, steps and nodes."""

_STEP: TypeAdapter[StepRow] = TypeAdapter(StepRow)
_ITERATION: TypeAdapter[IterationRow] = TypeAdapter(TellingRow)
_LOOP: TypeAdapter[LoopRow] = TypeAdapter(LoopRow)
_SECONDS: TypeAdapter[float | None] = TypeAdapter(PlainSeconds | None)

T = TypeVar("T")


def history_status(
    runs: Iterable[PastRun], *, runs_seen: int | None = None
) -> PipelineHistoryStatus:
    """Return the status with as many last runs of a pipeline as fit, without impossible values.

    Of wide loops the last iterations are left out where no room is left for a few runs, and of
    runs the last steps where there is none for one.

    Args:
        runs: runs of one pipeline.
        runs_seen: number of runs that were seen; None = as many as `runs`.
    """
    latest = sorted(runs, key=lambda run: run.order, reverse=True)[:MAX_RUNS]
    widths = (Counter(step.identity.step for step in run.steps).values() for run in latest)
    most, iterations = MAX_LIST_ROWS, min(MOST_ITERATIONS, max(chain([1], *widths)))
    kept = _fitting(latest, most, iterations)
    while len(kept.runs) < min(FEWEST_RUNS if iterations > 1 else 1, len(latest)):
        if iterations > 1:
            iterations //= 2
        else:
            most //= 2
        kept = _fitting(latest, most, iterations)
    ends = sorted(run.seconds for run in kept.runs if run.seconds is not None)
    return PipelineHistoryStatus(
        nodes=kept.nodes,
        images=kept.images,
        steps=kept.steps,
        runs=kept.runs[::-1],
        runs_seen=len(kept.runs) if runs_seen is None else runs_seen,
        typical=ends[len(ends) // 2] if ends else None,
        range=f"{format_duration(ends[0])}-{format_duration(ends[-1])}" if ends else None,
        last_run_at=kept.runs[0].ended_at if kept.runs else None,
    )


@dataclass(frozen=True)
class _Kept:
    """Runs, the last one first, and what they name by its index."""

    runs: tuple[RecordedRun, ...] = ()
    nodes: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    steps: tuple[StepRow, ...] = ()


@dataclass(frozen=True)
class _Indexes:
    """Index of each node, image and step that runs name; new ones are added."""

    nodes: dict[str, int] = field(default_factory=dict)
    images: dict[str, int] = field(default_factory=dict)
    steps: dict[StepRow, int] = field(default_factory=dict)
    _rows: dict[tuple[Any, ...], StepRow | None] = field(default_factory=dict)

    def step_row(self, step: PastStep) -> StepRow | None:
        """Return the row of a step without its image, and without requests that cannot be."""
        stated = _stated_row(step)
        if stated not in self._rows:
            rows = (_valid(_STEP, stated[:entries]) for entries in (5, 4, 3))
            self._rows[stated] = next(filter(None, rows), None)
        return self._rows[stated]


def _fitting(latest: Iterable[PastRun], most: int, of_step: int) -> _Kept:
    """Return as many runs as fit.

    Args:
        latest: the runs, the last one first.
        most: steps of one run, and loops.
        of_step: iterations of each step.
    """
    kept, indexes = _Kept(), _Indexes()
    used_bytes = _OBJECT_BYTES
    for run in latest:
        recorded = _recorded(run, indexes, most, of_step)
        used_bytes += json_bytes(recorded.model_dump(mode="json", by_alias=True))
        nodes, images, steps = indexes.nodes, indexes.images, indexes.steps
        if used_bytes + json_bytes([*nodes, *images, *map(written, steps)]) > MAX_HISTORY_BYTES:
            break
        kept = _Kept((*kept.runs, recorded), tuple(nodes), tuple(images), tuple(steps))
    return kept


def _recorded(run: PastRun, indexes: _Indexes, most: int, of_step: int) -> RecordedRun:
    """Return the part of a run that is kept.

    Args:
        run: run as the history knows it.
        indexes: indexes of what it names.
        most: steps of one run, and loops.
        of_step: iterations of each step.
    """
    iterations: defaultdict[str, list[PastStep]] = defaultdict(list)
    for step in run.steps:
        iterations[step.identity.step].append(step)
    rows = filter(None, (_ran_row(each, indexes, of_step) for each in iterations.values()))
    loops = filter(None, (_valid(_LOOP, each) for each in run.loops.items()))
    return RecordedRun(
        uid=run.uid,
        ended_at=run.ended_at,
        seconds=_valid(_SECONDS, _rounded(run.seconds, 1)),
        planned_seconds=_valid(_SECONDS, _rounded(run.planned_seconds, 1)),
        steps=tuple(islice(rows, most)),
        loops=tuple(islice(loops, most)),
    )


def _ran_row(iterations: list[PastStep], indexes: _Indexes, most: int) -> RanRow | None:
    """Return the row of a step, or None if no value of it can be true; arguments as above."""
    step, image = indexes.step_row(iterations[-1]), _image(iterations[-1])
    if step is None:
        return None
    rows = filter(None, (_iteration_row(each, indexes.nodes) for each in iterations))
    possible = tuple(islice(rows, most))
    if not possible:
        return None
    if image:
        step = step._replace(image=indexes.images.setdefault(image, len(indexes.images)))
    index = indexes.steps.setdefault(step, len(indexes.steps))
    # Where other runs have taken all rows there is no room for this one either.
    return RanRow(index, possible) if index < MAX_LIST_ROWS else None


def _stated_row(step: PastStep) -> tuple[Any, ...]:
    """Return the entries of a step's row as they are, possible or not, without its image."""
    identity, container = step.identity, step.container
    code = (identity.step, identity.component, identity.image)
    if container is None:
        return code
    memory_bytes = container.requests.get("memory") or None
    if not container.is_complete:
        return (*code, memory_bytes)
    # A row without other requests would look like one of an older version.
    requests = {"cpu": 0, **container.requests}
    return (*code, memory_bytes, tuple(sorted(e for e in requests.items() if e[0] != "memory")))


def _image(step: PastStep) -> str:
    """Return the image of a step, or "" if it is unknown or too long."""
    image = "" if step.container is None else step.container.image
    return image if len(image) <= MAX_IMAGE_CHARACTERS else ""


def _iteration_row(iteration: PastStep, nodes: dict[str, int]) -> IterationRow | None:
    node = iteration.node[:253]
    row = (
        _rounded(iteration.seconds, 1),
        nodes.get(node, len(nodes)) if node else None,
        iteration.identity.iteration or "",
        _rounded(iteration.input_bytes),
        _rounded(iteration.peak_bytes),
        _rounded(iteration.killed_bytes),
        iteration.arguments,
    )
    possible = _valid(_ITERATION, row)
    if possible is not None and node:
        nodes.setdefault(node, len(nodes))
    return possible


def _valid(kind: TypeAdapter[T], value: object) -> T | None:
    """Return a value that can be true, or None if it cannot be and is left out."""
    try:
        return kind.validate_python(value)
    except ValidationError:
        return None


def _rounded(amount: float | None, digits: int = 0) -> float | None:
    return None if amount is None else round(amount, digits)
