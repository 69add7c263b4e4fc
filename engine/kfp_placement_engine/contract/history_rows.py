"""Rows of PipelineHistories: steps of ended runs, in the form in which thousands of them fit."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

from kfp_placement_engine.contract.placement_size import json_bytes
from kfp_placement_engine.model.history import (
    MOST_ITERATIONS,
    MOST_SECONDS,
    LoopWidth,
    PastStep,
    StepIdentity,
    are_usable_arguments,
    is_usable_memory,
)

MAX_STEPS, MAX_NODES, MAX_ROWS = 10_000, 5_000, 20_000
MAX_PATH_CHARACTERS = 512
"""What has a longer path is left out: cut, it would count for another one, or for none."""

MAX_LOOPS = 200
"""Loops of one run."""

_NUMBERS, _SECONDS, _ITERATION, _PEAK, _KILLED, _ARGUMENTS = (0, 1, 2, 4), 1, 3, 5, 6, 7
"""Where the row of a step has what."""

DIGITS, ITERATION_DIGITS = 16, 8
"""Of digests, in hexadecimal; of iterations, of which a step has few, they are shorter."""


class StepRows:
    """The steps of an object, each made once: a history has thousands of rows."""

    def __init__(self, pipeline: str, rows: Iterable[Sequence[object]]) -> None:
        """Read them.

        Args:
            pipeline: name of the pipeline.
            rows: [path, component, image, asked bytes]; a row that cannot be read is not a step.
        """
        read = list(rows)
        self._steps = [_identity(pipeline, row) for row in read]
        self._asked = [_asked_bytes(row) for row in read]
        self._iterations: dict[tuple[int, str], StepIdentity] = {}

    def of(self, index: int, iteration: str) -> StepIdentity | None:
        """The step with this index; None = there is none, or its row cannot be read."""
        step = self._steps[index] if 0 <= index < len(self._steps) else None
        if step is None or not iteration:
            return step
        found = self._iterations.get((index, iteration))
        if found is None:
            found = self._iterations[index, iteration] = replace(step, iteration=iteration)
        return found

    def asked_bytes(self, index: int) -> float | None:
        """The memory that the step with this index asked for; None = nothing, or unknown."""
        return self._asked[index] if 0 <= index < len(self._asked) else None


def _identity(pipeline: str, row: Sequence[object]) -> StepIdentity | None:
    """The step of a row, without its iteration; None = it cannot be read."""
    texts = [*row[:3], "", ""][:3]
    if not row or not all(isinstance(each, str) for each in texts):
        return None
    path, component, image = map(str, texts)
    if not 0 < len(path) <= MAX_PATH_CHARACTERS:
        return None
    return StepIdentity(pipeline, path, "", component[:DIGITS], image[:DIGITS])


def _asked_bytes(row: Sequence[object]) -> float | None:
    return _amount(_entry(row, 3))


def past_step(row: Sequence[object], steps: StepRows, nodes: Sequence[str]) -> PastStep | None:
    """What a row says of a step; None = it cannot be read, or nothing of it can be true."""
    index, seconds, node, size = (_number(_entry(row, at)) for at in _NUMBERS)
    iteration = _entry(row, _ITERATION)
    name = iteration[:ITERATION_DIGITS] if isinstance(iteration, str) else ""
    identity = None if index is None else steps.of(int(index), name)
    if index is None or identity is None:
        return None
    found = PastStep(
        identity,
        seconds if seconds is not None and 0 <= seconds <= MOST_SECONDS else None,
        nodes[int(node)] if node is not None and 0 <= node < len(nodes) else "",
        size,
        _arguments(_entry(row, _ARGUMENTS)),
        _amount(_entry(row, _PEAK)),
        _amount(_entry(row, _KILLED)),
        steps.asked_bytes(int(index)),
    )
    return found if found.is_usable else None


def states_odd_time(row: Sequence[object], step: PastStep) -> bool:
    """Whether a row says a time of its step that cannot be true."""
    return step.seconds is None and _entry(row, _SECONDS) is not None


def _entry(row: Sequence[object], at: int) -> object:
    """An entry of a row; None = it is missing."""
    return row[at] if len(row) > at else None


def _arguments(value: object) -> tuple[float, ...]:
    """Numeric arguments; none where they cannot be true: that spoils no time."""
    if not isinstance(value, list | tuple) or not are_usable_arguments(value):
        return ()
    return tuple(map(float, value))


def loop_width(row: Sequence[object], steps: StepRows) -> LoopWidth | None:
    """What a row says of a loop; None = it cannot be read, or cannot be true."""
    index, width = (_count(_entry(row, at)) for at in (0, 1))
    loop = None if index is None else steps.of(index, "")
    return None if loop is None or width is None else LoopWidth(loop.step, width)


def _count(value: object) -> int | None:
    number = _number(value)
    return None if number is None or not 0 <= number <= MOST_ITERATIONS else int(number)


def _amount(value: object) -> float | None:
    """An amount of memory; None = there is none, or it cannot be true: that spoils no time."""
    number = _number(value)
    return number if number is not None and is_usable_memory(number) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**63:
        return None
    return float(value)


class RowsMark(NamedTuple):
    """How much there was at a moment: steps, nodes, and the size of all rows."""

    steps: int
    nodes: int
    json_bytes: int


class HistoryRows:
    """Rows of runs, with the steps and nodes that they name.

    Attributes:
        steps: rows of steps, each with its index.
        nodes: names, each with its index.
        json_bytes: of all rows so far.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.steps: dict[tuple[Any, ...], int] = {}
        self.nodes: dict[str, int] = {}
        self.json_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether there are more steps or nodes than an object may have."""
        return len(self.steps) > MAX_STEPS or len(self.nodes) > MAX_NODES

    def mark(self) -> RowsMark:
        """What there is now, to go back to."""
        return RowsMark(len(self.steps), len(self.nodes), self.json_bytes)

    def go_back(self, mark: RowsMark) -> None:
        """Leave nothing of what has come since a mark."""
        for known, length in ((self.steps, mark.steps), (self.nodes, mark.nodes)):
            while len(known) > length:
                known.popitem()
        self.json_bytes = mark.json_bytes

    def add(self, steps: Sequence[PastStep], limit_bytes: int) -> tuple[tuple[Any, ...], ...]:
        """The rows of one run, in the order of its steps.

        Args:
            steps: of the run; what cannot be true is left out.
            limit_bytes: of its rows. Of steps that do not fit the last iterations are left out: the
                first ones of wide loops tell enough.
        """
        most_bytes = self.json_bytes + limit_bytes
        rows: dict[int, tuple[Any, ...]] = {}
        kept = [each for each in steps if each.is_usable and _fits(each.identity.step)]
        for position in _first_iterations_first(kept)[:MAX_ROWS]:
            row = self._fitting(partial(self._row, kept[position]), most_bytes)
            if row is None:
                break
            rows[position] = row
        return tuple(row for _, row in sorted(rows.items(), key=itemgetter(0)))

    def add_loops(
        self, loops: Iterable[LoopWidth], limit_bytes: int
    ) -> tuple[tuple[float, ...], ...]:
        """The rows of one run's loops; the last ones that do not fit are left out.

        Args:
            loops: of the run; what cannot be true is left out.
            limit_bytes: of the rows, with the paths of the loops.
        """
        most_bytes, rows = self.json_bytes + limit_bytes, list[tuple[float, ...]]()
        kept = (each for each in loops if 0 <= each.width <= MOST_ITERATIONS and _fits(each.loop))
        for each in islice(kept, MAX_LOOPS):
            row = self._fitting(partial(self._loop_row, each), most_bytes)
            if row is None:
                break
            rows.append(row)
        return tuple(rows)

    def _fitting(
        self, make: Callable[[], tuple[Any, ...]], most_bytes: int
    ) -> tuple[Any, ...] | None:
        """A row; None = it does not fit, and nothing of it is left, its step and node included."""
        before, row = self.mark(), make()
        self.json_bytes += json_bytes(row) + 1
        if self.json_bytes <= most_bytes:
            return row
        self.go_back(before)
        return None

    def _loop_row(self, each: LoopWidth) -> tuple[float, ...]:
        return (self._index(self.steps, (each.loop, "", "")), each.width)

    def _row(self, each: PastStep) -> tuple[Any, ...]:
        identity, node = each.identity, each.node[:253]
        step: tuple[Any, ...] = (identity.step, identity.component, identity.image)
        if each.asked_bytes is not None:
            step = (*step, int(each.asked_bytes))
        row: list[Any] = [
            self._index(self.steps, step),
            None if each.seconds is None else rounded(each.seconds),
            self._index(self.nodes, node) if node else -1,
            identity.iteration or "",
            _whole(each.input_bytes),
            _whole(each.peak_bytes),
            _whole(each.killed_bytes),
            tuple(map(shortest, each.arguments)),
        ]
        while row[-1] in ("", -1, None, ()):
            row.pop()
        return tuple(row)

    def _index(self, known: dict[Any, int], entry: Any) -> int:
        if entry not in known:
            known[entry] = len(known)
            self.json_bytes += json_bytes(entry) + 1
        return known[entry]


def _fits(path: str) -> bool:
    return len(path) <= MAX_PATH_CHARACTERS


def _first_iterations_first(steps: Iterable[PastStep]) -> list[int]:
    """Positions, the first iteration of every step before the second of any."""
    seen: Counter[tuple[str, str]] = Counter()
    ranks: list[tuple[int, int]] = []
    for position, each in enumerate(steps):
        ranks.append((seen[each.identity.key], position))
        seen[each.identity.key] += 1
    return [position for _, position in sorted(ranks)]


def _whole(amount: float | None) -> int | None:
    return None if amount is None else int(amount)


def rounded(seconds: float) -> float:
    """To a tenth of a second, in the shortest form."""
    return shortest(round(float(seconds), 1))


def shortest(number: float) -> float:
    """The same number without a point where it is a whole one."""
    return int(number) if number.is_integer() else number
