"""Rows of PipelineHistories: steps of ended runs, in the form in which thousands of them fit."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

from kfp_placement_engine.contract.placement_size import json_bytes
from kfp_placement_engine.model.history import (
    MOST_ITERATIONS,
    LeftOut,
    LoopWidth,
    MemoryUse,
    Observation,
    Retried,
    StepIdentity,
    are_usable_arguments,
)

MAX_STEPS, MAX_NODES, MAX_ROWS = 10_000, 5_000, 20_000
MAX_PATH_CHARACTERS = 512
"""What has a longer path is left out: cut, it would count for another one, or for none."""

MAX_COURSE_ROWS = 200
"""Of loops, of tasks that were left out, and of those that were tried again, of one run."""

_MEMORY = 5
"""Where rows of runs have what they say of memory: the most that was used, and what was too little.

These came later, and are at the end. What did not end well has no run time."""

_ARGUMENTS = 7
"""Where they have numeric arguments."""

_ROUNDED_SECONDS = 2.0
"""By this much times that are read from whole seconds may be off."""

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
        self._asked = [_number(row[3]) if len(row) > 3 else None for row in read]
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


def observation(row: Sequence[object], steps: StepRows, nodes: Sequence[str]) -> Observation | None:
    """The run time that a row says; None = it says none, cannot be read, or cannot be true."""
    _, seconds, node, _, size = [*row[:5], *(None,) * 5][:5]
    identity, seconds_read, node_index = _step_of(row, steps), _number(seconds), _number(node)
    if identity is None or seconds_read is None:
        return None
    found = Observation(
        identity,
        seconds_read,
        nodes[int(node_index)] if node_index is not None and 0 <= node_index < len(nodes) else "",
        _number(size),
        _arguments(row[_ARGUMENTS] if len(row) > _ARGUMENTS else ()),
    )
    return found if found.is_usable else None


def _arguments(value: object) -> tuple[float, ...]:
    """Numeric arguments; none where they cannot be true: that spoils no time."""
    if not isinstance(value, list | tuple) or not are_usable_arguments(value):
        return ()
    return tuple(map(float, value))


def memory_use(row: Sequence[object], steps: StepRows) -> MemoryUse | None:
    """What a row says of memory; None = nothing, it cannot be read, or cannot be true."""
    identity = _step_of(row, steps) if len(row) > _MEMORY else None
    if identity is None:
        return None
    size, peak, killed = [*map(_number, row[_MEMORY - 1 : _MEMORY + 2]), None][:3]
    index = _number(row[0])
    asked = None if index is None else steps.asked_bytes(int(index))
    found = MemoryUse(identity, peak, killed, asked, size)
    return found if found.is_usable else None


def _step_of(row: Sequence[object], steps: StepRows) -> StepIdentity | None:
    index = _number(row[0]) if row else None
    if index is None:
        return None
    iteration = row[3] if len(row) > 3 else ""
    return steps.of(int(index), iteration[:ITERATION_DIGITS] if isinstance(iteration, str) else "")


def loop_widths(rows: Iterable[Sequence[object]], steps: StepRows) -> Iterator[LoopWidth]:
    """What rows say of loops; those that cannot be read, or cannot be true, are left out."""
    for row in rows:
        index, width = (_count(each) for each in [*row[:2], None, None][:2])
        loop = None if index is None else steps.of(index, "")
        if loop is not None and width is not None:
            yield LoopWidth(loop.step, width)


def left_out(rows: Iterable[Sequence[object]], steps: StepRows) -> Iterator[LeftOut]:
    """What rows say of tasks that were left out, likewise."""
    for row in rows:
        index, cached, skipped = (_count(each) for each in [*row[:3], 0, 0, 0][:3])
        step = None if index is None else steps.of(index, "")
        if step is not None and cached is not None and skipped is not None and cached + skipped:
            yield LeftOut(step.step, cached, skipped)


def retried(
    rows: Iterable[Sequence[object]], steps: StepRows, run_seconds: float | None
) -> Iterator[Retried]:
    """What rows say of tasks that were tried again, likewise.

    Args:
        rows: of one run.
        steps: which these name.
        run_seconds: what the run took, and no attempt longer; None = not known.
    """
    for row in rows:
        index, failed, seconds, ended_well = map(_number, [*row[:4], *(None,) * 4][:4])
        step = None if index is None else steps.of(int(index), "")
        if step is None or failed is None or seconds is None or ended_well is None:
            continue
        found = Retried(step.step, int(failed), seconds, int(ended_well))
        is_within = run_seconds is None or seconds <= failed * (run_seconds + _ROUNDED_SECONDS)
        if found.is_usable and is_within:
            yield found


def _count(value: object) -> int | None:
    number = _number(value)
    return None if number is None or not 0 <= number <= MOST_ITERATIONS else int(number)


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

    def add(
        self, steps: Sequence[Observation], limit_bytes: int, memory: Sequence[MemoryUse] = ()
    ) -> tuple[tuple[Any, ...], ...]:
        """The rows of one run, in the order of its steps; those without a run time come last.

        Args:
            steps: of the run.
            limit_bytes: of its rows. Of steps that do not fit the last iterations are left out: the
                first ones of wide loops tell enough.
            memory: what the steps used.
        """
        most_bytes = self.json_bytes + limit_bytes
        rows: dict[int, tuple[Any, ...]] = {}
        entries = _entries(steps, memory)
        for position in _first_iterations_first(entries)[:MAX_ROWS]:
            row = self._fitting(partial(self._row, entries[position]), most_bytes)
            if row is None:
                break
            rows[position] = row
        return tuple(row for _, row in sorted(rows.items(), key=itemgetter(0)))

    def add_loops(
        self, loops: Iterable[LoopWidth], limit_bytes: int
    ) -> tuple[tuple[float, ...], ...]:
        """The rows of one run's loops; the last ones that do not fit are left out."""
        kept = ((each.loop, each.width) for each in loops if 0 <= each.width <= MOST_ITERATIONS)
        return self._counted(kept, limit_bytes)

    def add_left_out(
        self, tasks: Iterable[LeftOut], limit_bytes: int
    ) -> tuple[tuple[float, ...], ...]:
        """The rows of one run's tasks that were left out, likewise."""
        kept = (
            (each.step, each.cached, each.skipped)
            for each in tasks
            if max(each.cached, each.skipped) <= MOST_ITERATIONS
        )
        return self._counted(kept, limit_bytes)

    def add_retried(
        self, tasks: Iterable[Retried], limit_bytes: int
    ) -> tuple[tuple[float, ...], ...]:
        """The rows of one run's tasks that were tried again, likewise."""
        kept = (
            (each.step, each.failed, rounded(each.seconds), each.steps)
            for each in tasks
            if each.is_usable
        )
        return self._counted(kept, limit_bytes)

    def _counted(
        self, entries: Iterable[tuple[str, *tuple[float, ...]]], limit_bytes: int
    ) -> tuple[tuple[float, ...], ...]:
        """Rows of paths with their numbers, with the paths within the limit."""
        most_bytes, rows = self.json_bytes + limit_bytes, list[tuple[float, ...]]()
        fitting = (entry for entry in entries if _fits(entry[0]))
        for entry in islice(fitting, MAX_COURSE_ROWS):
            row = self._fitting(partial(self._course_row, *entry), most_bytes)
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

    def _course_row(self, path: str, *counts: float) -> tuple[float, ...]:
        return (self._index(self.steps, (path, "", "")), *counts)

    def _row(self, entry: "_Entry") -> tuple[Any, ...]:
        identity, each, use = entry.identity, entry.observation, entry.memory
        step: tuple[Any, ...] = (identity.step, identity.component, identity.image)
        if use is not None and use.asked_bytes is not None:
            step = (*step, int(use.asked_bytes))
        node = each.node[:253] if each is not None else ""
        row: list[Any] = [
            self._index(self.steps, step),
            None if each is None else rounded(each.seconds),
            self._index(self.nodes, node) if node else -1,
            identity.iteration or "",
            _whole(entry.input_bytes),
        ]
        if use is not None:
            row += [_whole(use.peak_bytes), _whole(use.killed_bytes)]
        if each is not None and each.arguments:
            row += [None] * (_ARGUMENTS - len(row))
            row.append(tuple(map(shortest, each.arguments)))
        while row[-1] in ("", -1, None):
            row.pop()
        return tuple(row)

    def _index(self, known: dict[Any, int], entry: Any) -> int:
        if entry not in known:
            known[entry] = len(known)
            self.json_bytes += json_bytes(entry) + 1
        return known[entry]


class _Entry(NamedTuple):
    """What a row is made of: a run time, what is known of memory, or both, of one iteration."""

    identity: StepIdentity
    observation: Observation | None
    memory: MemoryUse | None

    @property
    def input_bytes(self) -> float | None:
        """The size of the inputs, as either says."""
        said = [each.input_bytes for each in (self.observation, self.memory) if each is not None]
        return next((each for each in said if each is not None), None)


def _entries(steps: Iterable[Observation], memory: Iterable[MemoryUse]) -> list[_Entry]:
    """Of all that can be true and fits; of equal iterations the first has what memory was used."""
    uses = {
        (each.identity.key, each.identity.iteration): each
        for each in memory
        if each.is_usable and _fits(each.identity.step)
    }
    found = [
        _Entry(each.identity, each, uses.pop((each.identity.key, each.identity.iteration), None))
        for each in steps
        if each.is_usable and _fits(each.identity.step)
    ]
    return [*found, *(_Entry(each.identity, None, each) for each in uses.values())]


def _fits(path: str) -> bool:
    return len(path) <= MAX_PATH_CHARACTERS


def _first_iterations_first(entries: Iterable[_Entry]) -> list[int]:
    """Positions, the first entry of every step before the second of any."""
    seen: Counter[tuple[str, str]] = Counter()
    ranks: list[tuple[int, int]] = []
    for position, each in enumerate(entries):
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
