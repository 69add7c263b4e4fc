"""When Argo holds a run back: steps of it that have no pod cannot start, whatever was planned."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from kfp_placement_controller.sources.argo import ObservedWorkflow


def why_held(
    workflow: ObservedWorkflow, *, has_pods: bool, known_for: timedelta, begins_within: timedelta
) -> str:
    """Why Argo makes no pods for a run, or "".

    Args:
        workflow: as last observed.
        has_pods: Argo has made some.
        known_for: how long we have known the run.
        begins_within: Argo begins a run within this, unless something keeps it from that.
    """
    if workflow.ended:
        return ""
    if workflow.suspended:
        return "spec.suspend is set"
    if workflow.phase == "Pending":
        # By a limit of parallel runs, a lock, or a claim that cannot be made. Every run that it
        # may begin gets the phase Running at once.
        return "Argo lets it wait (phase Pending)"
    untouched = not (workflow.phase or workflow.nodes or has_pods)
    if untouched and known_for > begins_within:
        return "Argo has not begun it"
    return ""


@dataclass
class HoldWatch:
    """Follows whether one run is held back.

    Attributes:
        why: it is, as of the last look, or "".
        last_at: the last look that found it so; None = none.
    """

    why: str = ""
    last_at: datetime | None = None
    _known_since: datetime | None = None

    def look(
        self,
        workflow: ObservedWorkflow,
        now: datetime,
        *,
        has_pods: bool,
        begin_seconds: float,
    ) -> bool:
        """Look again; returns whether Argo goes on with a run that it had held back.

        Args:
            workflow: as last observed.
            now: the time. Ages count from the first look, so that nobody's clock but ours does.
            has_pods: Argo has made some.
            begin_seconds: within these Argo begins a run.
        """
        self._known_since = self._known_since or now
        before = self.why
        self.why = why_held(
            workflow,
            has_pods=has_pods,
            known_for=now - self._known_since,
            begins_within=timedelta(seconds=begin_seconds),
        )
        if self.why:
            self.last_at = now
        return bool(before) and not self.why
