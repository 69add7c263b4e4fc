"""How forecasts missed before: what makes an interval of 90% hold nine times of ten.

Split conformal prediction, online (Vovk, Gammerman, Shafer 2005; Lei and others 2018): every miss
is divided by the spread that was forecast, and the quantiles of past ones widen or narrow the next.
Misses of different levels, and of steps that were seen once, a few times and often, are kept apart:
they are not alike.

Of a step or a pipeline that is known itself they say how wide its interval is on either side, not
where it lies. After a change all steps of a run are missed to one side for some runs; the estimates
follow, and if the misses moved them as well, the change would count twice.
"""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from random import Random
from statistics import fmean, median
from typing import NamedTuple

from kfp_placement_engine.history.computed import Computed
from kfp_placement_engine.history.estimates import Estimate
from kfp_placement_engine.history.recent import Recent
from kfp_placement_engine.model.durations import MAX_DURATION_SECONDS
from kfp_placement_engine.model.forecast import (
    MOST_DEVIATIONS,
    OWN_LEVELS,
    Basis,
    Distribution,
    Forecast,
    Level,
    Shape,
)
from kfp_placement_engine.model.history import MOST_PIPELINES

MISSES_KEPT = 1000
"""Of each kind; older ones tell of other times."""

MISSES_OF_RUN = 48
"""Of each kind and pipeline: the steps of one run miss together and must not outvote other runs. It
is less than 5% of `MISSES_KEPT`: once these are many, one run moves no interval by much."""

LEAST_MISSES = 20
"""From here on there are quantiles of 5% and 95%."""

_MOST_COMPUTED = 200
"""Pipelines and kinds; what is computed of the misses of each is kept until a run has ended."""

_ONE_SIDED = 0.5
"""Spreads; where the median of misses is further off, a change is to blame."""

_LIMITS = 2
"""Steps of the limit of misses within one spread, so that few shapes have to be made."""

_BEYOND = 1.25
"""The largest miss that was seen is not the largest there can be."""

_NO_LIMIT = math.ceil(_LIMITS * MOST_DEVIATIONS)

_KNOWN_ITSELF = (*OWN_LEVELS, Level.PIPELINE)
"""Levels whose values are of the same step, or of runs of the same pipeline."""

_FEW, _MANY = 2, 5
"""From how many values on they are a few, and many."""

_HALF = (0.07, 0.21, 0.36, 0.52, 0.7, 0.9, 1.16, 1.51, 2.09)
UNKNOWN = Shape((*(-each for each in reversed(_HALF)), *_HALF))
"""Before there are misses: Student's t with four degrees of freedom."""

_AS_MANY = 5
"""Misses that what is expected counts as, as long as there are fewer than `LEAST_MISSES`."""

_LARGE = 3.0
"""Spreads; two such misses in a row to the same side are not chance."""

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

    @property
    def deviations(self) -> float:
        """By how many spreads."""
        return self.log_ratio / self.known.estimate.spread

    @property
    def is_repeated(self) -> bool:
        """Whether the run before was missed like this: one change is to blame, and counts once."""
        before = self.known.estimate.last_miss
        is_large = abs(self.deviations) > _LARGE
        return is_large and self.log_ratio * before > 0 and 2 * abs(before) > abs(self.log_ratio)


class _Misses:
    """The last misses of one kind.

    Attributes:
        deviations: in spreads, at most `MOST_DEVIATIONS`.
        log_ratios: the same as logarithms of factors, without sign.
        runs: of how many runs there were any.
    """

    __slots__ = ("deviations", "log_ratios", "runs")

    def __init__(self) -> None:
        self.deviations = array("f")
        self.log_ratios = array("f")
        self.runs = 0

    def __len__(self) -> int:
        return len(self.deviations)

    def add(self, misses: Sequence[Miss]) -> None:
        """Keep those of one more run."""
        self.runs += 1
        limited = (max(-MOST_DEVIATIONS, min(MOST_DEVIATIONS, each.deviations)) for each in misses)
        self.deviations.extend(limited)
        self.log_ratios.extend(abs(each.log_ratio) for each in misses)
        del self.deviations[:-MISSES_KEPT]
        del self.log_ratios[:-MISSES_KEPT]


class Calibration:
    """The misses of one namespace, by pipeline and of all its pipelines."""

    def __init__(self, unknown: Shape = UNKNOWN) -> None:
        """Begin with none.

        Args:
            unknown: how forecasts miss, as long as too few misses are known.
        """
        self._unknown = unknown
        self._of_all: dict[_Kind, _Misses] = {}
        self._of_pipelines: Recent[str, dict[_Kind, _Misses]] = Recent(MOST_PIPELINES)
        self._owners = Computed(self._owner_of, _MOST_COMPUTED)
        self._sorted = Computed(self._sorted_of, _MOST_COMPUTED)
        self._largest = Computed(self._largest_of, _MOST_COMPUTED)
        self._shapes = Computed(self._shape_of, _MOST_COMPUTED)
        self._first = Computed(self._first_shape_of, _MOST_COMPUTED)

    def add_misses(self, misses: Sequence[Miss]) -> None:
        """Keep by how much the forecasts of one run missed."""
        groups: dict[tuple[str, _Kind], list[Miss]] = {}
        for each in misses:
            groups.setdefault((each.pipeline, each.known.kind), []).append(each)
        for (pipeline, kind), found in groups.items():
            own: dict[_Kind, _Misses] = self._of_pipelines.used(pipeline, dict)
            if len(found) > MISSES_OF_RUN:
                # Not every second one: where a loop has two tasks, these are all of one of them.
                runs = own[kind].runs if kind in own else 0
                found = Random(runs).sample(found, MISSES_OF_RUN)
            for owned in (own, self._of_all):
                owned.setdefault(kind, _Misses()).add(found)
        for computed in (self._owners, self._sorted, self._largest, self._shapes, self._first):
            computed.clear()

    def or_of_all(self, others: "Calibration", kind: _Kind) -> "Calibration":
        """Others, if they have enough misses of a kind and this, of one pipeline, does not."""
        is_poorer = not self.has_enough(kind) and others.has_enough(kind)
        return others if is_poorer else self

    def has_enough(self, kind: _Kind) -> bool:
        """Whether there are misses of a kind enough for an interval."""
        return kind in self._of_all and len(self._of_all[kind]) >= LEAST_MISSES

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
        owner = self._owners[pipeline, known.kind]
        if owner is None:
            shape = self._first[pipeline, known.kind, self._first_limit(pipeline, known)]
        else:
            shape = self._shapes[owner, self._limit(owner, known)]
        return Distribution(math.exp(log_seconds), known.estimate.spread, shape)

    def _limit(self, owner: "_Owner", known: KnownEstimate) -> int:
        """How far misses of an iteration count, in parts of a spread.

        Little further than such forecasts, or its own values, ever lay off: a spread that is large
        since a change must not multiply misses that were many small spreads.
        """
        largest = self._largest[owner]
        most = _BEYOND * max(largest.log_ratio, known.estimate.most_miss) / known.estimate.spread
        if most >= largest.deviations or known.basis.level is not Level.ITERATION:
            return _NO_LIMIT
        return math.ceil(_LIMITS * most)

    def _owner_of(self, asked: tuple[str, _Kind]) -> "_Owner | None":
        """The nearest misses of which there are enough; None = there are none."""
        for owner in self._nearest(*asked):
            if len(self._misses(owner)) >= LEAST_MISSES:
                return owner
        return None

    def _sorted_of(self, owner: "_Owner") -> list[float]:
        return sorted(self._misses(owner).deviations)

    def _largest_of(self, owner: "_Owner") -> "_Largest":
        ordered = self._sorted[owner]
        return _Largest(max(-ordered[0], ordered[-1]), max(self._misses(owner).log_ratios))

    def _shape_of(self, limited: "tuple[_Owner, int]") -> Shape:
        owner, limit = limited
        misses = self._sorted[owner]
        if owner.kind[0] not in _KNOWN_ITSELF:
            return Shape(tuple(misses))
        half, middle = len(misses) // 2, median(misses)
        # Where nearly all lie on one side, they tell too little of the other.
        above, below = max(0.0, middle - _ONE_SIDED), max(0.0, -middle - _ONE_SIDED)
        low = _within(misses[:half], -limit / _LIMITS, 0.0, -above)
        high = _within(misses[-half:], 0.0, limit / _LIMITS, below)
        found = (*low, 0.0, *high)
        # That other pipelines are regular does not make this one so.
        return Shape(found if owner.pipeline is not None else _no_narrower(found, self._unknown))

    def _first_limit(self, pipeline: str, known: KnownEstimate) -> int:
        """How far the first shape goes at most, in parts of a spread.

        As far as forecasts, or the step's own values, ever lay off: what was missed by many spreads
        when one value was known is at most a few of the spread that several values show.
        """
        if known.basis.level not in OWN_LEVELS:
            return _NO_LIMIT
        largest = [max(found.log_ratios) for found in self._of_others(pipeline, known.kind)]
        most_miss = max([*largest, known.estimate.most_miss])
        most = _BEYOND * most_miss / known.estimate.spread
        return min(_NO_LIMIT, math.ceil(_LIMITS * most))

    def _first_shape_of(self, asked: tuple[str, _Kind, int]) -> Shape:
        """As long as there are too few misses: wider, if those known lay further off.

        Of a step alone: how far apart whole runs or other steps are, their spread says.
        """
        pipeline, kind, limit = asked
        if kind[0] not in OWN_LEVELS:
            return self._unknown
        of_others = self._of_others(pipeline, kind)
        misses = [each for found in of_others for each in found.deviations]
        expected = fmean(each**2 for each in self._unknown.misses)
        seen = math.fsum(each**2 for each in misses)
        squares = (_AS_MANY * expected + seen) / (_AS_MANY + len(misses))
        most = max(limit / _LIMITS, self._unknown.misses[-1])
        wider = max(1.0, min(math.sqrt(squares / expected), most / self._unknown.misses[-1]))
        return Shape(tuple(wider * each for each in self._unknown.misses))

    def _of_others(self, pipeline: str, kind: _Kind) -> "list[_Misses]":
        """All that is known of misses; what is known of all holds the pipeline's own, too."""
        return [
            self._misses(each) for each in self._nearest(pipeline, kind) if each != (pipeline, kind)
        ]

    def _misses(self, owner: "_Owner") -> _Misses:
        pipeline, kind = owner
        of_all = self._of_all if pipeline is None else self._of_pipelines.get(pipeline, {})
        return of_all[kind]

    def _nearest(self, pipeline: str, kind: _Kind) -> "Iterator[_Owner]":
        """The pipeline's own first, then those of all; last its own that knew less or more."""
        level, knowledge = kind
        own = self._of_pipelines.get(pipeline, {})
        if kind in own:
            yield _Owner(pipeline, kind)
        if kind in self._of_all:
            yield _Owner(None, kind)
        others = sorted({0, 1, 2} - {knowledge}, key=lambda each: (abs(each - knowledge), each))
        yield from (_Owner(pipeline, (level, each)) for each in others if (level, each) in own)


class _Owner(NamedTuple):
    """Whose misses, of a pipeline or, with None, of all, and of which kind."""

    pipeline: str | None
    kind: _Kind


class _Largest(NamedTuple):
    """The largest miss, in spreads, and as the logarithm of a factor."""

    deviations: float
    log_ratio: float


def _no_narrower(misses: Sequence[float], than: Shape) -> tuple[float, ...]:
    """Ascending misses, each at least as far from 0 as the same quantile of a shape."""
    count = len(misses)
    others = [than.at(1 - place / (count + 1)) for place in range(1, count + 1)]
    pairs = zip(misses, others, strict=True)
    return tuple(min(pair) if pair[1] < 0 else max(pair) for pair in pairs)


def _within(misses: list[float], least: float, most: float, moved: float) -> list[float]:
    """Ascending misses, moved; none of them beyond either limit."""
    begin, end = bisect_left(misses, least - moved), bisect_right(misses, most - moved)
    inside = misses[begin:end]
    if moved:
        inside = [each + moved for each in inside]
    return [least] * begin + inside + [most] * (len(misses) - max(begin, end))
