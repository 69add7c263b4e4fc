"""Rows of PipelineHistories: steps of ended runs, in the form in which thousands of them fit.

All that is written can be read again, and can be true. Where one row cannot, the whole object is
refused: somebody else has changed it.
"""

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kfp_placement_engine.contract.rows import padded
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.history import LoopWidth, PastStep, StepIdentity

MAX_STEPS, MAX_NODES, MAX_ROWS = 10_000, 5_000, 20_000
MAX_PATH_CHARACTERS = 512
"""What has a longer path is left out: cut, it would count for another one, or for none."""

MAX_LOOPS = 200
"""Loops of one run."""

DIGITS, ITERATION_DIGITS = 16, 8
"""Of digests, in hexadecimal; of iterations, of which a step has few, they are shorter."""

Row = tuple[Any, ...]
ItemT = TypeVar("ItemT")


class RowReader:
    """Reads rows of one object; what is in them is of JSON or YAML.

    Its methods give None for what cannot be true, or raise an error of Python's for what cannot be
    read: `read_rows` makes a message of both.
    """

    def __init__(self, pipeline: str, steps: Iterable[Row], nodes: Iterable[str]) -> None:
        """Read what rows name by their index.

        Args:
            pipeline: name of the pipeline.
            steps: rows [path, component, image, asked bytes].
            nodes: names.

        Raises:
            InputError: a row of a step cannot be read, or cannot be true.
        """
        self._pipeline = pipeline
        self._named = dict(enumerate(read_rows(steps, _named_step, "status.steps")))
        self._nodes: dict[int | None, str] = {**dict(enumerate(nodes)), None: "", -1: ""}

    def step(self, row: Row) -> PastStep | None:
        """A step of a run."""
        index, seconds, node, iteration, size, peak, killed, arguments = padded(row, 8)
        path, component, image, asked_bytes = self._named[index]
        found = PastStep(
            StepIdentity(self._pipeline, path, _text(iteration), component, image),
            seconds,
            self._nodes[node],
            size,
            tuple(arguments or ()),
            peak,
            killed,
            asked_bytes,
        )
        return found if found.is_usable else None

    def loop(self, row: Row) -> LoopWidth | None:
        """A loop of a run."""
        index, width = padded(row, 2)
        found = LoopWidth(self._named[index][0], operator.index(width))
        return found if found.is_usable else None


def read_rows(
    rows: Iterable[Row], read: Callable[[Row], ItemT | None], where: str
) -> tuple[ItemT, ...]:
    """Read rows of an object.

    Args:
        rows: of one kind.
        read: reads one of them.
        where: what they are called in messages.

    Raises:
        InputError: one cannot be read, or cannot be true.
    """
    found = []
    for row in rows:
        try:
            item = read(row)
        except (TypeError, ValueError, LookupError):
            item = None
        if item is None:
            raise InputError(f"{where}: row {_shown(row)} cannot be read, or cannot be true")
        found.append(item)
    return tuple(found)


def _shown(row: Row) -> str:
    """The beginning of a row, whatever somebody has written into it."""
    try:
        return f"{[*row]!r:.120}"
    except (ValueError, RecursionError):
        return "with a number that is too long, or with too many lists in each other"


def _named_step(row: Row) -> Row | None:
    path, component, image, asked_bytes = padded(row, 4)
    found = _text(path), _text(component), _text(image), asked_bytes
    return found if _fits(found[0]) else None


def _text(value: object) -> str:
    """The same text; "" where it is missing."""
    if not isinstance(value, str | None):
        raise TypeError
    return value or ""


@dataclass(frozen=True)
class RowWriter:
    """Writes rows of runs.

    Attributes:
        steps: rows of the steps that they name, each with its index.
        nodes: names, each with its index.
    """

    steps: dict[Row, int] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)

    def of_steps(self, steps: Sequence[PastStep], most: int) -> tuple[Row, ...]:
        """Rows of a run's steps, in their order; of wide loops the last iterations are left out."""
        kept = (each for each in _first_iterations(steps, most) if _fits(each.identity.step))
        return tuple(self._step(each) for each in kept if each.is_usable)

    def of_loops(self, loops: Sequence[LoopWidth], most: int) -> tuple[Row, ...]:
        """Rows of a run's first loops."""
        kept = (each for each in loops[:most] if _fits(each.loop) and each.is_usable)
        return tuple((self._index((each.loop,)), each.width) for each in kept)

    def _step(self, each: PastStep) -> Row:
        identity, node = each.identity, each.node[:253]
        asked = _whole(each.asked_bytes)
        entry = _trimmed(identity.step, identity.component, identity.image, asked)
        return _trimmed(
            self._index(entry),
            rounded(each.seconds),
            self.nodes.setdefault(node, len(self.nodes)) if node else -1,
            identity.iteration or "",
            _whole(each.input_bytes),
            _whole(each.peak_bytes),
            _whole(each.killed_bytes),
            tuple(map(_shortest, each.arguments)),
        )

    def _index(self, entry: Row) -> int:
        return self.steps.setdefault(entry, len(self.steps))


def _fits(path: str) -> bool:
    return 0 < len(path) <= MAX_PATH_CHARACTERS


def _first_iterations(steps: Sequence[PastStep], most: int) -> Sequence[PastStep]:
    """As many steps: the first iteration of each comes before the second of any."""
    if len(steps) <= most:
        return steps
    seen: Counter[tuple[str, str]] = Counter()
    ranked: list[tuple[int, int]] = []
    for position, each in enumerate(steps):
        ranked.append((seen[each.identity.key], position))
        seen[each.identity.key] += 1
    return [steps[position] for position in sorted(at for _, at in sorted(ranked)[:most])]


def _trimmed(*entries: object) -> Row:
    """A row without what says nothing at its end."""
    length = len(entries)
    while entries[length - 1] in ("", -1, None, ()):
        length -= 1
    return entries[:length]


def _whole(amount: float | None) -> int | None:
    return None if amount is None else int(amount)


def rounded(seconds: float | None) -> float | None:
    """To a tenth of a second, in the shortest form; None = not known."""
    return None if seconds is None else _shortest(round(seconds, 1))


def _shortest(number: float) -> float:
    """The same number without a point where it is a whole one."""
    return number if number % 1 else int(number)
