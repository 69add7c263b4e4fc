"""Past runs -> the status of their PipelineHistory: as many as fit, and of a large one as much."""

from collections.abc import Iterable, Sequence

from kfp_placement_engine.contract.history_rows import HistoryRows, rounded
from kfp_placement_engine.contract.pipeline_history import (
    MAX_HISTORY_BYTES,
    MAX_RUNS,
    PipelineHistory,
    PipelineHistorySpec,
    PipelineHistoryStatus,
    RecordedRun,
)
from kfp_placement_engine.model.durations import format_duration
from kfp_placement_engine.model.history import PastRun

MAX_RUN_BYTES = MAX_HISTORY_BYTES // 5
"""Of the rows of one run; of a larger one the last iterations of its widest loops are left out."""

MAX_LOOP_BYTES = MAX_RUN_BYTES // 6
"""Of its loops, with their paths; the last ones go."""

_OBJECT_BYTES, _RUN_BYTES = 2_000, 200
"""Of what an object says beside its runs, and of what it says of a run beside its rows."""


def history_status(
    runs: Iterable[PastRun], limit_bytes: int = MAX_HISTORY_BYTES, *, runs_seen: int | None = None
) -> PipelineHistoryStatus:
    """The status that holds the last runs of a pipeline, as many as fit; the last one always does.

    Args:
        runs: of one pipeline.
        limit_bytes: of the object.
        runs_seen: how many runs there were; None = these.
    """
    latest = sorted(runs, key=lambda run: run.order, reverse=True)[:MAX_RUNS]
    rows = HistoryRows()
    recorded: list[RecordedRun] = []
    for run in latest:
        before, found = rows.mark(), _recorded(run, rows, limit_bytes)
        if rows.is_full or rows.json_bytes > limit_bytes - _OBJECT_BYTES:
            rows.go_back(before)
            break
        recorded.append(found)
    recorded.reverse()
    ends = sorted(run.seconds for run in recorded if run.seconds is not None)
    return PipelineHistoryStatus(
        nodes=tuple(rows.nodes),
        steps=tuple(rows.steps),
        runs=tuple(recorded),
        runs_seen=len(recorded) if runs_seen is None else runs_seen,
        typical=ends[len(ends) // 2] if ends else None,
        range=_range(ends),
        last_run_at=recorded[-1].ended_at if recorded else None,
    )


def as_stored(run: PastRun) -> PastRun:
    """A run as an object keeps it: times are rounded, and where there are too many some rows go."""
    spec = PipelineHistorySpec(pipeline=run.pipeline)
    (stored,) = PipelineHistory(spec=spec, status=history_status((run,))).past_runs()
    return stored


def _recorded(run: PastRun, rows: HistoryRows, limit_bytes: int) -> RecordedRun:
    """A run, of which no more is kept than three quarters of what all may have."""
    rows.json_bytes += _RUN_BYTES
    return RecordedRun(
        uid=run.uid,
        ended_at=run.ended_at,
        seconds=rounded(run.seconds),
        planned_seconds=rounded(run.planned_seconds),
        steps=rows.add(run.steps, min(MAX_RUN_BYTES, limit_bytes // 2)),
        loops=rows.add_loops(run.loops, min(MAX_LOOP_BYTES, limit_bytes // 12)),
    )


def _range(ends: Sequence[float]) -> str | None:
    return f"{format_duration(ends[0])}-{format_duration(ends[-1])}" if ends else None
