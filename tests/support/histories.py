"""PipelineHistories with made-up runs, always the same."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from kfp_placement_engine.contract.fields import ObjectMetadata
from kfp_placement_engine.contract.pipeline_history import (
    PipelineHistory,
    PipelineHistorySpec,
    history_name,
    history_status,
)
from kfp_placement_engine.model.history import Observation, PastRun, StepIdentity

MIB = 2**20


def past_run(
    pipeline: str,
    number: int,
    ended_at: datetime,
    steps: Mapping[str, Sequence[float]],
    seconds: float | None = None,
    planned_seconds: float | None = None,
    input_bytes: float | None = None,
) -> PastRun:
    """A run that has ended; of a step in a loop there is a time for each iteration."""
    observations = tuple(
        Observation(
            StepIdentity(pipeline, path, f"{index:08x}" if len(times) > 1 else "", "c0ffee", "1e5"),
            time,
            "node-1",
            input_bytes,
        )
        for path, times in steps.items()
        for index, time in enumerate(times)
    )
    uid = f"{pipeline[:40]}-{number}"
    return PastRun(
        uid, pipeline, ended_at, observations, seconds=seconds, planned_seconds=planned_seconds
    )


def history_object(runs: Sequence[PastRun], namespace: str = "team-a", **spec: Any) -> Any:
    """The object of one pipeline, as the API server prints it."""
    pipeline = runs[0].pipeline
    return PipelineHistory(
        metadata=ObjectMetadata(name=history_name(pipeline), namespace=namespace),
        spec=PipelineHistorySpec(pipeline=pipeline, **spec),
        status=history_status(runs),
    ).to_object()


def taxi_runs(last_ended_at: datetime, count: int = 9) -> list[PastRun]:
    """Runs of the taxi sample, a day apart: its training takes some 20 minutes, by its inputs."""
    return [
        past_run(
            "taxi",
            number,
            last_ended_at - timedelta(days=count - 1 - number),
            {
                "fetch": [33 + number % 3],
                "train": [1188 + 7 * (number % 4)],
                "for-loop-1[*].score": [40 + number % 2, 80 + number % 3, 120],
            },
            seconds=1375 + 10 * (number % 5),
            planned_seconds=1300,
            input_bytes=50 * MIB,
        )
        for number in range(count)
    ]
