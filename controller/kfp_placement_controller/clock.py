"""The time as the processes that decide see it: it never jumps."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

MOST_DRIFT = 0.5
"""How much faster or slower than time itself the clock goes while it follows one that was set."""


def wall_clock() -> datetime:
    """The time as this machine has it."""
    return datetime.now(UTC)


class SteadyClock:
    """The time of this machine, which it follows slowly when that is set.

    Ages and pauses are differences of times. If the machine's clock is set an hour ahead, as after
    it was suspended, a Lease that is renewed every two seconds must not look an hour old: runs that
    wait would begin. If it is set back, nothing must stand still until that hour has passed.
    """

    def __init__(
        self,
        wall: Callable[[], datetime] = wall_clock,
        monotonic_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """It begins with the time as it is.

        Args:
            wall: the time as the machine has it.
            monotonic_seconds: a count of seconds that nobody sets.
        """
        self._wall = wall
        self._monotonic_seconds = monotonic_seconds
        self._lock = threading.Lock()
        self._now = wall()
        self._read_at = monotonic_seconds()

    def __call__(self) -> datetime:
        """The time."""
        with self._lock:
            read_at = self._monotonic_seconds()
            passed = timedelta(seconds=read_at - self._read_at)
            self._read_at = read_at
            self._now += passed
            drift = passed * MOST_DRIFT
            self._now += max(-drift, min(drift, self._wall() - self._now))
            return self._now
