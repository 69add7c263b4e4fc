"""PipelineHistory: the past runs of one pipeline in one namespace, which later ones learn from.

The planner writes the status, people the spec, by which runs are forgotten.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, model_validator

from kfp_placement_engine.contract.history.rows import (
    Images,
    Nodes,
    Path,
    RecordedRun,
    StepRow,
    Steps,
)
from kfp_placement_engine.contract.shared_parts import (
    Border,
    Count,
    Makespan,
    Moment,
    ObjectName,
    Resource,
    ResourceModel,
)
from kfp_placement_engine.model.history import (
    PastContainer,
    PastRun,
    PastStep,
    StepIdentity,
    text_digest,
)
from kfp_placement_engine.model.run_graph import Step
from kfp_placement_engine.units.resources import without_zeros

MAX_HISTORY_BYTES = 256 * 1024
"""Largest size of one object without its spec, which people write; the oldest runs go first."""

HISTORIES_PER_PAGE = 20
"""Histories per page of a list; reading 500, the page size of other kinds, takes 1.7 GB."""

MAX_RUNS = 30
"""Limit of runs of one pipeline: a step's last 20 values count, and 5 of an iteration."""

MAX_FORGOTTEN_STEPS = 200

MAX_PIPELINE_CHARACTERS = 253

_DIGITS = 8
"""Length of digests, in hexadecimal characters."""

_OBJECT_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


def step_identity(pipeline: str, step: Step) -> StepIdentity:
    """Return the identity of a step: past steps with the same one count for it.

    Args:
        pipeline: name of its pipeline.
        step: the step.
    """
    # Salted with the pipeline, so that digests do not reveal equal items of two pipelines.
    salted = f"{pipeline}/{step.iteration_key}"
    return StepIdentity(
        pipeline=pipeline,
        step=step.task,
        iteration=text_digest(salted)[:_DIGITS] if step.iteration_key else "",
        component=step.component[:_DIGITS],
        image=image_digest(step.image),
    )


def image_digest(image: str) -> str:
    """Return the digest by which steps of one image are known; "" = the image is unknown."""
    return text_digest(image)[:_DIGITS] if image else ""


def history_name(pipeline: str) -> str:
    """Return the name of a pipeline's history object: the pipeline's, or a valid one like it."""
    if len(pipeline) <= MAX_PIPELINE_CHARACTERS and _OBJECT_NAME.fullmatch(pipeline):
        return pipeline
    letters = (letter if letter.isascii() and letter.isalnum() else "-" for letter in pipeline)
    readable = "".join(letters).lower()[:40].strip("-")
    return f"{readable or 'pipeline'}-{text_digest(pipeline)[:8]}"


class ForgottenStep(ResourceModel):
    """A step whose past does not count."""

    step: Path
    """Path of the step, as in the rows of runs."""

    before: Border
    """Moment before which everything is forgotten."""


class PipelineHistorySpec(ResourceModel):
    """Part of a history that people decide."""

    pipeline: ObjectName
    """Name of the pipeline."""

    forget_before: Border | None = None
    """Runs that ended before are forgotten."""

    forget_steps: Annotated[tuple[ForgottenStep, ...], Field(max_length=MAX_FORGOTTEN_STEPS)] = ()
    """Steps whose times before a moment do not count; the runs count for the other steps."""

    def forgets_run(self, ended_at: datetime) -> bool:
        """Return whether nothing of a run that ended at a moment counts."""
        return self.forget_before is not None and ended_at < self.forget_before


EndedRun = TypeVar("EndedRun", RecordedRun, PastRun)


class PipelineHistoryStatus(ResourceModel):
    """Part of a history that the controller has seen."""

    nodes: Nodes = ()
    """Nodes that runs name by their index here."""

    images: Images = ()
    """Images that steps name by their index here."""

    steps: Steps = ()
    """Steps that runs name by their index here."""

    runs: tuple[RecordedRun, ...] = Field(default=(), max_length=1000)
    """The last runs, the oldest first."""

    runs_seen: Count | None = None
    """Runs that were learned from, those that are no longer kept included."""

    typical: Makespan | None = None
    """Median of what the runs that are kept and ended well took."""

    range: str | None = Field(default=None, max_length=64)
    """The shortest and the longest run that is kept, of those that ended well."""

    last_run_at: Moment | None = None
    """Moment at which the last of the runs ended."""

    @model_validator(mode="after")
    def _has_all_steps(self) -> Self:
        for number, run in enumerate(self.runs):
            for at, row in enumerate(run.steps):
                if row.step >= len(self.steps):
                    raise ValueError(f"runs.{number}.steps.{at}.0: there is no step {row.step}")
        return self


class PipelineHistory(Resource):
    """The past runs of one pipeline; outlives its Workflows."""

    kind: Literal["PipelineHistory"] = "PipelineHistory"
    spec: PipelineHistorySpec
    status: PipelineHistoryStatus = Field(default_factory=PipelineHistoryStatus)

    @property
    def ended(self) -> Mapping[str, datetime]:
        """Return the end of each run, by uid."""
        return {run.uid: run.ended_at for run in self.status.runs}

    @property
    def containers(self) -> Sequence[PastContainer | None]:
        """Requests and image of each step in `status.steps`; None = neither is known."""
        return [_container(row, self.status.images) for row in self.status.steps]

    def past_runs(self, keep_days: int | None = None) -> tuple[PastRun, ...]:
        """Return the runs that count, the oldest first, without steps that are forgotten.

        Args:
            keep_days: age in days from which runs no longer count; None = all count.
        """
        containers = self.containers
        return tuple(self._past_run(run, containers) for run in self.runs_that_count(keep_days))

    def _past_run(self, run: RecordedRun, containers: Sequence[PastContainer | None]) -> PastRun:
        pipeline, nodes = self.spec.pipeline, self.status.nodes
        forgotten = {each.step for each in self.spec.forget_steps if run.ended_at < each.before}
        ran = (
            (self.status.steps[row.step], containers[row.step], row.iterations) for row in run.steps
        )
        steps = (
            PastStep(
                StepIdentity(pipeline, step.path, each.key, step.component, step.image_digest),
                each.seconds,
                "" if each.node is None or each.node >= len(nodes) else nodes[each.node],
                each.input_bytes,
                each.arguments,
                each.peak_bytes,
                each.killed_bytes,
                container,
            )
            for step, container, iterations in ran
            if step.path not in forgotten
            for each in iterations
        )
        return PastRun(
            uid=run.uid,
            pipeline=pipeline,
            ended_at=run.ended_at,
            steps=tuple(steps),
            seconds=run.seconds,
            planned_seconds=run.planned_seconds,
            loops=dict(run.loops),
        )

    def runs_that_count(self, keep_days: int | None = None) -> tuple[RecordedRun, ...]:
        """Return the runs that are kept and not forgotten, as recorded, the oldest first.

        Somebody may have added a run twice; of a run the last one counts.

        Args:
            keep_days: age in days from which runs no longer count; None = all count.
        """
        by_uid = {run.uid: run for run in self.status.runs}
        runs: Sequence[RecordedRun] = sorted(
            by_uid.values(), key=lambda run: (run.ended_at, run.uid)
        )
        if keep_days is not None:
            runs = runs_kept(runs, keep_days)
        return tuple(run for run in runs if not self.spec.forgets_run(run.ended_at))


def _container(row: StepRow, images: Images) -> PastContainer | None:
    """Return requests and image of a step, whatever version has written its row."""
    memory = {} if row.asked_bytes is None else {"memory": int(row.asked_bytes)}
    image = "" if row.image is None or row.image >= len(images) else images[row.image]
    if not (memory or row.other_requests or image):
        return None
    requests = without_zeros(dict(row.other_requests)) | memory
    return PastContainer(requests, image, is_complete=bool(row.other_requests))


OUTVOTED = 3
"""Number of earlier runs from which on a single much later date is taken for a wrong clock."""


def runs_kept(runs: Sequence[EndedRun], keep_days: int) -> Sequence[EndedRun]:
    """Return the runs that count beside the last one of their pipeline; no clock decides that.

    Where the last one alone ended long after several others, all count until another one has: its
    clock may have been wrong, and one wrong date must not cost what is known.

    Args:
        runs: runs of one pipeline.
        keep_days: days before the end of the last run in which the others may have ended.
    """
    last_at = max((run.ended_at for run in runs), default=None)
    if last_at is None:
        return runs
    near = [run for run in runs if last_at - run.ended_at <= timedelta(days=keep_days)]
    is_alone = len(near) == 1 and len(runs) > OUTVOTED
    return runs if is_alone else near


def exported(histories: Iterable[PipelineHistory]) -> Mapping[str, Any]:
    """Return several histories as one file, as `kubectl get -o yaml` prints them."""
    items = [each.to_object() for each in histories]
    return {"apiVersion": "v1", "kind": "List", "items": items}
