"""Decides when a run's PipelinePlacement is written: plans and conditions at once, rows in turn."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from kfp_placement_controller.planning.actions import Announce, WritePlacement
from kfp_placement_controller.planning.conditions import findings, phase
from kfp_placement_controller.planning.current_plan import plan_of_placement
from kfp_placement_controller.planning.parameters import PlanningParams
from kfp_placement_controller.planning.placement_object import PlacementState, placement_of
from kfp_placement_controller.planning.run_variants import RefusedRun
from kfp_placement_controller.planning.step_states import StepStatus
from kfp_placement_controller.planning.tracked_run import TrackedRun
from kfp_placement_engine.contract.placement import ConditionType
from kfp_placement_engine.contract.placement_size import json_bytes
from kfp_placement_engine.contract.resources import PipelinePlacement
from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.keys import RunKey

_LOG = logging.getLogger(__name__)

REFUSED_REASON = "Misconfigured"
"""Of the event about a run that is not planned."""


class _Said(NamedTuple):
    """What an object says, as far as it is cheap to compare.

    Attributes:
        plan: revision, epoch, number of nodes named.
        conditions: type, status and reason of each, and the phase.
        statuses: of the steps.
    """

    plan: tuple[int, int, int]
    conditions: tuple[tuple[str, ...], ...]
    statuses: Mapping[str, StepStatus]


@dataclass
class _Page:
    """What is known of one run's object.

    Attributes:
        uid: of the run.
        state: what is left out of it, its conditions.
        said: as last written; None = not by us, or it is gone.
        saying: as it is being written.
        closed: the run's end is written, and stays: by us, or if we have said nothing, by others.
        written_at: last write.
        bytes: size of the object then.
        not_before: after a write that failed.
        problem: why it did.
        announced: the refusal has been said in an event.
    """

    uid: str
    state: PlacementState = field(default_factory=PlacementState)
    said: _Said | None = None
    saying: _Said | None = None
    closed: bool = False
    written_at: datetime | None = None
    bytes: int = 0
    not_before: datetime | None = None
    problem: str = ""
    announced: bool = False


@dataclass
class PlacementPublisher:
    """What of each run has been written.

    Attributes:
        params: how often.
    """

    params: PlanningParams
    _pages: dict[RunKey, _Page] = field(default_factory=dict)
    _found: dict[RunKey, PipelinePlacement] = field(default_factory=dict)

    def take_over(self, placements: Iterable[PipelinePlacement]) -> None:
        """Others may have written since we wrote: this is all there is now."""
        self._pages.clear()
        self._found = {
            RunKey(each.metadata.namespace or "", each.metadata.name or ""): each
            for each in placements
        }

    def found(self, run: TrackedRun) -> PipelinePlacement | None:
        """What was taken over for a run, once: to be adopted as soon as the run is known."""
        placement = self._found.pop(run.key, None)
        if placement is None or placement.spec.workflow_uid != run.observed.uid:
            return None
        return placement

    def forget(self, key: RunKey) -> None:
        """A run is gone."""
        self._pages.pop(key, None)
        self._found.pop(key, None)

    def adopt(self, run: TrackedRun, placement: PipelinePlacement) -> None:
        """Go on from what an earlier planner has written of a run; look before."""
        page = self._pages[run.key] = _Page(run.observed.uid)
        plan = plan_of_placement(placement)
        if plan.rows or placement.spec.first_makespan_seconds is not None:
            run.adopt(plan, placement.spec.first_makespan_seconds)
        status = placement.status
        if status is None:
            return
        folded: frozenset[str] = frozenset()
        reading = run.variant.reading
        if status.folded_steps and reading is not None:
            names = {step.name for step in reading.graph.steps}
            folded = frozenset(names - set(plan.rows))
        page.state = PlacementState(folded, conditions=status.conditions)
        finished = status.condition(ConditionType.FINISHED)
        page.closed = finished is not None and finished.status == "True" and run.observed.ended

    def due(
        self, run: TrackedRun, epoch: int, problem: str, now: datetime
    ) -> list[WritePlacement | Announce]:
        """What is to be written of a run now.

        Args:
            run: as of its last look.
            epoch: of the planner's Lease.
            problem: what there is to say of its planning, or "".
            now: the time.
        """
        page = self._page(run)
        if page is None or (page.closed and page.said is None and run.observed.ended):
            return []
        # A run that has failed can be tried again, as the same object.
        page.closed = False
        if page.not_before is not None and now < page.not_before:
            return []
        found: list[WritePlacement | Announce] = []
        if isinstance(run.variant, RefusedRun) and not page.announced:
            page.announced = True
            note = f"this run is not planned: {run.variant.why}"
            found.append(Announce(run.key, run.observed.owner, REFUSED_REASON, note, "Warning"))
        saying = _saying(run, page.state, epoch, problem)
        if not self._is_due(page, saying, now):
            page.closed = run.observed.ended and page.said == saying
            return found
        try:
            built = placement_of(run.variant, page.state, epoch, now, problem)
        except LimitError as error:
            run.refuse(str(error))
            built = placement_of(run.variant, page.state, epoch, now, problem)
        # Rows that do not fit, and nodes of pods, may make another plan.
        run.variant, page.state = built.variant, built.state
        page.saying = _saying(run, page.state, epoch, problem)
        plan = page.said is None or page.said.plan != page.saying.plan
        return [*found, WritePlacement(run.key, built.placement, plan, status=True)]

    def written(self, write: WritePlacement, now: datetime) -> None:
        """A write has been done."""
        page = self._pages.get(write.key)
        if page is None:
            return
        page.not_before, page.problem = None, ""
        page.said, page.written_at = page.saying, now
        page.bytes = json_bytes(write.placement.to_object())

    def failed(self, write: WritePlacement, why: str, now: datetime) -> None:
        """A write has failed; it is tried again later, and said when it is news."""
        page = self._pages.get(write.key)
        if page is None:
            return
        if why != page.problem:
            _LOG.warning("placement %s/%s is not written: %s", *write.key, why)
        page.problem = why
        page.not_before = now + timedelta(seconds=self.params.retry_seconds)

    def is_done(self, run: TrackedRun) -> bool:
        """Whether a run has ended and nothing of it is left to write, as of the last `due`."""
        if not run.observed.ended:
            return False
        page = self._pages.get(run.key)
        return page is None or page.uid != run.observed.uid or page.closed

    def lost(self, run: TrackedRun, now: datetime) -> None:
        """The object of a run is gone; soon it is written again, unless the run has ended.

        Not at once: our own writes remove objects too, and somebody may do so again and again.
        """
        page = self._pages.get(run.key)
        if page is None:
            return
        page.said, page.closed = None, run.observed.ended
        page.not_before = now + timedelta(seconds=self.params.retry_seconds)

    def _page(self, run: TrackedRun) -> _Page | None:
        page = self._pages.get(run.key)
        if page is not None and page.uid == run.observed.uid:
            return page
        if run.observed.ended:
            return None  # it was over before we knew of it
        self._pages[run.key] = page = _Page(run.observed.uid)
        return page

    def _is_due(self, page: _Page, saying: _Said, now: datetime) -> bool:
        said = page.said
        if said is None or said[:2] != saying[:2]:
            return True
        return said.statuses != saying.statuses and self._turn(page, now)

    def _turn(self, page: _Page, now: datetime) -> bool:
        if page.written_at is None:
            return True
        pause = max(self.params.status_seconds, page.bytes * self.params.status_seconds_per_byte)
        return now >= page.written_at + timedelta(seconds=pause)


def _saying(run: TrackedRun, state: PlacementState, epoch: int, problem: str) -> _Said:
    plan = run.plan
    key = (0, epoch, 0) if plan is None else (plan.revision, epoch, len(plan.nodes))
    found = findings(run.variant, problem, state.rows_problem)
    conditions = tuple((str(each.type), str(each.holds), str(each.reason)) for each in found)
    return _Said(key, (*conditions, (str(phase(run)),)), run.statuses)
