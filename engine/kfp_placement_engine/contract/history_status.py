"""Past runs -> the status of their PipelineHistory: as many as fit, and of a large one as much."""

from collections.abc import Iterable

from kfp_placement_engine.contract.history_rows import (
    MAX_LOOPS,
    MAX_NODES,
    MAX_STEPS,
    Row,
    RowWriter,
    rounded,
)
from kfp_placement_engine.contract.pipeline_history import (
    MAX_HISTORY_BYTES,
    MAX_RUNS,
    PipelineHistoryStatus,
    RecordedRun,
)
from kfp_placement_engine.contract.placement_size import json_bytes
from kfp_placement_engine.model.durations import format_duration
from kfp_placement_engine.model.history import PastRun

MAX_STEPS_OF_RUN = 2_500
"""Rows of its steps, and half as many until `FEWEST_RUNS` fit."""

FEWEST_RUNS = 5
"""More are kept if there is room for them as they are."""

_OBJECT_BYTES, _RUN_BYTES = 2_000, 200
"""Of what an object says beside its runs, and of what it says of a run beside its rows."""


def history_status(
    runs: Iterable[PastRun], *, runs_seen: int | None = None
) -> PipelineHistoryStatus:
    """The status that holds the last runs of a pipeline, as many as fit.

    Of wide loops the last iterations are left out where no room is left for a few runs.

    Args:
        runs: of one pipeline.
        runs_seen: how many runs there were; None = these.
    """
    latest = sorted(runs, key=lambda run: run.order, reverse=True)[:MAX_RUNS]
    most = MAX_STEPS_OF_RUN
    status = _fitting(latest, most)
    while len(status.runs) < min(FEWEST_RUNS, len(latest)):
        most //= 2
        status = _fitting(latest, most)
    ends = sorted(run.seconds for run in status.runs if run.seconds is not None)
    whole = {
        "runs_seen": len(status.runs) if runs_seen is None else runs_seen,
        "typical": ends[len(ends) // 2] if ends else None,
        "range": f"{format_duration(ends[0])}-{format_duration(ends[-1])}" if ends else None,
        "last_run_at": status.runs[-1].ended_at if status.runs else None,
    }
    return status.model_copy(update=whole)


def _fitting(latest: Iterable[PastRun], most: int) -> PipelineHistoryStatus:
    """As many runs as fit, the oldest first, with the steps and nodes that they name.

    Args:
        latest: the runs, the last one first.
        most: rows of steps of one run, and rows of its loops.
    """
    writer, left_bytes = RowWriter(), MAX_HISTORY_BYTES - _OBJECT_BYTES
    runs, steps, nodes = list[RecordedRun](), list[Row](), list[str]()
    for run in latest:
        recorded = RecordedRun(
            uid=run.uid,
            ended_at=run.ended_at,
            seconds=rounded(run.seconds),
            planned_seconds=rounded(run.planned_seconds),
            steps=writer.of_steps(run.steps, most),
            loops=writer.of_loops(run.loops, min(most, MAX_LOOPS)),
        )
        all_steps, all_nodes = list(writer.steps), list(writer.nodes)
        named = all_steps[len(steps) :], all_nodes[len(nodes) :]
        left_bytes -= json_bytes([recorded.steps, recorded.loops, named]) + _RUN_BYTES
        if left_bytes < 0 or len(all_steps) > MAX_STEPS or len(all_nodes) > MAX_NODES:
            break
        steps, nodes = all_steps, all_nodes
        runs.insert(0, recorded)
    return PipelineHistoryStatus(nodes=tuple(nodes), steps=tuple(steps), runs=tuple(runs))
