"""When a run is held back: steps of it that have no pod cannot start, whatever was planned."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from kfp_placement_controller.sources.source import RunState


@dataclass
class HoldWatch:
    """Follows whether one run is held back.

    Attributes:
        why: it is, as of the last evaluation, or "".
        last_at: the last evaluation that found it so; None = none.
    """

    why: str = ""
    last_at: datetime | None = None
    _known_since: datetime | None = None

    def evaluate(
        self,
        state: RunState,
        now: datetime,
        *,
        has_pods: bool,
        begin_seconds: float,
    ) -> bool:
        """Evaluate again; returns whether a run that had been held back goes on.

        Args:
            state: of the run, as last observed.
            now: the time. Ages count from the first evaluation, so that only our clock counts.
            has_pods: there are pods of it.
            begin_seconds: within these a run is begun, unless something keeps it from that.
        """
        self._known_since = self._known_since or now
        before = self.why
        self.why = state.held
        if not has_pods and now - self._known_since > timedelta(seconds=begin_seconds):
            self.why = state.held or state.idle
        if self.why:
            self.last_at = now
        return bool(before) and not self.why
