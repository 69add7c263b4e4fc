"""The time of this machine, and whether somebody has set it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

LEAST_STEP_SECONDS = 1.0
"""Less is drift, as every clock has it."""


def wall_clock() -> datetime:
    """The time as this machine has it."""
    return datetime.now(UTC)


class ClockWatch:
    """Notices that the clock was set, as after a machine was suspended.

    How long ago something was is a difference of two times. If the clock is set an hour ahead
    between them, a Lease that is renewed every two seconds looks an hour old, and runs that wait
    would begin; if it is set back, nothing would be due for an hour.
    """

    def __init__(
        self, clock: Callable[[], datetime], monotonic_seconds: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin with the time as it is.

        Args:
            clock: the time.
            monotonic_seconds: a count of seconds that nobody sets.
        """
        self._clock = clock
        self._monotonic_seconds = monotonic_seconds
        self._time = clock()
        self._seconds = monotonic_seconds()

    def step(self) -> timedelta:
        """By how much the clock was set since the last call; zero = it was not."""
        now, seconds = self._clock(), self._monotonic_seconds()
        step = (now - self._time) - timedelta(seconds=seconds - self._seconds)
        self._time, self._seconds = now, seconds
        return step if abs(step.total_seconds()) >= LEAST_STEP_SECONDS else timedelta(0)
