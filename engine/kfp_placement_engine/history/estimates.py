"""What several values tell of the next one: where it lies, and how far it may be from that.

Everything is in logarithms: a step takes twice as long about as often as half as long.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, median
from typing import NamedTuple

from kfp_placement_engine.history.arguments import ValuesByArgument
from kfp_placement_engine.history.changes import levelled, robust_deviation, spread_if_changing
from kfp_placement_engine.history.sizes import MOST_SIZES, SizedValues

RESOLUTION_SECONDS = 1 / math.sqrt(12)
"""Standard deviation of a time that is cut to a whole second, as Kubernetes writes them."""

_OUTLYING = 5.0
"""Misses count up to this many standard deviations, as their median tells these."""


@dataclass(frozen=True)
class Prior:
    """What is expected of values before any is seen.

    Attributes:
        spread: standard deviation of their logarithms.
        by_size: the same of what is left where the size of the inputs counts.
        weight: how many values that is worth.
        resolution: standard deviation of a value that comes from how it is measured.
    """

    spread: float
    by_size: float = 0.0
    weight: float = 3.0
    resolution: float = RESOLUTION_SECONDS


class Estimate(NamedTuple):
    """The next value.

    Attributes:
        log_seconds: its logarithm.
        spread: standard deviation of that.
        by_size: whether the size of the inputs counts.
        by_argument: place of the numeric argument that counts in place of it; None = none does.
        last_miss: by how much the last value lies above it.
        most_miss: by how much any of the values lies off at most.
    """

    log_seconds: float
    spread: float
    by_size: bool = False
    by_argument: int | None = None
    last_miss: float = 0.0
    most_miss: float = 0.0


def middle_mean(values: Sequence[float]) -> float:
    """The mean of the middle half (interquartile mean): nearer than the median, and as firm.

    Args:
        values: at least one; of three or more the least and the greatest never count.
    """
    count = len(values)
    outer = max(1, count // 4) if count > 2 else 0
    return fmean(sorted(values)[outer : count - outer])


class PastValues:
    """A row of past values; what it tells of the next one is found out once."""

    def __init__(
        self,
        log_seconds: Sequence[float],
        prior: Prior,
        *,
        input_bytes: Sequence[float] = (),
        arguments: Sequence[tuple[float, ...]] = (),
        recent: int | None = None,
        is_one_a_run: bool = False,
        centre_of: Callable[[Sequence[float]], float] = median,
    ) -> None:
        """Take them in the order in which they were seen.

        Args:
            log_seconds: logarithms of run times, as on a node of factor 1; at least one.
            prior: what is expected of such values.
            input_bytes: sizes of their inputs, NaN = unknown; none at all if none is known.
            arguments: their numeric arguments, () = unknown; likewise.
            recent: how many of the last values decide where the next one lies, if neither sizes
                nor arguments help; None = all.
            is_one_a_run: whether each value is of another run, so that a change of the step shows.
            centre_of: what lies in the middle of these.
        """
        self._log_seconds = log_seconds
        self._prior = prior
        self._input_bytes = input_bytes
        self._arguments = arguments
        self._recent = recent
        self._is_one_a_run = is_one_a_run
        self._centre_of = centre_of

    def __len__(self) -> int:
        return len(self._log_seconds)

    def next(self, input_bytes: float | None = None, arguments: Sequence[float] = ()) -> Estimate:
        """The next value, by the size or the argument that explains past ones best.

        Args:
            input_bytes: size of its inputs; None = unknown.
            arguments: its numeric arguments, in the order of their names.
        """
        found, place = None, None
        least = self._prior.by_size if self._is_one_a_run else None
        if input_bytes is not None and len(self._input_bytes) > 0:
            found = self._sized.next_of_now(input_bytes, least)
        if arguments and self._arguments:
            told = self._by_argument.next(arguments, least)
            if told is not None and (found is None or told.found.error < found.error):
                place, found = told
        if found is None:
            return self._without_size
        expected, farther = self._prior.by_size, found.extrapolation
        if not found.misses:
            # Nobody knows of one value how the next ones lie about it.
            expected, farther = expected + farther, 0.0
        spread = _spread(found.misses, found.log_seconds, expected, self._prior)
        # However many values were seen, none was of such a size.
        spread = math.hypot(spread, farther)
        misses = [-each for each in found.misses]
        return _estimate(found.log_seconds, spread, misses, place is None, place)

    @cached_property
    def _without_size(self) -> Estimate:
        logs, least = self._log_seconds, self._prior.spread
        if self._is_one_a_run:
            logs = levelled(logs, least)
        centre = self._centre_of(logs if self._recent is None else logs[-self._recent :])
        misses = [each - centre for each in logs]
        # The next value lies off the centre, and the centre of a few off that of many.
        apart = math.sqrt(1 + 1 / len(logs))
        spread = apart * _spread(misses, centre, least, self._prior)
        if not self._is_one_a_run:
            return Estimate(centre, spread)
        return _estimate(centre, max(spread, spread_if_changing(misses, least)), misses)

    @cached_property
    def _sized(self) -> SizedValues:
        last = zip(self._log_seconds[-MOST_SIZES:], self._input_bytes[-MOST_SIZES:], strict=True)
        known = [(log_seconds, size) for log_seconds, size in last if not math.isnan(size)]
        return SizedValues([each for each, _ in known], [each for _, each in known])

    @cached_property
    def _by_argument(self) -> ValuesByArgument:
        return ValuesByArgument(self._log_seconds[-MOST_SIZES:], self._arguments[-MOST_SIZES:])


def _estimate(
    log_seconds: float,
    spread: float,
    misses: Sequence[float],
    by_size: bool = False,
    by_argument: int | None = None,
) -> Estimate:
    last = misses[-1] if misses else 0.0
    most = max(map(abs, misses), default=0.0)
    return Estimate(log_seconds, spread, by_size, by_argument, last, most)


def _spread(misses: Sequence[float], centre: float, expected: float, prior: Prior) -> float:
    """Shrunk to what is expected; small values vary by how they are measured too.

    Outliers count as less: that there may be more of them is part of how forecasts missed.
    """
    freedom = prior.weight + max(len(misses) - 1, 0)
    most = _OUTLYING * max(expected, robust_deviation(misses))
    squares = sum([(apart if apart < most else most) ** 2 for apart in map(abs, misses)])
    variance = (prior.weight * expected**2 + squares) / freedom
    return math.sqrt(variance + (prior.resolution / math.exp(centre)) ** 2)
