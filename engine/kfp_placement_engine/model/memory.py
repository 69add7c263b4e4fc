"""What later steps should ask for, by the memory that ended ones used."""

from dataclasses import dataclass


@dataclass(frozen=True)
class MemoryForecast:
    """What a step should ask for.

    Attributes:
        ask_bytes: what to ask for; None = only that it was killed is known, and that is over.
        largest_bytes: the most it was seen to use; None = that was not measured.
        runs: in how many runs.
        killed_bytes: with how much it was killed in its last run; None = it was not.
        asked_bytes: what it asked for in its last run; None = nothing, or unknown.
    """

    ask_bytes: float | None
    largest_bytes: float | None
    runs: int
    killed_bytes: float | None = None
    asked_bytes: float | None = None
