"""PipelineHistory: the past runs of one pipeline in one namespace, which later ones learn from.

The planner writes the status, people the spec, by which runs are forgotten. A run's steps are rows,
since named records would be too large::

    status.steps:       [path, component, image]
    status.runs.steps:  [step, seconds, node, iteration, input bytes]

A step and a node are indexes into `status.steps` and `status.nodes`, -1 = none. Components, images
and iterations are short digests: texts of users, which may hold secrets, are in none of them.
Entries may be missing at the end, and a newer revision may add some there.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
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
from kfp_placement_engine.contract.placement_size import json_bytes
from kfp_placement_engine.model.durations import MAX_DURATION_SECONDS, format_duration
from kfp_placement_engine.model.history import Observation, PastRun, StepIdentity
from kfp_placement_engine.model.run_graph import Step

MAX_HISTORY_BYTES = 256 * 1024
"""Of the rows of one object; the oldest runs go first."""

MAX_RUNS = 60
"""Of one pipeline. More tell nothing new: of a step the last 20 values count, 5 of an iteration."""

MAX_STEPS, MAX_NODES, MAX_ROWS = 10_000, 5_000, 20_000
MAX_FORGOTTEN_STEPS = 200
MAX_PATH_CHARACTERS = 512
MAX_PIPELINE_CHARACTERS = 253

_DIGITS, _ITERATION_DIGITS = 16, 8
"""Of digests, in hexadecimal; of iterations, of which a step has few, they are shorter."""

_OBJECT_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")

Row = Annotated[tuple[Any, ...], Field(max_length=8)]


def step_identity(pipeline: str, step: Step) -> StepIdentity:
    """Whose past counts for a step.

    Args:
        pipeline: name of its pipeline.
        step: the step.
    """
    # With the pipeline in it, equal items of two pipelines do not show.
    salted = f"{pipeline}/{step.iteration_key}"
    return StepIdentity(
        pipeline=pipeline,
        step=step.task,
        iteration=_digest(salted)[:_ITERATION_DIGITS] if step.iteration_key else "",
        component=step.component[:_DIGITS],
        image=_digest(step.image)[:_DIGITS] if step.image else "",
    )


def _digest(text: str) -> str:
    # Texts of others may hold half a surrogate pair, which no encoding takes as it is.
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def history_name(pipeline: str) -> str:
    """Name of its object: the pipeline's own, or one near to it if objects cannot have that."""
    if len(pipeline) <= MAX_PIPELINE_CHARACTERS and _OBJECT_NAME.fullmatch(pipeline):
        return pipeline
    letters = (letter if letter.isascii() and letter.isalnum() else "-" for letter in pipeline)
    readable = "".join(letters).lower()[:40].strip("-")
    return f"{readable or 'pipeline'}-{_digest(pipeline)[:8]}"


class ForgottenStep(ResourceModel):
    """A step whose past does not count."""

    step: str = Field(min_length=1, max_length=MAX_PATH_CHARACTERS)
    """Its path, as in `status.steps`."""

    before: Moment
    """What ended before is forgotten."""


class PipelineHistorySpec(ResourceModel):
    """What people decide."""

    pipeline: str = Field(min_length=1, max_length=MAX_PIPELINE_CHARACTERS)
    """Name of the pipeline."""

    forget_before: Moment | None = None
    """Runs that ended before are forgotten."""

    forget_steps: Annotated[tuple[ForgottenStep, ...], Field(max_length=MAX_FORGOTTEN_STEPS)] = ()
    """Steps whose times of before are forgotten; the runs count for the others."""

    def forgets(self, step: str, ended_at: datetime) -> bool:
        """Whether the time of a step does not count, in a run that ended then."""
        if self.forget_before is not None and ended_at < self.forget_before:
            return True
        return any(each.step == step and ended_at < each.before for each in self.forget_steps)


class RecordedRun(ResourceModel):
    """A run that has ended."""

    uid: str = Field(min_length=1, max_length=64)
    """Of the Workflow and its end: no run is learned from twice."""

    ended_at: Moment
    """When it ended."""

    played_seconds: float | None = Field(default=None, ge=0, le=MAX_DURATION_SECONDS)
    """The same as expected before it began: the median of samples of its plan."""

    seconds: float | None = Field(default=None, ge=0, le=MAX_DURATION_SECONDS)
    """From its beginning to its end, without waits in a queue, if it ended well."""

    steps: tuple[Row, ...] = Field(default=(), max_length=MAX_ROWS)
    """Rows [step, seconds, node, iteration, input bytes], of the steps that ended well."""


class PipelineHistoryStatus(ResourceStatus):
    """What has been seen."""

    nodes: tuple[NodeName, ...] = Field(default=(), max_length=MAX_NODES)
    """Nodes that rows name by their index here."""

    steps: tuple[Row, ...] = Field(default=(), max_length=MAX_STEPS)
    """Rows [path, component, image]."""

    runs: tuple[RecordedRun, ...] = Field(default=(), max_length=1000)
    """The last runs, the oldest first."""

    runs_seen: int | None = Field(default=None, ge=0)
    """Runs that were learned from, those that are no longer kept included."""

    typical: Makespan | None = None
    """Median of what the runs that ended well took."""

    range: str | None = Field(default=None, max_length=64)
    """The shortest and the longest of them."""

    last_run_at: Moment | None = None
    """When the last of them ended."""


class PipelineHistory(Resource):
    """The past runs of one pipeline; outlives its Workflows."""

    api_version: str = API_VERSION
    kind: Literal["PipelineHistory"] = "PipelineHistory"
    spec: PipelineHistorySpec
    status: PipelineHistoryStatus | None = None

    def past_runs(self) -> tuple[PastRun, ...]:
        """The runs that count, the oldest first; rows that cannot be read are left out."""
        status = self.status
        if status is None:
            return ()
        identities = [_identity(self.spec.pipeline, row) for row in status.steps]
        return tuple(
            PastRun(
                uid=run.uid,
                pipeline=self.spec.pipeline,
                ended_at=run.ended_at,
                steps=tuple(self._observations(run, identities)),
                played_seconds=run.played_seconds,
                seconds=run.seconds,
            )
            for run in status.runs
            if self.spec.forget_before is None or run.ended_at >= self.spec.forget_before
        )

    def _observations(
        self, run: RecordedRun, identities: Sequence[StepIdentity | None]
    ) -> Iterator[Observation]:
        assert self.status is not None  # there are runs
        for row in run.steps:
            observation = _observation(row, identities, self.status.nodes)
            if observation is None:
                continue
            if not self.spec.forgets(observation.identity.step, run.ended_at):
                yield observation


def _identity(pipeline: str, row: Sequence[object]) -> StepIdentity | None:
    """The step of a row, without its iteration; None = it cannot be read."""
    texts = [*row[:3], "", ""][:3]
    if not row or not all(isinstance(each, str) for each in texts):
        return None
    path, component, image = map(str, texts)
    if not 0 < len(path) <= MAX_PATH_CHARACTERS:
        return None
    return StepIdentity(pipeline, path, "", component[:_DIGITS], image[:_DIGITS])


def _observation(
    row: Sequence[object], identities: Sequence[StepIdentity | None], nodes: Sequence[str]
) -> Observation | None:
    """What a row says; None = it cannot be read, or cannot be true."""
    step, seconds, node, iteration, size = [*row[:5], *(None,) * 5][:5]
    index, seconds_read, node_index = _number(step), _number(seconds), _number(node)
    if index is None or seconds_read is None or not 0 <= index < len(identities):
        return None
    identity = identities[int(index)]
    if identity is None:
        return None
    key = iteration[:_ITERATION_DIGITS] if isinstance(iteration, str) else ""
    found = Observation(
        StepIdentity(identity.pipeline, identity.step, key, identity.component, identity.image),
        seconds_read,
        nodes[int(node_index)] if node_index is not None and 0 <= node_index < len(nodes) else "",
        _number(size),
    )
    return found if found.is_usable else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**63:
        return None
    return float(value)


def history_status(
    runs: Iterable[PastRun], limit_bytes: int = MAX_HISTORY_BYTES, *, runs_seen: int | None = None
) -> PipelineHistoryStatus:
    """The status that holds the last runs of a pipeline, as many as fit.

    Args:
        runs: of one pipeline.
        limit_bytes: of all rows.
        runs_seen: how many runs there were; None = these.
    """
    latest = sorted(runs, key=lambda run: (run.ended_at, run.uid), reverse=True)[:MAX_RUNS]
    rows = _Rows()
    recorded: list[RecordedRun] = []
    for run in latest:
        found = rows.recorded(run)
        if found is None or rows.json_bytes > limit_bytes:
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


class _Rows:
    """Rows of runs, with the steps and nodes that they name.

    Attributes:
        steps: rows of steps, each with its index.
        nodes: names, each with its index.
        json_bytes: of all rows so far.
    """

    def __init__(self) -> None:
        self.steps: dict[tuple[str, str, str], int] = {}
        self.nodes: dict[str, int] = {}
        self.json_bytes = 0

    def recorded(self, run: PastRun) -> RecordedRun | None:
        """The run with its rows; None = there is no room for its steps or nodes."""
        rows = tuple(self._row(each) for each in run.steps[:MAX_ROWS] if each.is_usable)
        if len(self.steps) > MAX_STEPS or len(self.nodes) > MAX_NODES:
            return None
        self.json_bytes += json_bytes(rows) + 200
        return RecordedRun(
            uid=run.uid,
            ended_at=run.ended_at,
            played_seconds=_rounded(run.played_seconds),
            seconds=_rounded(run.seconds),
            steps=rows,
        )

    def _row(self, each: Observation) -> tuple[Any, ...]:
        identity = each.identity
        step = (identity.step[:MAX_PATH_CHARACTERS], identity.component, identity.image)
        row: list[Any] = [
            self._index(self.steps, step),
            _rounded(each.seconds),
            self._index(self.nodes, each.node[:253]) if each.node else -1,
            identity.iteration or "",
        ]
        if each.input_bytes is not None:
            row.append(int(each.input_bytes))
        while row[-1] in ("", -1):
            row.pop()
        return tuple(row)

    def _index(self, known: dict[Any, int], entry: Any) -> int:
        if entry not in known:
            known[entry] = len(known)
            self.json_bytes += json_bytes(entry) + 1
        return known[entry]


def _rounded(seconds: float | None) -> float | None:
    """To a tenth of a second, in the shortest form."""
    if seconds is None:
        return None
    rounded = round(float(seconds), 1)
    return int(rounded) if rounded.is_integer() else rounded


def _range(ends: Sequence[float]) -> str | None:
    return f"{format_duration(ends[0])}-{format_duration(ends[-1])}" if ends else None


def unreadable_rows(history: PipelineHistory) -> int:
    """How many rows cannot be read, or say what cannot be true."""
    status = history.status
    if status is None:
        return 0
    identities = [_identity(history.spec.pipeline, row) for row in status.steps]
    rows = (row for run in status.runs for row in run.steps)
    return sum(_observation(row, identities, status.nodes) is None for row in rows)


def exported(histories: Iterable[PipelineHistory]) -> Mapping[str, Any]:
    """Several histories as one file, as `kubectl get -o yaml` prints them."""
    items = [each.to_object() for each in histories]
    return {"apiVersion": "v1", "kind": "List", "items": items}
