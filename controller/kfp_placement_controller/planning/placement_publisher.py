"""Publishing of PipelinePlacements: plans and conditions at once, the state of steps later."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.planning.actions import Announce, WritePlacement
from kfp_placement_controller.planning.conditions import findings, phase
from kfp_placement_controller.planning.placement_object import PlacementState, placement_of
from kfp_placement_controller.runs.current_plan import plan_of_placement
from kfp_placement_controller.runs.planner_parameters import PlanningParams
from kfp_placement_controller.runs.run_promises import RunPromises
from kfp_placement_controller.runs.step_statuses import StepStatus
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_engine.contract.custom_resources import PipelinePlacement
from kfp_placement_engine.contract.placement import ConditionType
from kfp_placement_engine.contract.placement_size import json_bytes
from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.promise import Promise

_LOG = logging.getLogger(__name__)

_MOST_DOUBLINGS = 5
"""Number of refusals up to which the pause after one doubles, to a minute by default."""


class _PublishedPlan(NamedTuple):
    """Digest of an object's spec, cheap to compare.

    Attributes:
        revision: revision of the plan; 0 = there is none.
        epoch: epoch of the planner's Lease.
        nodes: number of node names in the spec.
        first: first promise; None = nothing was promised yet, or a retry has withdrawn it.
    """

    revision: int
    epoch: int
    nodes: int
    first: Promise | None


class _PublishedState(NamedTuple):
    """Digest of a whole object, cheap to compare.

    Attributes:
        plan: digest of the spec.
        conditions: type, status and reason of each condition, and the phase.
        statuses: statuses of the steps.
        promise: promise of the ends of the run and its steps; None = there is none.
    """

    plan: _PublishedPlan
    conditions: tuple[tuple[str, ...], ...]
    statuses: Mapping[str, StepStatus]
    promise: Promise | None


@dataclass
class _Publication:
    """Progress of writing the object of one run.

    Attributes:
        uid: uid of the run.
        state: state of the object: what is left out of it, its conditions.
        published: digest of the last write; None = this planner has not written the object, or it
            is gone.
        publishing: digest of the write under way; None = there was none yet.
        closed: whether the run has ended and its object needs no further write.
        written_at: time of the last write; None = there was none.
        bytes: size of the object at the last write.
        paused_at: start of the pause after a failed write; None = there is no pause.
        refusals: number of writes that the API server has refused since the last one that it took.
        problem: reason why the last write failed; "" = it did not fail.
        announced: whether an event about the refusal has been decided.
    """

    uid: str
    state: PlacementState = field(default_factory=PlacementState)
    published: _PublishedState | None = None
    publishing: _PublishedState | None = None
    closed: bool = False
    written_at: float | None = None
    bytes: int = 0
    paused_at: float | None = None
    refusals: int = 0
    problem: str = ""
    announced: bool = False


@dataclass
class PlacementPublisher:
    """Publisher of PipelinePlacements, which remembers what it has written of each run.

    Attributes:
        params: times, such as the pause between two writes of a status.
    """

    params: PlanningParams
    _publications: dict[RunKey, _Publication] = field(default_factory=dict)
    _taken_over: dict[RunKey, PipelinePlacement] = field(default_factory=dict)

    def take_over(self, placements: Iterable[PipelinePlacement]) -> None:
        """Replace what is remembered by the stored objects, when this planner begins to lead."""
        self._publications.clear()
        self._taken_over = {
            RunKey(placement.metadata.namespace or "", placement.metadata.name or ""): placement
            for placement in placements
        }

    def taken_over(self, run: TrackedRun) -> PipelinePlacement | None:
        """Return the object that an earlier planner wrote for a run, once; None = there is none."""
        placement = self._taken_over.pop(run.key, None)
        if placement is None or placement.spec.workflow_uid != run.observed.uid:
            return None
        return placement

    def forget(self, key: RunKey) -> None:
        """Forget a run that is gone."""
        self._publications.pop(key, None)
        self._taken_over.pop(key, None)

    def adopt(self, run: TrackedRun, placement: PipelinePlacement) -> None:
        """Continue from an earlier planner's object of a run, which must be evaluated first."""
        publication = self._publications[run.key] = _Publication(run.observed.uid)
        plan = plan_of_placement(placement)
        if plan.rows or placement.spec.first_makespan_seconds is not None:
            run.adopt(plan, placement.spec.first_makespan_seconds)
            run.promises = RunPromises(placement.first_promise, placement.promise)
        status = placement.status
        if status is None:
            return
        # Loops may have become wider since: only ended steps can have been left out.
        ended = {name for name, step in run.statuses.items() if step.ended}
        folded = frozenset(ended - plan.rows.keys()) if status.folded_steps else frozenset()
        publication.state = PlacementState(
            revision=plan.revision if plan.rows else 0,
            steps=tuple(plan.rows),
            folded=folded,
            conditions=status.conditions,
        )
        finished = status.condition(ConditionType.FINISHED)
        publication.closed = (
            finished is not None and finished.status == "True" and run.observed.ended
        )
        run.promises.is_counted = publication.closed

    def is_due(self, run: TrackedRun, epoch: int, monotonic_seconds: float) -> bool:
        """Return whether something must be written or said about a run now.

        Args:
            run: run as of its last evaluation.
            epoch: epoch of the planner's Lease.
            monotonic_seconds: the time on the monotonic clock.
        """
        publication = self._publications.get(run.key)
        if publication is None or publication.uid != run.observed.uid:
            if run.observed.ended:
                return False  # the run had ended before this planner saw it
            publication = self._publications[run.key] = _Publication(run.observed.uid)
        if publication.closed and publication.published is None and run.observed.ended:
            return False
        # Somebody can retry a failed run: its object stays the same.
        publication.closed = False
        pause_seconds = self.params.retry_seconds * 2 ** min(publication.refusals, _MOST_DOUBLINGS)
        if lasts(pause_seconds, publication.paused_at, monotonic_seconds):
            return False
        publishing = _state_of(run, publication.state, epoch)
        if self._must_write(publication, publishing, monotonic_seconds):
            return True
        publication.closed = run.observed.ended and publication.published == publishing
        return bool(run.refusal) and not publication.announced

    def due(
        self, run: TrackedRun, epoch: int, now: datetime, monotonic_seconds: float
    ) -> list[WritePlacement | Announce]:
        """Return what to write about a run; set its plan to what fits the object, or refuse it.

        Args:
            run: run for which `is_due`.
            epoch: epoch of the planner's Lease.
            now: the time.
            monotonic_seconds: the time on the monotonic clock.
        """
        publication = self._publications[run.key]
        actions: list[WritePlacement | Announce] = []
        if run.refusal and not publication.announced:
            publication.announced = True
            actions.append(Announce(run.key, run.observed.owner, run.refusal))
        publishing = _state_of(run, publication.state, epoch)
        if not self._must_write(publication, publishing, monotonic_seconds):
            return actions
        try:
            built = placement_of(run, publication.state, epoch, now)
        except LimitError as error:
            run.refuse(str(error))
            built = placement_of(run, publication.state, epoch, now)
        # The plan may change: rows that do not fit are left out, and pods may be on other nodes.
        run.plan = built.plan
        publication.state = built.state
        publication.publishing = _state_of(run, publication.state, epoch)
        is_new_plan = (
            publication.published is None
            or publication.published.plan != publication.publishing.plan
        )
        return [*actions, WritePlacement(run.key, built.placement, is_new_plan)]

    def written(
        self, write: WritePlacement, monotonic_seconds: float, *, has_status: bool = True
    ) -> None:
        """Take in that a write has been done; without its status, that is due at once."""
        publication = self._publications.get(write.key)
        if publication is None:
            return
        publication.paused_at, publication.refusals, publication.problem = None, 0, ""
        publication.published = publication.publishing
        if publication.publishing is not None and not has_status:
            publication.published = _PublishedState(publication.publishing.plan, (), {}, None)
        publication.written_at = monotonic_seconds
        publication.bytes = json_bytes(write.placement.to_object())

    def write_failed(
        self,
        write: WritePlacement,
        why: str,
        monotonic_seconds: float,
        *,
        is_refused: bool = False,
    ) -> None:
        """Take in that a write has failed: retry it later, and log the reason if it is new.

        Args:
            write: the write.
            why: reason, for people to read.
            monotonic_seconds: the time on the monotonic clock.
            is_refused: whether the API server has refused it. The same may happen repeatedly,
                so the pauses double.
        """
        publication = self._publications.get(write.key)
        if publication is None:
            return
        if why != publication.problem:
            _LOG.warning("placement %s/%s is not written: %s", *write.key, why)
        publication.problem = why
        publication.paused_at = monotonic_seconds
        publication.refusals += is_refused

    def is_done(self, run: TrackedRun) -> bool:
        """Return whether a run has ended and its object needs no further write."""
        if not run.observed.ended:
            return False
        publication = self._publications.get(run.key)
        return publication is None or publication.uid != run.observed.uid or publication.closed

    def lost(self, run: TrackedRun, monotonic_seconds: float) -> None:
        """Take in that the object of a run is gone: write it again soon, unless the run has ended.

        The write waits because our own writes also remove objects, and somebody may remove this one
        repeatedly.
        """
        publication = self._publications.get(run.key)
        if publication is None:
            return
        publication.published, publication.closed = None, run.observed.ended
        publication.refusals = 0
        publication.paused_at = monotonic_seconds

    def _must_write(
        self, publication: _Publication, publishing: _PublishedState, monotonic_seconds: float
    ) -> bool:
        published = publication.published
        if published == publishing:
            return False
        if published is None or published[:2] != publishing[:2]:
            return True
        pause = max(
            self.params.status_seconds, publication.bytes * self.params.status_seconds_per_byte
        )
        return not lasts(pause, publication.written_at, monotonic_seconds)


def _state_of(run: TrackedRun, state: PlacementState, epoch: int) -> _PublishedState:
    revision, nodes = (0, 0) if run.plan is None else (run.plan.revision, len(run.plan.nodes))
    plan = _PublishedPlan(revision, epoch, nodes, run.promises.first)
    all_findings = findings(run, run.plan, state.rows_problem)
    conditions = tuple(
        (finding.condition, str(finding.holds), finding.reason) for finding in all_findings
    )
    return _PublishedState(plan, (*conditions, (str(phase(run)),)), run.statuses, run.promises.last)
