"""Details of an objective: a limit of the end of a plan, and weights."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from kfp_placement_engine.exceptions import PlanningError, QuantityError
from kfp_placement_engine.units.durations import duration_text, parse_duration, plain_decimal
from kfp_placement_engine.units.quantities import shown_value

ENDS_EARLIEST = ("completion", "makespan")
"""Objectives under which a run that is planned alone ends as early as it can."""

_MOST_PERCENT, _MOST_SECONDS, _MOST_WEIGHT = 1000.0, 8760 * 3600.0, 1_000_000


@dataclass(frozen=True)
class MakespanWithin:
    """Limit of the last end of several runs: a percentage or a time.

    Attributes:
        seconds: limit after the moment of planning.
        percent: limit beyond the shortest of the plans that the search starts from.
    """

    seconds: float | None = None
    percent: float | None = None

    def __post_init__(self) -> None:
        """Refuse a negative limit, one too large to be one, both and neither."""
        if (self.seconds is None) == (self.percent is None):
            raise PlanningError("makespanWithin: give a percentage or a time, not both")
        value, most = (
            (self.percent, _MOST_PERCENT) if self.seconds is None else (self.seconds, _MOST_SECONDS)
        )
        if value is None or not 0 <= value <= most:
            raise PlanningError(
                f"makespanWithin {self.text} is out of range; give a percentage from 0% to"
                " 1000%, or a time from 0s to a year (8760h)"
            )

    @property
    def text(self) -> str:
        """Text as it is written: `3%`, `20m`."""
        if self.percent is not None:
            return f"{plain_decimal(self.percent)}%"
        return duration_text(self.seconds or 0.0)


def parse_makespan_within(text: object) -> MakespanWithin:
    """Read `3%`, or a time such as `20m`.

    Raises:
        QuantityError: it is neither, or negative, or too large.
    """
    if isinstance(text, MakespanWithin):
        return text
    # A number alone may mean per cent or seconds.
    written = text if isinstance(text, str) else ""
    if written.strip().startswith("-"):
        raise QuantityError(
            f"{shown_value(text)} is negative; give 0% or more, or a time such as 20m"
        )
    try:
        if written.endswith("%"):
            return MakespanWithin(percent=_percent(written))
        if written[:1].isdigit() and written[-1:].isalpha():
            return MakespanWithin(seconds=parse_duration(written))
    except PlanningError as error:
        raise QuantityError(str(error)) from error
    raise QuantityError(
        f"{shown_value(text)} is not a limit of the makespan; write for example 3% or 20m"
    )


def _percent(text: str) -> float:
    digits = text.removesuffix("%")
    if not (digits.isascii() and digits.replace(".", "", 1).isdigit()):
        raise QuantityError(f"{shown_value(text)} is not a percentage; write for example 3%")
    return round(float(digits), 6)


@dataclass(frozen=True)
class ResourceWeights:
    """Weights of resources in one figure.

    In the objective `paper` (theta in Eq. (1) of the genetic-algorithm paper), and where the use of
    both is one figure.

    Attributes:
        cpu: weight of CPU.
        memory: weight of memory.
    """

    cpu: float = 1.0
    memory: float = 1.0

    def __post_init__(self) -> None:
        """Refuse weights that weigh nothing, or less."""
        for name, weight in (("cpu", self.cpu), ("memory", self.memory)):
            if not (math.isfinite(weight) and 0 <= weight <= _MOST_WEIGHT):
                raise PlanningError(
                    f"weights: {name} is {weight!r}; give a number from 0 to {_MOST_WEIGHT:,}"
                )
        if not self.cpu and not self.memory:
            raise PlanningError(
                "weights: cpu and memory are both 0; give at least one of them more than 0"
            )

    def mean_of(self, shares: Mapping[str, float]) -> float | None:
        """Return the weighted mean of the shares of CPU and memory, or None if no share is known.

        Args:
            shares: share of each resource, such as its use.
        """
        weighted = [
            (weight, shares[name])
            for name, weight in (("cpu", self.cpu), ("memory", self.memory))
            if name in shares and weight
        ]
        if not weighted:
            return None
        return sum(weight * share for weight, share in weighted) / sum(
            weight for weight, _ in weighted
        )
