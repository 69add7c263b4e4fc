"""Waiting for a condition, the only kind of waiting there is."""

import time
from collections.abc import Callable
from typing import TypeVar

from tests.controlplane.exceptions import WaitError

TIMEOUT_SECONDS = 60.0
"""Longest time to wait: two cores that are busy with other things make 30 s of what takes 3 s."""

_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 0.2

Answer = TypeVar("Answer")


def wait_until(
    condition: Callable[[], Answer],
    what: str,
    timeout_seconds: float = TIMEOUT_SECONDS,
    state: Callable[[], object] | None = None,
) -> Answer:
    """Ask again and again until the answer is true in the sense of `if`.

    Args:
        condition: function to ask; its first true answer is returned.
        what: name of the condition, for the error's message.
        timeout_seconds: longest time to ask.
        state: function that returns the state to show when the time is over.

    Raises:
        WaitError: the time is over.
    """
    deadline = time.monotonic() + timeout_seconds
    pause = _PAUSE_SECONDS
    while not (answer := condition()):
        if time.monotonic() > deadline:
            seen = "" if state is None else f"; last seen: {state()}"
            raise WaitError(f"waited {timeout_seconds:g} s for {what}{seen}")
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE_SECONDS, pause * 1.3)
    return answer
