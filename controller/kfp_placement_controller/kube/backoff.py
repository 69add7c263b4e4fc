"""How long to wait before the next try."""

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class BackoffParams:
    """Delays that double.

    Attributes:
        first_seconds: after the first failure.
        longest_seconds: at most; the API server restarts in seconds, and we want to be back soon.
        jitter: part of a delay that is left to chance, so that not all come at once.
    """

    first_seconds: float = 0.2
    longest_seconds: float = 10.0
    jitter: float = 0.5


class Backoff:
    """Counts failures in a row."""

    def __init__(self, rng: random.Random, params: BackoffParams = BackoffParams()) -> None:
        """Start with none."""
        self._rng = rng
        self._params = params
        self._failures = 0

    def next_seconds(self) -> float:
        """The delay after one more failure."""
        doubled = self._params.first_seconds * 2.0 ** min(self._failures, 30)
        self._failures += 1
        longest = min(doubled, self._params.longest_seconds)
        return longest * (1 - self._params.jitter * self._rng.random())

    def reset(self) -> None:
        """It worked."""
        self._failures = 0
