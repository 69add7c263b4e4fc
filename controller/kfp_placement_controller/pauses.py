"""Pauses between two tries, measured by a clock that nobody sets.

The time of day may be set, by an hour and more after a machine was suspended. So it is only
compared with times that others state; what this process measures itself, it measures in seconds of
`time.monotonic`; code that decides is given them.
"""

from collections.abc import Mapping
from typing import TypeVar

K = TypeVar("K")


def lasts(pause_seconds: float, since: float | None, monotonic_seconds: float) -> bool:
    """Return whether a pause goes on.

    Args:
        pause_seconds: length of the pause.
        since: beginning of the pause, in monotonic seconds, or None if there was none.
        monotonic_seconds: the present moment.
    """
    return since is not None and monotonic_seconds - since < pause_seconds


def lasting(
    pause_seconds: float, since: Mapping[K, float], monotonic_seconds: float
) -> dict[K, float]:
    """Return those of several pauses that go on, each with its beginning.

    Args:
        pause_seconds: length of each pause.
        since: beginnings of the pauses, in monotonic seconds.
        monotonic_seconds: the present moment.
    """
    return {key: at for key, at in since.items() if lasts(pause_seconds, at, monotonic_seconds)}
