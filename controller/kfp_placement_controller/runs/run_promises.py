"""What is promised of one run: first, and by now."""

from dataclasses import dataclass, replace
from datetime import datetime

from kfp_placement_engine.model.promise import Promise


@dataclass
class RunPromises:
    """The promises of a run.

    Attributes:
        first: what was promised first of its end; None = nothing was.
        last: when it and its steps start and end; None = nobody knows.
        made_at: when the last promise was made; None = one must be made as soon as it can be.
        is_counted: an earlier planner has seen the run end, and whether that was as promised.
    """

    first: Promise | None = None
    last: Promise | None = None
    made_at: datetime | None = None
    is_counted: bool = False

    def take(
        self, promise: Promise, made_seconds: float, begin_seconds: float, *, may_be_first: bool
    ) -> None:
        """Take what is promised by now; small changes of it are not worth a write.

        Args:
            promise: since the submission, or after the start.
            made_seconds: when it was made, since the submission.
            begin_seconds: when the run began, likewise.
            may_be_first: no step has ended yet.
        """
        if self.last is None or promise.has_moved(self.last, begin_seconds):
            self.last = promise
        is_of_end = promise.ends is not None and not promise.after_start
        if self.first is None and may_be_first and is_of_end:
            self.first = replace(promise, steps={}, made_seconds=made_seconds)
