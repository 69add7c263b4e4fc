"""PipelineHistory: what the runs of one pipeline in one namespace have shown.

The planner writes it. People who may edit the namespace say in its spec what the planner must
forget. Anybody with the right to write one may have written any of it.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from kfp_placement_engine.contract.fields import (
    Makespan,
    Moment,
    Resource,
    ResourceModel,
    ResourceStatus,
)
from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.contract.placement import NodeName
from kfp_placement_engine.model.durations import MAX_DURATION_SECONDS

MAX_FORGOTTEN_STEPS = 200
"""Steps of which a spec says since when they count."""

MAX_HISTORY_NODES = 5_000
MAX_HISTORY_STEPS = 10_000
MAX_HISTORY_RUNS = 1_000
MAX_RUN_ROWS = 20_000
"""Of one object, by its schema; its writer keeps far less, since it is at most 256 KiB."""

MAX_STEP_CHARACTERS = 512
"""Longest path of a task that a spec names."""

HistoryRow = Annotated[tuple[Any, ...], Field(max_length=8)]
"""One step in a list of values."""

RunSeconds = Annotated[float, Field(ge=0, le=MAX_DURATION_SECONDS)]


class ForgottenStep(ResourceModel):
    """Since when a step counts."""

    step: str = Field(min_length=1, max_length=MAX_STEP_CHARACTERS)
    """Path of the task in the pipeline."""

    before: Moment
    """Nothing of it that ended before counts."""


class PipelineHistorySpec(ResourceModel):
    """Whose past it is, and since when it counts."""

    pipeline: str = Field(min_length=1, max_length=253)
    """Name of the pipeline."""

    forget_before: Moment | None = None
    """Nothing that ended before counts."""

    forget_steps: tuple[ForgottenStep, ...] = Field(default=(), max_length=MAX_FORGOTTEN_STEPS)
    """The same for single steps."""


class RecordedRun(ResourceModel):
    """What one run has shown."""

    uid: str = Field(min_length=1, max_length=64)
    """Of the run, so that nothing is learned twice."""

    ended_at: Moment
    """When it ended."""

    planned_seconds: RunSeconds | None = None
    """How long the whole run was to take by its plan."""

    seconds: RunSeconds | None = None
    """How long it took."""

    steps: tuple[HistoryRow, ...] = Field(default=(), max_length=MAX_RUN_ROWS)
    """Rows [step index, iteration key, seconds, node index, input bytes]."""


class PipelineHistoryStatus(ResourceStatus):
    """What was learned."""

    runs_seen: int | None = Field(default=None, ge=0)
    """Runs that were learned from, those that are no longer kept included."""

    typical_seconds: Makespan | None = Field(default=None, alias="typical")
    """How long a run typically takes."""

    range: str | None = Field(default=None, max_length=64)
    """The range that most runs are in, as text."""

    last_run_at: Moment | None = None
    """When the last run ended."""

    salt: str | None = Field(default=None, min_length=1, max_length=32, pattern=r"^[a-z0-9]+$")
    """Of the hashes in iteration keys."""

    nodes: tuple[NodeName, ...] = Field(default=(), max_length=MAX_HISTORY_NODES)
    """Nodes that rows name by their index here."""

    steps: tuple[HistoryRow, ...] = Field(default=(), max_length=MAX_HISTORY_STEPS)
    """Rows [path, component digest, image digest], which rows of runs name by their index here."""

    runs: tuple[RecordedRun, ...] = Field(default=(), max_length=MAX_HISTORY_RUNS)
    """Runs that are kept, the latest last."""


class PipelineHistory(Resource):
    """What is remembered of one pipeline, in a namespace."""

    api_version: str = API_VERSION
    kind: Literal["PipelineHistory"] = "PipelineHistory"
    spec: PipelineHistorySpec
    status: PipelineHistoryStatus | None = None
