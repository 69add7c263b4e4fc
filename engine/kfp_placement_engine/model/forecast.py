"""What past runs tell of a step that will run: a range of run times, and what it rests on."""

from dataclasses import dataclass
from enum import StrEnum

from kfp_placement_engine.model.promise import TimeRange


class Level(StrEnum):
    """Which past steps a forecast rests on, the most similar first."""

    ITERATION = "iteration"
    STEP = "step"
    COMPONENT = "component"
    IMAGE = "image"
    NAMESPACE = "namespace"


@dataclass(frozen=True)
class Basis:
    """What a forecast rests on.

    Attributes:
        level: which past steps.
        runs: how many runs of it were seen; for the wider levels those of the step that was seen
            most often.
        by_size: whether the size of the inputs counts.
        by_argument: name of the numeric argument that counts in place of it; "" = none does.
    """

    level: Level
    runs: int
    by_size: bool = False
    by_argument: str = ""

    @property
    def is_guess(self) -> bool:
        """Whether it tells too little to promise something: steps of one image differ tenfold."""
        return self.level in (Level.IMAGE, Level.NAMESPACE)


@dataclass(frozen=True)
class Forecast:
    """How long a step takes on the reference node.

    Attributes:
        times: the typical time, and a range that holds with the confidence that was asked for.
        basis: what it rests on.
    """

    times: TimeRange
    basis: Basis

    @property
    def typical_seconds(self) -> float:
        """As many steps take longer as take less."""
        return self.times.typical_seconds
