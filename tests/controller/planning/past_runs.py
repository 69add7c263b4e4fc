"""Past runs, and PipelineHistories that hold them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from kfp_placement_engine.contract.fields import ObjectMetadata
from kfp_placement_engine.contract.history_status import history_status
from kfp_placement_engine.contract.pipeline_history import (
    PipelineHistory,
    PipelineHistorySpec,
    history_name,
)
from kfp_placement_engine.model.history import PastRun, PastStep, StepIdentity
from tests.controller.planning.builders import START


def a_past_run(
    pipeline: str,
    number: int,
    *,
    ended_at: datetime | None = None,
    seconds: float = 60.0,
    steps: int = 1,
    component: str = "",
    node: str = "n0",
) -> PastRun:
    """A run whose steps all took the same time; each ends an hour after the one before."""
    return PastRun(
        uid=f"uid-{number}",
        pipeline=pipeline,
        ended_at=ended_at or START + timedelta(hours=number),
        steps=tuple(
            PastStep(StepIdentity(pipeline, f"step-{each}", "", component), seconds, node)
            for each in range(steps)
        ),
        planned_seconds=seconds,
        seconds=seconds,
    )


def a_history(
    pipeline: str, runs: Sequence[PastRun], namespace: str = "team", **spec: Any
) -> dict[str, Any]:
    """The object that holds them, as an API server prints it."""
    return PipelineHistory(
        metadata=ObjectMetadata(name=history_name(pipeline), namespace=namespace),
        spec=PipelineHistorySpec(pipeline=pipeline, **spec),
        status=history_status(runs),
    ).to_object()
