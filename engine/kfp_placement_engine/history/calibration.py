"""How forecasts missed before: what makes an interval of 90% hold nine times of ten.

Split conformal prediction, online (Vovk, Gammerman, Shafer 2005; Lei and others 2018): every miss
is divided by the spread that was forecast, and the quantiles of past ones widen or narrow the next.
Misses of different levels, and of steps that were seen once, a few times and often, are kept apart:
they are not alike.
"""

from collections import deque
from collections.abc import Iterator

from kfp_placement_engine.model.history import Level, Shape

MISSES_KEPT = 1000
"""Of each kind; older ones tell of other times."""

LEAST_MISSES = 40
"""From here on quantiles of 5% and 95% are worth something."""

MOST_PIPELINES = 200

_FEW, _MANY = 2, 5
"""From how many values on they are a few, and many."""

_HALF = (0.05, 0.2, 0.4, 0.6, 0.85, 1.1, 1.5, 2.1, 3.0)
UNKNOWN = Shape((*(-each for each in reversed(_HALF)), *_HALF))
"""Before there are misses: about Student's t with four degrees of freedom."""

_Kind = tuple[Level, int]
"""A level, and how much it knew: 0 = one value, 1 = a few, 2 = `_MANY` and more."""


class Calibration:
    """The misses of one namespace, by pipeline and of all its pipelines."""

    def __init__(self) -> None:
        """Begin with none."""
        self._of_all: dict[_Kind, deque[float]] = {}
        self._of_pipelines: dict[str, dict[_Kind, deque[float]]] = {}
        self._shapes: dict[tuple[str | None, _Kind], Shape] = {}

    def note(self, pipeline: str, level: Level, values: int, miss: float) -> None:
        """Keep a miss.

        Args:
            pipeline: of the step.
            level: what the forecast rested on.
            values: how many values it was made of.
            miss: the logarithm of true over forecast time, divided by the forecast's spread.
        """
        kind = (level, _knowledge(values))
        own = self._of_pipelines.pop(pipeline, {})
        self._of_pipelines[pipeline] = own
        while len(self._of_pipelines) > MOST_PIPELINES:
            del self._of_pipelines[next(iter(self._of_pipelines))]
        for misses in (own, self._of_all):
            misses.setdefault(kind, deque(maxlen=MISSES_KEPT)).append(miss)
        self._shapes.clear()

    def shape(self, pipeline: str, level: Level, values: int) -> Shape:
        """How such forecasts miss, by the nearest misses of which there are enough."""
        kind = (level, _knowledge(values))
        for owner, other in self._nearest(pipeline, kind):
            known = self._shapes.get((owner, other))
            if known is not None:
                return known
            misses = (self._of_all if owner is None else self._of_pipelines[owner])[other]
            if len(misses) >= LEAST_MISSES:
                shape = Shape(tuple(sorted(misses)))
                self._shapes[owner, other] = shape
                return shape
        return UNKNOWN

    def _nearest(self, pipeline: str, kind: _Kind) -> Iterator[tuple[str | None, _Kind]]:
        """The pipeline's own first, then those of all; last its own that knew less or more."""
        level, knowledge = kind
        others = sorted({0, 1, 2} - {knowledge}, key=lambda each: (abs(each - knowledge), each))
        for owner, other in (
            (pipeline, kind),
            (None, kind),
            *((pipeline, (level, each)) for each in others),
        ):
            misses = self._of_all if owner is None else self._of_pipelines.get(owner, {})
            if other in misses:
                yield owner, other


def _knowledge(values: int) -> int:
    return (values >= _FEW) + (values >= _MANY)
