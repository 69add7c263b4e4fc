"""One iteration of a step: its last values, kept in few bytes, and which runs had it."""

import math
import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import sub
from struct import Struct

VALUES_OF_ITERATION = 20

_NUMBER = Struct("d")
_UNKNOWN = _NUMBER.pack(math.nan)

_LOG_SECONDS = Struct("f")
"""Of single precision: run times are measured to a second, and this is exact to a millionth."""


@dataclass(slots=True, eq=False)
class Iteration:
    """Its last values.

    A cluster may have a million values. So numbers are kept as the bytes of an array, which take 4
    or 8 bytes each instead of 32, and sizes and arguments only if one is known. Room for all values
    is taken at once: rows that grow leave holes in memory as large as they were before.

    Attributes:
        name: what tells it apart; "" outside loops, None if it is not known.
        runs: how many runs had it.
        last_run: the last of them, as its step counts runs.
    """

    name: str | None
    runs: int = 0
    last_run: int = 0
    _count: int = 0
    _log_seconds: bytes = b""
    _input_bytes: bytes = b""
    _arguments: bytes = b""
    _nodes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self._count

    def add(
        self,
        log_seconds: float,
        node: str,
        input_bytes: float | None,
        most: int,
        arguments: tuple[float, ...] = (),
    ) -> None:
        """Keep a value, and the last ones before it.

        Args:
            log_seconds: logarithm of the run time as it was.
            node: where it was.
            input_bytes: size of the inputs; None = unknown.
            most: how many are kept with it, 1 or more.
            arguments: numeric ones, in the order of their names; () = unknown.
        """
        if not self._count:
            self._log_seconds = bytes(_LOG_SECONDS.size * most)
            self._nodes = ("",) * most
        if input_bytes is not None:
            self._input_bytes = self._input_bytes or _UNKNOWN * most
        kept = -most * _NUMBER.size
        if self._input_bytes:
            size = _UNKNOWN if input_bytes is None else _NUMBER.pack(input_bytes)
            self._input_bytes = (self._input_bytes + size)[kept:]
        if arguments or self._arguments:
            self._add_arguments(arguments, most)
        packed = self._log_seconds + _LOG_SECONDS.pack(log_seconds)
        self._log_seconds = packed[-most * _LOG_SECONDS.size :]
        # Each pod brings its own copy of the name.
        self._nodes = (*self._nodes, sys.intern(node))[-most:]
        self._count = min(self._count + 1, most)

    def _add_arguments(self, arguments: tuple[float, ...], most: int) -> None:
        """Keep arguments of a value, of whose kind there are as many rows as of run times."""
        width = len(arguments) or self._width
        if width != self._width:
            # Those of older values were others.
            self._arguments = len(self._nodes) * width * _UNKNOWN
        row = array("d", arguments).tobytes() or width * _UNKNOWN
        self._arguments = (self._arguments + row)[-most * len(row) :]

    def forget_arguments(self) -> None:
        """Those of its values are not known any more."""
        self._arguments = b""

    @property
    def _width(self) -> int:
        """How many arguments a value has."""
        rows = len(self._nodes)
        return len(self._arguments) // (rows * _NUMBER.size) if self._arguments else 0

    def log_seconds(
        self, log_factors: Mapping[str, float], last: int = VALUES_OF_ITERATION
    ) -> list[float]:
        """Logarithms of the last run times, as on a node of factor 1.

        Args:
            log_factors: logarithms of nodes' factors, by name.
            last: how many, if there are as many.
        """
        count = min(last, self._count)
        kept = array("f", self._log_seconds[-count * _LOG_SECONDS.size :])
        return list(map(sub, kept, map(log_factors.__getitem__, self._nodes[-count:])))

    @property
    def input_bytes(self) -> Sequence[float]:
        """Sizes of the inputs, NaN = unknown; empty if none is known."""
        return array("d", self._input_bytes[-self._count * _NUMBER.size :])

    @property
    def last_input_bytes(self) -> float:
        """The size of the last value's inputs; NaN = unknown."""
        return self.input_bytes[-1] if self._input_bytes else math.nan

    @property
    def arguments(self) -> Sequence[tuple[float, ...]]:
        """Numeric arguments, () = unknown; empty if none are known."""
        return self._last_arguments(self._count) if self._arguments else ()

    @property
    def last_arguments(self) -> tuple[float, ...]:
        """Those of the last value."""
        return self._last_arguments(1)[0] if self._arguments else ()

    def _last_arguments(self, count: int) -> list[tuple[float, ...]]:
        width = self._width
        row_bytes = width * _NUMBER.size
        numbers = array("d", self._arguments[-count * row_bytes :])
        rows = (tuple(numbers[each * width : (each + 1) * width]) for each in range(count))
        return [() if math.isnan(row[0]) else row for row in rows]
