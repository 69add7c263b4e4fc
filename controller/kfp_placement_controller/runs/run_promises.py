"""Promises of one run: the first and the last about when it ends."""

from dataclasses import dataclass, replace

from kfp_placement_engine.model.promise import Promise


@dataclass
class RunPromises:
    """Promises of a run.

    Attributes:
        first: first promise of its end; None = there was none.
        last: last promise of when the run and its steps start and end; None = there was none.
        tried_at: time of the last try to promise the end, in monotonic seconds; None = it must be
            tried as soon as possible.
        is_counted: whether an earlier planner has already counted the run in the metrics.
    """

    first: Promise | None = None
    last: Promise | None = None
    tried_at: float | None = None
    is_counted: bool = False

    def take(
        self, promise: Promise, made_seconds: float, begin_seconds: float, *, may_be_first: bool
    ) -> None:
        """Take in a new promise, unless it differs too little from the last to be written.

        Args:
            promise: promise in seconds since the submission, or since the start.
            made_seconds: time at which it was made, in seconds since the submission.
            begin_seconds: time at which the run began, in seconds since the submission.
            may_be_first: whether no step has ended yet.
        """
        if self.last is None or promise.has_moved(self.last, begin_seconds):
            self.last = promise
        is_of_end = promise.ends is not None and not promise.after_start
        if self.first is None and may_be_first and is_of_end:
            self.first = replace(promise, steps={}, made_seconds=made_seconds)
