"""Which numeric argument of a step run times follow, if any: rows, epochs.

The same ways are compared as for the size of inputs (`sizes`). But steps have several arguments,
and among a few past values any series of numbers, such as seeds, explains some by chance. So an
argument must help much more than a size before it counts.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from kfp_placement_engine.history.sizes import BySize, SizedValues

_LEAST_VALUES = 4
"""With fewer of them nothing is said of arguments."""

_HELPS = 0.6
"""What an argument must bring the mean error down to. Of four seeds one does so by chance for about
15% of steps that were seen five to eight times; with the limit of sizes, 0.95, for 60%."""

_NEXT_TO_NOTHING = 0.1
"""Zero, of which there is no logarithm, counts as this part of the least value above it."""


_FARTHEST = 10.0
"""More than this many times the largest value that was seen counts as this: nobody knows how far a
line goes on, and a wrong number must not promise years."""


class ByArgument(NamedTuple):
    """What an argument tells of the next value.

    Attributes:
        place: of the argument, in the order of their names.
        found: the same as of a size.
    """

    place: int
    found: BySize


class ValuesByArgument:
    """Past run times with numeric arguments."""

    def __init__(
        self, log_seconds: Sequence[float], arguments: Sequence[tuple[float, ...]]
    ) -> None:
        """Take them in the order in which they were seen.

        Args:
            log_seconds: logarithms of the run times.
            arguments: of each, in the order of their names; () = unknown. Values that do not have
                as many as the last known one do not count.
        """
        self._count = next((len(each) for each in reversed(arguments) if each), 0)
        pairs = zip(log_seconds, arguments, strict=True)
        known = [(seconds, row) for seconds, row in pairs if len(row) == self._count]
        seconds = [each for each, _ in known]
        columns = zip(*(row for _, row in known), strict=True)
        self._columns = [_explaining(seconds, column) for column in columns]

    def next(self, arguments: Sequence[float], least: float | None) -> ByArgument | None:
        """The next value, by the argument that explains past ones best; None = none does.

        Args:
            arguments: of the next one.
            least: standard deviation at least of what is left; None = the values are not one a run.
        """
        if len(arguments) != self._count:
            return None
        told: list[ByArgument] = []
        for place, (values, wanted) in enumerate(zip(self._columns, arguments, strict=True)):
            found = None if values is None else _next(values, wanted, least)
            if found is not None:
                told.append(ByArgument(place, found))
        return min(told, key=lambda each: each.found.error, default=None)


def _next(values: SizedValues, wanted: float, least: float | None) -> BySize | None:
    """The next value by one argument; None = it does not help."""
    if wanted < 0:
        return None
    found = values.next_of_now(min(wanted, _FARTHEST * max(values.sizes)), least)
    helps = found is not None and found.error < _HELPS * values.error_of_median
    return found if helps else None


def _explaining(log_seconds: Sequence[float], values: Sequence[float]) -> SizedValues | None:
    """The values of an argument; None if they explain nothing.

    One that is negative anywhere is not an amount: -1 may mean all.
    """
    if len(values) < _LEAST_VALUES or min(values) < 0:
        return None
    least = min((each for each in values if each > 0), default=1.0)
    # Above the smallest numbers there are, of which a tenth is 0.
    limit = max(_NEXT_TO_NOTHING * least, 1e-300)
    sized = SizedValues(log_seconds, values, partial(_log_from, limit))
    return None if sized.are_all_alike else sized


def _log_from(limit: float, value: float) -> float:
    return math.log(max(value, limit))
