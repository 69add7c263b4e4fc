"""Publishing in slices: at each tick some PipelinePlacements are written, by the turns."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TypeVar

from kfp_placement_controller.planning.actions import Announce, Unplanned, WritePlacement
from kfp_placement_controller.planning.placement_publisher import PlacementPublisher
from kfp_placement_controller.planning.run_plans import RunPlans
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_controller.runs.turns import work_of
from kfp_placement_controller.warning_log import WarningLog

T = TypeVar("T")


@dataclass
class Publishing:
    """Writes of the PipelinePlacements of all runs.

    Attributes:
        plans: plans of the runs.
        publisher: publisher of one run's PipelinePlacement.
        has_backlog: whether the last tick left something unwritten.
    """

    plans: RunPlans
    publisher: PlacementPublisher
    has_backlog: bool = False
    _warnings: WarningLog = field(default_factory=lambda: WarningLog(__name__))

    def due(
        self, epoch: int, now: datetime, monotonic_seconds: float
    ) -> Iterator[WritePlacement | Announce]:
        """Yield what must be written of runs; a defect in one hides no other."""
        for left_out in self.plans.intake.to_announce():
            key, owner = left_out.key, left_out.observed.owner
            yield Announce(key, owner, left_out.left_out, Unplanned.OVER_BUDGET)
        # An object without a plan is of no use, and would be written again at once.
        awaited = self.plans.first_plans.awaited()
        unsettled = self.plans.registry.unsettled
        to_write: list[TrackedRun] = []
        for run in unsettled.ordered():
            if run.key in awaited or run.is_unread or run.changed:
                continue
            if run.left_out:
                if run.observed.ended:
                    unsettled.discard(run.key)
                continue
            if self._turn(run, partial(self.publisher.is_due, run, epoch, monotonic_seconds)):
                to_write.append(run)
            elif self.publisher.is_done(run):
                self.plans.intake.ended(run)
                unsettled.discard(run.key)
        written = 0
        for run in self.plans.turns.take(map(work_of, to_write)):
            turn = partial(self.publisher.due, run, epoch, now, monotonic_seconds)
            yield from self._turn(run, turn) or ()
            written += 1
        self.has_backlog = written < len(to_write)

    def _turn(self, run: TrackedRun, turn: Callable[[], T]) -> T | None:
        """Return the result of work on the object of a run, or None after a defect in it."""
        consequence = f"run {run.key.namespace}/{run.key.name} is not written"
        return self._warnings.take_turn(consequence, turn)
