"""Forecasts of steps by past runs: a range of run times, and what it rests on."""

from dataclasses import dataclass
from enum import StrEnum

from kfp_placement_engine.model.promise import TimeRange


class Level(StrEnum):
    """Past steps that a forecast can rest on, the most similar first."""

    ITERATION = "iteration"
    STEP = "step"
    COMPONENT = "component"
    IMAGE = "image"
    NAMESPACE = "namespace"


@dataclass(frozen=True)
class Basis:
    """Past runs that a forecast rests on.

    Attributes:
        level: similarity of the past steps.
        runs: number of runs in which it was seen; for the wider levels those of the step that was
            seen most often.
        by_size: whether the size of the inputs counts.
        by_argument: name of the numeric argument that counts in place of it; "" = none does.
    """

    level: Level
    runs: int
    by_size: bool = False
    by_argument: str = ""

    @property
    def is_guess(self) -> bool:
        """True if it says too little to promise something: steps of one image differ tenfold."""
        return self.level in (Level.IMAGE, Level.NAMESPACE)


@dataclass(frozen=True)
class Forecast:
    """Range of a step's run time on the reference node.

    Attributes:
        times: the typical time, and a range that holds with the confidence that was asked for.
        basis: past runs that the range rests on.
    """

    times: TimeRange
    basis: Basis

    @property
    def typical_seconds(self) -> float:
        """Median: as many steps take longer as take less."""
        return self.times.typical_seconds
