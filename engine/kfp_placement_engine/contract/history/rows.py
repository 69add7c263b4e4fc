"""Ended runs in a PipelineHistory: their steps are rows, since thousands must fit.

::

    steps of the pipeline: [path, component, image digest, asked bytes, other requests, image]
    steps of a run: [step, [iteration, ...]]
    an iteration: [seconds, node, key, input bytes, peak bytes, killed bytes, arguments]
    loops of a run: [path, iterations]

Runs name steps and nodes by their index in the lists of the pipeline, and steps their images.

Entries that say nothing are left out at the end of a row. What these types refuse is neither read
nor written: clocks jump, and anybody may write a status.
"""

from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, Field, PlainSerializer, WithJsonSchema

from kfp_placement_engine.contract.run_queue import ResourceName
from kfp_placement_engine.contract.run_request import MAX_RESOURCES
from kfp_placement_engine.contract.shared_parts import Moment, ObjectName, ResourceModel
from kfp_placement_engine.model.history import (
    LARGEST_ARGUMENT,
    MAX_IMAGE_CHARACTERS,
    MOST_ARGUMENTS,
)
from kfp_placement_engine.units.durations import MAX_DURATION_SECONDS

MAX_LIST_ROWS = 20_000
"""Rows of one list; objects that are not too large have fewer."""

Path = Annotated[str, Field(min_length=1, max_length=512)]
"""Path of a step or loop. What has a longer one is left out: cut, it would be another one's."""

MOST_SECONDS = 31 * 86_400.0
"""Longest run time of a step; longer ones are not believed."""

PlainSeconds = Annotated[float, Field(strict=True, ge=0, le=MAX_DURATION_SECONDS)]
"""Length of a time span, measured or planned."""

_Digest = Annotated[str, Field(max_length=64)]
"""Digest of what users wrote, which may hold secrets; "" = there is none."""

_Size = Annotated[float, Field(strict=True, ge=0, le=2**60)]
"""Amount of memory in bytes, at most an exbibyte."""

Memory = Annotated[_Size, Field(ge=1)]
"""Amount of memory, at least a byte, that a step used, had or asked for."""

_Index = Annotated[int, Field(strict=True, ge=0, lt=MAX_LIST_ROWS)]

_Requests = Annotated[
    tuple[tuple[ResourceName, Annotated[int, Field(strict=True, ge=0, le=2**60)]], ...],
    Field(max_length=MAX_RESOURCES),
]
"""Amounts of resources in canonical units."""

_Argument = Annotated[float, Field(strict=True, ge=-LARGEST_ARGUMENT, le=LARGEST_ARGUMENT)]


class IterationRow(NamedTuple):
    """Observation of one iteration of a step, with at least one of seconds, peak and killed bytes.

    A step outside loops has one.

    Attributes:
        seconds: run time x declared speed of its node; None = it did not end well.
        node: index of its node; None = unknown.
        key: digest that tells the iteration from others.
        input_bytes: size of its inputs.
        peak_bytes: the most memory that it used.
        killed_bytes: memory that the step had when it was killed for using more.
        arguments: numeric arguments, in the order of their names.
    """

    seconds: Annotated[PlainSeconds, Field(le=MOST_SECONDS)] | None = None
    node: _Index | None = None
    key: _Digest = ""
    input_bytes: _Size | None = None
    peak_bytes: Memory | None = None
    killed_bytes: Memory | None = None
    arguments: Annotated[tuple[_Argument, ...], Field(max_length=MOST_ARGUMENTS)] = ()


def _telling(row: IterationRow) -> IterationRow:
    if row.seconds is row.peak_bytes is row.killed_bytes is None:
        raise ValueError("has neither seconds nor peak or killed bytes")
    return row


TellingRow = Annotated[IterationRow, AfterValidator(_telling)]
"""An iteration that teaches something."""


class StepRow(NamedTuple):
    """A step of the pipeline; one whose code, image or requests have changed is another one.

    Attributes:
        path: path of the step, which is the same for all iterations of a loop.
        component, image_digest: digests of the component, and of its image's reference.
        asked_bytes: the memory that it asks for; None = nothing, or unknown.
        other_requests: all that it asks for besides, at least `cpu`; empty = unknown.
        image: index of its image; None = unknown.
    """

    path: Path
    component: _Digest = ""
    image_digest: _Digest = ""
    asked_bytes: Memory | None = None
    other_requests: _Requests = ()
    image: _Index | None = None


class RanRow(NamedTuple):
    """A step of a run.

    Attributes:
        step: index of the step.
        iterations: observed iterations, at least one.
    """

    step: _Index
    iterations: Annotated[tuple[TellingRow, ...], Field(min_length=1, max_length=MAX_LIST_ROWS)]


LoopRow = tuple[Path, Annotated[int, Field(strict=True, ge=0, le=1_000_000)]]
"""Path of a loop, and how many iterations it had; of a loop within loops the median."""


def written(entry: Any) -> Any:
    """Write a row, or an entry of one: whole numbers without a point, nothing empty at the end."""
    if isinstance(entry, tuple):
        entries = [*map(written, entry)]
        while entries and entries[-1] in ("", None, []):
            entries.pop()
        return entries
    return int(entry) if isinstance(entry, float) and entry.is_integer() else entry


def _row_schema(entries: int) -> WithJsonSchema:
    anything = {"x-kubernetes-preserve-unknown-fields": True}
    return WithJsonSchema({"type": "array", "maxItems": entries, "items": anything})


Nodes = Annotated[tuple[ObjectName, ...], Field(max_length=MAX_LIST_ROWS)]
"""Names of nodes."""

Images = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=MAX_IMAGE_CHARACTERS)], ...],
    Field(max_length=MAX_LIST_ROWS),
]
"""References of images."""

Steps = Annotated[
    tuple[Annotated[StepRow, PlainSerializer(written), _row_schema(6)], ...],
    Field(max_length=MAX_LIST_ROWS),
]
"""Steps of a pipeline."""


class RecordedRun(ResourceModel):
    """A run that has ended."""

    uid: str = Field(min_length=1, max_length=64)
    """ID of the Workflow: no run is learned from twice."""

    ended_at: Moment
    """Time at which the run ended."""

    seconds: PlainSeconds | None = None
    """Seconds from the run's beginning to its end, without waits in a queue, if it ended well."""

    planned_seconds: PlainSeconds | None = Field(default=None, alias="plannedSeconds")
    """Makespan of the plan with which the run began; missing = it rested on assumed run times."""

    steps: Annotated[
        tuple[Annotated[RanRow, PlainSerializer(written), _row_schema(2)], ...],
        Field(max_length=MAX_LIST_ROWS),
    ] = ()
    """Steps that ended well, or were killed for memory."""

    loops: Annotated[
        tuple[Annotated[LoopRow, _row_schema(2)], ...], Field(max_length=MAX_LIST_ROWS)
    ] = ()
    """Loops of the run."""
