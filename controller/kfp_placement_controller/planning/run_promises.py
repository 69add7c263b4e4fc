"""What is promised of one run's end: first, by now, and since its start while it waits for that."""

from dataclasses import dataclass

from kfp_placement_engine.model.promise import Promise, TimeRange


@dataclass(frozen=True)
class FirstPromise:
    """What was promised first of a run's end; all times are seconds since its submission.

    Attributes:
        ends: when it ends.
        planned_seconds: when it was to end by its plan.
        made_seconds: when that was.
        confidence: of the range.
    """

    ends: TimeRange
    planned_seconds: float
    made_seconds: float
    confidence: float


@dataclass
class RunPromises:
    """The promises of a run.

    Attributes:
        first: the first that was made, and what it was made on.
        last: when it and its steps start and end, since its submission; None = nobody knows.
        after_start: the same since its start, for a run that is held back and has not begun; None =
            nobody knows.
        is_counted: an earlier planner has seen the run end, and whether that was as promised.
    """

    first: FirstPromise | None = None
    last: Promise | None = None
    after_start: Promise | None = None
    is_counted: bool = False

    @property
    def is_unknown(self) -> bool:
        """Whether nobody knows when the run ends."""
        return self.last is None or self.last.ends is None

    def begin_again(self) -> None:
        """What was promised first was of another try, or of a time when the run was held back."""
        self.first, self.is_counted = None, False

    def take(
        self, promise: Promise, made_seconds: float, held_seconds: float, *, may_be_first: bool
    ) -> None:
        """Take what is promised by now; small changes of it are not worth a write.

        Args:
            promise: since the submission.
            made_seconds: when it was made, since then; less than 0 by a clock that is behind.
            held_seconds: how long after the submission the run was held back last.
            may_be_first: no step has ended yet.
        """
        if self.last is None or promise.differs_from(self.last, held_seconds):
            self.last = promise
        if promise.ends is None or promise.planned_seconds is None:
            return
        if self.first is None and may_be_first:
            self.first = FirstPromise(
                promise.ends, promise.planned_seconds, max(0.0, made_seconds), promise.confidence
            )

    def take_after_start(self, promise: Promise) -> None:
        """Take what is promised of the run from its start on, while it has not begun."""
        if self.after_start is None or promise.differs_from(self.after_start):
            self.after_start = promise
