"""Memory that ended steps used, and what later ones should ask for."""

from dataclasses import dataclass

from kfp_placement_engine.model.history import StepIdentity, is_usable_size

MOST_MEMORY_BYTES = 2**50
"""A pebibyte; what is said to have used more is not believed."""


@dataclass(frozen=True)
class MemoryUse:
    """What one ended step tells of its memory.

    Attributes:
        identity: which step.
        peak_bytes: the most it used; None = unknown.
        killed_bytes: how much it was allowed when it was killed for using more, the largest of all
            its attempts; None = it was not killed for that.
        asked_bytes: what it asked for; None = nothing, or unknown.
        input_bytes: size of its inputs; None = unknown.
    """

    identity: StepIdentity
    peak_bytes: float | None = None
    killed_bytes: float | None = None
    asked_bytes: float | None = None
    input_bytes: float | None = None

    @property
    def is_usable(self) -> bool:
        """Whether it tells something, and its figures can be true."""
        amounts = [self.peak_bytes, self.killed_bytes, self.asked_bytes]
        known = [each for each in amounts if each is not None]
        is_size = self.input_bytes is None or is_usable_size(self.input_bytes)
        tells = self.peak_bytes is not None or self.killed_bytes is not None
        return tells and is_size and all(map(is_usable_memory, known))


@dataclass(frozen=True)
class MemoryForecast:
    """What a step should ask for.

    Attributes:
        ask_bytes: what to ask for; None = only that it was killed is known, and that is over.
        largest_bytes: the most it was seen to use; None = that was not measured.
        runs: how many runs tell of it.
        by_size: whether the size of its inputs counts.
        killed_bytes: with how much it was killed in its last run; None = it was not.
        asked_bytes: what it asked for in its last run; None = nothing, or unknown.
    """

    ask_bytes: float | None
    largest_bytes: float | None
    runs: int
    by_size: bool = False
    killed_bytes: float | None = None
    asked_bytes: float | None = None


def is_usable_memory(amount: float) -> bool:
    """Whether an amount of memory can be true: what runs uses some."""
    return 0 < amount <= MOST_MEMORY_BYTES
