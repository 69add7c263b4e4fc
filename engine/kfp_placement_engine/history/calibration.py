"""How forecasts missed before: what makes an interval of 90% hold nine times of ten.

Split conformal prediction, online (Vovk, Gammerman, Shafer 2005; Lei and others 2018): every miss
is divided by the spread that was forecast, and the quantiles of past ones widen or narrow the next.
Misses of different levels, and of steps that were seen once, a few times and often, are kept apart:
they are not alike.
"""

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kfp_placement_engine.history.computed import Computed
from kfp_placement_engine.history.estimates import Estimate
from kfp_placement_engine.history.recent import Recent
from kfp_placement_engine.model.durations import MAX_DURATION_SECONDS
from kfp_placement_engine.model.forecast import (
    MOST_DEVIATIONS,
    Basis,
    Distribution,
    Forecast,
    Level,
    Shape,
)

MISSES_KEPT = 1000
"""Of each kind; older ones tell of other times."""

MISSES_OF_RUN = 60
"""Of each kind and pipeline: the steps of one run miss together and must not outvote other runs."""

LEAST_MISSES = 20
"""From here on there are quantiles of 5% and 95%."""

MOST_PIPELINES = 200

_FEW, _MANY = 2, 5
"""From how many values on they are a few, and many."""

_HALF = (0.05, 0.2, 0.4, 0.6, 0.85, 1.1, 1.5, 2.1, 3.0)
UNKNOWN = Shape((*(-each for each in reversed(_HALF)), *_HALF))
"""Before there are misses: about Student's t with four degrees of freedom."""

_LONGEST = math.log(MAX_DURATION_SECONDS)

_Kind = tuple[Level, int]
"""A level, and how much it knew: 0 = one value, 1 = a few, 2 = `_MANY` and more."""


class KnownEstimate(NamedTuple):
    """What the past tells of a value, before it is compared with how such estimates did.

    Attributes:
        basis: what it rests on.
        values: how many values the estimate is made of.
        estimate: of the value.
    """

    basis: Basis
    values: int
    estimate: Estimate

    @property
    def kind(self) -> "_Kind":
        """What such estimates are compared with."""
        return (self.basis.level, (self.values >= _FEW) + (self.values >= _MANY))


class Miss(NamedTuple):
    """By how much a forecast missed.

    Attributes:
        pipeline: of the step or run.
        known: what was forecast.
        log_ratio: logarithm of the true value over the forecast.
    """

    pipeline: str
    known: KnownEstimate
    log_ratio: float


class Calibration:
    """The misses of one namespace, by pipeline and of all its pipelines."""

    def __init__(self, unknown: Shape = UNKNOWN) -> None:
        """Begin with none.

        Args:
            unknown: how forecasts miss, as long as too few misses are known.
        """
        self._unknown = unknown
        self._of_all: dict[_Kind, array[float]] = {}
        self._of_pipelines: Recent[str, dict[_Kind, array[float]]] = Recent(MOST_PIPELINES)
        self._shapes = Computed(self._shape_of, MOST_PIPELINES)
        self._chosen = Computed(self._choose, MOST_PIPELINES)

    def add_misses(self, misses: Sequence[Miss]) -> None:
        """Keep by how much the forecasts of one run missed."""
        groups: dict[tuple[str, _Kind], list[float]] = {}
        for each in misses:
            deviations = each.log_ratio / each.known.estimate.spread
            limited = max(-MOST_DEVIATIONS, min(MOST_DEVIATIONS, deviations))
            groups.setdefault((each.pipeline, each.known.kind), []).append(limited)
        for (pipeline, kind), found in groups.items():
            own: dict[_Kind, array[float]] = self._of_pipelines.used(pipeline, dict)
            every = -(-len(found) // MISSES_OF_RUN)
            for owned in (own, self._of_all):
                kept = owned.setdefault(kind, array("d"))
                kept.extend(found[::every])
                del kept[:-MISSES_KEPT]
        self._shapes.clear()
        self._chosen.clear()

    def or_of_all(self, others: "Calibration", kind: _Kind) -> "Calibration":
        """Others, if they have enough misses of a kind and this, of one pipeline, does not."""
        is_poorer = not self.has_enough(kind) and others.has_enough(kind)
        return others if is_poorer else self

    def has_enough(self, kind: _Kind) -> bool:
        """Whether there are misses of a kind enough for an interval."""
        return len(self._of_all.get(kind, ())) >= LEAST_MISSES

    def forecast(self, pipeline: str, known: KnownEstimate, log_scale: float) -> Forecast:
        """The distribution of what is known, and what it rests on; arguments as there."""
        return Forecast(self.distribution(pipeline, known, log_scale), known.basis)

    def distribution(self, pipeline: str, known: KnownEstimate, log_scale: float) -> Distribution:
        """What is known as a distribution, by how such estimates missed.

        Args:
            pipeline: of the step or run.
            known: what the past tells.
            log_scale: logarithm of what the estimate is multiplied by.
        """
        log_seconds = min(known.estimate.log_seconds + log_scale, _LONGEST)
        shape = self._chosen[pipeline, known.kind]
        return Distribution(math.exp(log_seconds), known.estimate.spread, shape)

    def _choose(self, asked: tuple[str, _Kind]) -> Shape:
        """By the nearest misses of which there are enough."""
        for owner, kind in self._nearest(*asked):
            if len(self._misses(owner)[kind]) >= LEAST_MISSES:
                return self._shapes[owner, kind]
        return self._unknown

    def _shape_of(self, misses: tuple[str | None, _Kind]) -> Shape:
        owner, kind = misses
        return Shape(tuple(sorted(self._misses(owner)[kind])))

    def _misses(self, owner: str | None) -> Mapping[_Kind, "array[float]"]:
        """Those of a pipeline; None = of all."""
        return self._of_all if owner is None else self._of_pipelines.get(owner, {})

    def _nearest(self, pipeline: str, kind: _Kind) -> Iterator[tuple[str | None, _Kind]]:
        """The pipeline's own first, then those of all; last its own that knew less or more."""
        level, knowledge = kind
        others = sorted({0, 1, 2} - {knowledge}, key=lambda each: (abs(each - knowledge), each))
        for owner, other in (
            (pipeline, kind),
            (None, kind),
            *((pipeline, (level, each)) for each in others),
        ):
            if other in self._misses(owner):
                yield owner, other
