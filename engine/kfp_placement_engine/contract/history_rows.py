"""Rows of PipelineHistories: steps of ended runs, in the form in which thousands of them fit."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from kfp_placement_engine.contract.placement_size import json_bytes
from kfp_placement_engine.contract.rows import padded
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

DIGITS, ITERATION_DIGITS = 16, 8
"""Of digests, in hexadecimal; of iterations, of which a step has few, they are shorter."""


Row = tuple[Any, ...]
ItemT = TypeVar("ItemT")


class KnownStep(NamedTuple):
    """A step, and the memory that it asked for; None = nothing, or unknown."""

    identity: StepIdentity
    asked_bytes: float | None


class StepRows:
    """The steps of an object, each made once: a history has thousands of rows."""

    def __init__(self, pipeline: str, rows: Iterable[Sequence[object]]) -> None:
        """Read them.

        Args:
            pipeline: name of the pipeline.
            rows: [path, component, image, asked bytes]; a row that cannot be read is not a step.
        """
        self._steps = [_known_step(pipeline, row) for row in rows]
        self._iterations: dict[tuple[int, str], StepIdentity] = {}

    def of(self, index: object, iteration: object = "") -> KnownStep | None:
        """The step with this index; None = there is none, or its row cannot be read.

        Args:
            index: as a row has it.
            iteration: likewise; what is not text counts as none.
        """
        at = _number(index)
        step = self._steps[int(at)] if at is not None and 0 <= at < len(self._steps) else None
        if at is None or step is None or not iteration or not isinstance(iteration, str):
            return step
        key = int(at), iteration[:ITERATION_DIGITS]
        if key not in self._iterations:
            self._iterations[key] = replace(step.identity, iteration=key[1])
        return KnownStep(self._iterations[key], step.asked_bytes)


def _known_step(pipeline: str, row: Sequence[object]) -> KnownStep | None:
    """The step of a row, without its iteration; None = it cannot be read."""
    path, *digests, asked_bytes = padded(row, 4)
    texts = [each for each in digests if isinstance(each, str | None)]
    if not isinstance(path, str) or not _fits(path) or len(texts) < len(digests):
        return None
    component, image = ((each or "")[:DIGITS] for each in texts)
    return KnownStep(StepIdentity(pipeline, path, "", component, image), _amount(asked_bytes))


def past_step(row: Sequence[object], steps: StepRows, nodes: Sequence[str]) -> PastStep | None:
    """What a row says of a step; None = it cannot be read, or nothing of it can be true."""
    index, took, node, iteration, size, peak, killed, arguments = padded(row, 8)
    step = steps.of(index, iteration)
    if step is None:
        return None
    seconds, at = _number(took), _number(node)
    found = PastStep(
        step.identity,
        seconds if seconds is not None and 0 <= seconds <= MOST_SECONDS else None,
        nodes[int(at)] if at is not None and 0 <= at < len(nodes) else "",
        _number(size),
        _arguments(arguments),
        _amount(peak),
        _amount(killed),
        step.asked_bytes,
    )
    return found if found.is_usable else None


def states_odd_time(row: Sequence[object], step: PastStep) -> bool:
    """Whether a row says a time of its step that cannot be true."""
    return step.seconds is None and padded(row, 2)[1] is not None


def _arguments(value: object) -> tuple[float, ...]:
    """Numeric arguments; none where they cannot be true: that spoils no time."""
    if not isinstance(value, list | tuple) or not are_usable_arguments(value):
        return ()
    return tuple(map(float, value))


def loop_width(row: Sequence[object], steps: StepRows) -> LoopWidth | None:
    """What a row says of a loop; None = it cannot be read, or cannot be true."""
    index, width = padded(row, 2)
    loop, count = steps.of(index), _number(width)
    if loop is None or count is None or not 0 <= count <= MOST_ITERATIONS:
        return None
    return LoopWidth(loop.identity.step, int(count))


def _amount(value: object) -> float | None:
    """An amount of memory; None = there is none, or it cannot be true: that spoils no time."""
    number = _number(value)
    return number if number is not None and is_usable_memory(number) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**63:
        return None
    return float(value)


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

    def mark(self) -> tuple[int, int, int]:
        """How much there is now, to go back to: steps, nodes, and the size of all rows."""
        return len(self.steps), len(self.nodes), self.json_bytes

    def go_back(self, mark: tuple[int, int, int]) -> None:
        """Leave nothing of what has come since a mark."""
        steps, nodes, self.json_bytes = mark
        for known, length in ((self.steps, steps), (self.nodes, nodes)):
            while len(known) > length:
                known.popitem()

    def add(self, steps: Sequence[PastStep], limit_bytes: int) -> tuple[Row, ...]:
        """The rows of one run, in the order of its steps.

        Args:
            steps: of the run; what cannot be true is left out.
            limit_bytes: of its rows. Of steps that do not fit the last iterations are left out: the
                first ones of wide loops tell enough.
        """
        kept = [each for each in steps if each.is_usable and _fits(each.identity.step)]
        positions = _first_iterations_first(kept)[:MAX_ROWS]
        rows = self._fitting(self._row, (kept[at] for at in positions), limit_bytes)
        return tuple(row for _, row in sorted(zip(positions, rows, strict=False)))

    def add_loops(self, loops: Iterable[LoopWidth], limit_bytes: int) -> tuple[Row, ...]:
        """The rows of one run's loops; the last ones that do not fit are left out.

        Args:
            loops: of the run; what cannot be true is left out.
            limit_bytes: of the rows, with the paths of the loops.
        """
        kept = (each for each in loops if 0 <= each.width <= MOST_ITERATIONS and _fits(each.loop))
        return tuple(self._fitting(self._loop_row, islice(kept, MAX_LOOPS), limit_bytes))

    def _fitting(
        self, row_of: Callable[[ItemT], Row], items: Iterable[ItemT], limit_bytes: int
    ) -> Iterator[Row]:
        """Rows up to the first that does not fit: nothing of it is left, its step included."""
        most_bytes = self.json_bytes + limit_bytes
        for each in items:
            before, row = self.mark(), row_of(each)
            self.json_bytes += json_bytes(row) + 1
            if self.json_bytes > most_bytes:
                self.go_back(before)
                return
            yield row

    def _loop_row(self, each: LoopWidth) -> Row:
        return (self._index(self.steps, (each.loop, "", "")), each.width)

    def _row(self, each: PastStep) -> Row:
        identity, node = each.identity, each.node[:253]
        step: tuple[Any, ...] = (identity.step, identity.component, identity.image)
        if each.asked_bytes is not None:
            step = (*step, int(each.asked_bytes))
        row: list[Any] = [
            self._index(self.steps, step),
            rounded(each.seconds),
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
    return 0 < len(path) <= MAX_PATH_CHARACTERS


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


def rounded(seconds: float | None) -> float | None:
    """To a tenth of a second, in the shortest form; None = not known."""
    return None if seconds is None else shortest(round(float(seconds), 1))


def shortest(number: float) -> float:
    """The same number without a point where it is a whole one."""
    return int(number) if number.is_integer() else number
