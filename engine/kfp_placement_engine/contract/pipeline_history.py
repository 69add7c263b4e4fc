"""PipelineHistory: the past runs of one pipeline in one namespace, which later ones learn from.

The planner writes the status, people the spec, by which runs are forgotten. A run's steps are rows,
since named records would be too large::

    status.steps:       [path, component, image, asked bytes]
    status.runs.steps:  [step, seconds, node, iteration, input bytes, peak bytes, killed bytes,
                         numeric arguments]
    status.runs.loops:  [step, iterations]

A step and a node are indexes into `status.steps` and `status.nodes`, -1 = none. Seconds are run
time x declared speed of the node; without them the step did not end well. Killed bytes are what it
had when it was killed for memory. Of arguments only those that are numbers are kept, in a list in
the order of their names. Components, images and iterations are short digests: texts of users, which
may hold secrets, are in none of them. Entries may be missing at the end, and a later version may
add some there: an earlier one ignores them, and writes none when it adds a run.
"""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from kfp_placement_engine.contract.fields import (
    Border,
    Count,
    Makespan,
    Moment,
    ObjectName,
    Resource,
    ResourceModel,
)
from kfp_placement_engine.contract.history_rows import (
    DIGITS,
    ITERATION_DIGITS,
    MAX_LOOPS,
    MAX_NODES,
    MAX_PATH_CHARACTERS,
    MAX_ROWS,
    MAX_STEPS,
    RowReader,
    read_rows,
)
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.durations import MAX_DURATION_SECONDS
from kfp_placement_engine.model.history import (
    PastRun,
    StepIdentity,
    text_digest,
)
from kfp_placement_engine.model.run_graph import Step

MAX_HISTORY_BYTES = 256 * 1024
"""Of one object, without what people forget in its spec; the oldest runs go first."""

HISTORIES_PER_PAGE = 20
"""Objects of one answer: 500 at a time, as of other kinds, take 1.7 GB to read."""

MAX_RUNS = 30
"""Of one pipeline. More tell nothing new: of a step the last 20 values count, 5 of an iteration."""

MAX_FORGOTTEN_STEPS = 200

MAX_PIPELINE_CHARACTERS, MAX_UID_CHARACTERS = 253, 64

_OBJECT_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")

Row = Annotated[tuple[Any, ...], Field(max_length=16)]
"""More entries than are known now, so that what a later version has written can be read."""

RunSeconds = Annotated[float, Field(ge=0, le=MAX_DURATION_SECONDS)]
"""How long a run took, or was to take."""


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
        iteration=text_digest(salted)[:ITERATION_DIGITS] if step.iteration_key else "",
        component=step.component[:DIGITS],
        image=text_digest(step.image)[:DIGITS] if step.image else "",
    )


def history_name(pipeline: str) -> str:
    """Name of its object: the pipeline's own, or one near to it if objects cannot have that."""
    if len(pipeline) <= MAX_PIPELINE_CHARACTERS and _OBJECT_NAME.fullmatch(pipeline):
        return pipeline
    letters = (letter if letter.isascii() and letter.isalnum() else "-" for letter in pipeline)
    readable = "".join(letters).lower()[:40].strip("-")
    return f"{readable or 'pipeline'}-{text_digest(pipeline)[:8]}"


class ForgottenStep(ResourceModel):
    """A step whose past does not count."""

    step: str = Field(min_length=1, max_length=MAX_PATH_CHARACTERS)
    """Its path, as in `status.steps`."""

    before: Border
    """What ended before is forgotten."""


class PipelineHistorySpec(ResourceModel):
    """What people decide."""

    pipeline: ObjectName
    """Name of the pipeline."""

    forget_before: Border | None = None
    """Runs that ended before are forgotten."""

    forget_steps: Annotated[tuple[ForgottenStep, ...], Field(max_length=MAX_FORGOTTEN_STEPS)] = ()
    """Steps whose times before a moment do not count; the runs count for the other steps."""

    def forgets_run(self, ended_at: datetime) -> bool:
        """Whether nothing of a run that ended then counts."""
        return self.forget_before is not None and ended_at < self.forget_before

    def remembered(self, run: PastRun) -> PastRun:
        """What counts of a run that counts."""
        forgotten = {each.step for each in self.forget_steps if run.ended_at < each.before}
        kept = (each for each in run.steps if each.identity.step not in forgotten)
        return replace(run, steps=tuple(kept))


class RecordedRun(ResourceModel):
    """A run that has ended."""

    uid: str = Field(min_length=1, max_length=MAX_UID_CHARACTERS)
    """ID of the Workflow: no run is learned from twice."""

    ended_at: Moment
    """When it ended."""

    seconds: RunSeconds | None = None
    """From its beginning to its end, without waits in a queue, if it ended well."""

    planned_seconds: RunSeconds | None = Field(default=None, alias="plannedSeconds")
    """The same by the plan with which it began; missing = that rested on assumed run times."""

    steps: tuple[Row, ...] = Field(default=(), max_length=MAX_ROWS)
    """Rows of steps that ended well, or were killed for memory; see above."""

    loops: tuple[Row, ...] = Field(default=(), max_length=MAX_LOOPS)
    """Rows [step, iterations], of its loops."""


EndedRun = TypeVar("EndedRun", RecordedRun, PastRun)


class PipelineHistoryStatus(ResourceModel):
    """What has been seen."""

    nodes: tuple[ObjectName, ...] = Field(default=(), max_length=MAX_NODES)
    """Nodes that rows name by their index here."""

    steps: tuple[Row, ...] = Field(default=(), max_length=MAX_STEPS)
    """Rows [path, component, image, asked bytes]; the last is the memory that was asked for."""

    runs: tuple[RecordedRun, ...] = Field(default=(), max_length=1000)
    """The last runs, the oldest first."""

    runs_seen: Count | None = None
    """Runs that were learned from, those that are no longer kept included."""

    typical: Makespan | None = None
    """Median of what the runs that are kept and ended well took."""

    range: str | None = Field(default=None, max_length=64)
    """The shortest and the longest run that is kept, of those that ended well."""

    last_run_at: Moment | None = None
    """When the last of them ended."""


class PipelineHistory(Resource):
    """The past runs of one pipeline; outlives its Workflows."""

    kind: Literal["PipelineHistory"] = "PipelineHistory"
    spec: PipelineHistorySpec
    status: PipelineHistoryStatus = Field(default_factory=PipelineHistoryStatus)

    @property
    def ended(self) -> Mapping[str, datetime]:
        """When all these runs ended, by uid."""
        return {run.uid: run.ended_at for run in self.status.runs}

    def only(self, uids: Container[str]) -> "PipelineHistory":
        """The same with some of its runs: to read the rows of all takes long.

        Args:
            uids: of the runs.
        """
        runs = tuple(run for run in self.status.runs if run.uid in uids)
        return self.model_copy(update={"status": self.status.model_copy(update={"runs": runs})})

    def past_runs(self, keep_days: int | None = None) -> tuple[PastRun, ...]:
        """Read the runs that count, the oldest first, without steps that are forgotten.

        Args:
            keep_days: of older runs than that none counts; None = they all do.

        Raises:
            InputError: a row cannot be read, or says what cannot be true.
        """
        runs = self.runs_that_count(keep_days)
        try:
            reader = RowReader(self.spec.pipeline, self.status.steps, self.status.nodes)
            return tuple(self._past_run(run, reader) for run in runs)
        except InputError as error:
            raise InputError(f"PipelineHistory {self.metadata.name!r:.80}: {error}") from error

    def _past_run(self, run: RecordedRun, reader: RowReader) -> PastRun:
        where = f"run {run.uid!r}"
        found = PastRun(
            uid=run.uid,
            pipeline=self.spec.pipeline,
            ended_at=run.ended_at,
            steps=read_rows(run.steps, reader.step, f"steps of {where}"),
            seconds=run.seconds,
            planned_seconds=run.planned_seconds,
            loops=read_rows(run.loops, reader.loop, f"loops of {where}"),
        )
        return self.spec.remembered(found)

    def runs_that_count(self, keep_days: int | None = None) -> tuple[RecordedRun, ...]:
        """Those that are kept and not forgotten; their rows are not read. Arguments as above.

        Somebody may have added a run twice; of a run the last one counts.
        """
        runs: Sequence[RecordedRun] = tuple({run.uid: run for run in self.status.runs}.values())
        if keep_days is not None:
            runs = runs_kept(runs, keep_days)
        return tuple(run for run in runs if not self.spec.forgets_run(run.ended_at))


OUTVOTED = 3
"""This many runs count beside one that ended long after all of them."""


def runs_kept(runs: Sequence[EndedRun], keep_days: int) -> Sequence[EndedRun]:
    """Those that count beside the last one of their pipeline; no clock decides that.

    Where the last one alone ended long after several others, all count until another one has: its
    clock may have been wrong, and one wrong date must not cost what is known.

    Args:
        runs: of one pipeline.
        keep_days: how long before the last one they may have ended.
    """
    last_at = max((run.ended_at for run in runs), default=None)
    if last_at is None:
        return runs
    near = [run for run in runs if last_at - run.ended_at <= timedelta(days=keep_days)]
    is_alone = len(near) == 1 and len(runs) > OUTVOTED
    return runs if is_alone else near


def exported(histories: Iterable[PipelineHistory]) -> Mapping[str, Any]:
    """Several histories as one file, as `kubectl get -o yaml` prints them."""
    items = [each.to_object() for each in histories]
    return {"apiVersion": "v1", "kind": "List", "items": items}
