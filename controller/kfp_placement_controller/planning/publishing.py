"""Publishing in slices: at each tick some PipelinePlacements are written, by the turns."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from kfp_placement_controller.planning.actions import Announce, Unplanned, WritePlacement
from kfp_placement_controller.planning.placement_publisher import PlacementPublisher
from kfp_placement_controller.planning.run_plans import RunPlans
from kfp_placement_controller.runs.turns import SLICE_STEPS, work_of
from kfp_placement_controller.warning_log import WarningLog


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
        awaited, written = self.plans.first_plans.awaited(), 0.0
        unsettled, turns = self.plans.registry.unsettled, self.plans.turns
        self.has_backlog = False
        for work in turns.order(map(work_of, unsettled.ordered())):
            run = work.on
            if run.key in awaited or run.is_unread:
                continue
            if run.left_out:
                if run.observed.ended:
                    unsettled.discard(run.key)
                continue
            if written > SLICE_STEPS:
                self.has_backlog = True
                break
            consequence = f"run {run.key.namespace}/{run.key.name} is not written"
            turn = partial(self.publisher.due, run, epoch, now, monotonic_seconds)
            actions = self._warnings.take_turn(consequence, turn) or ()
            yield from actions
            if actions:
                written += work.steps
                turns.count(work.namespace, work.steps)
            if self.publisher.is_done(run):
                self.plans.intake.ended(run)
                unsettled.discard(run.key)
