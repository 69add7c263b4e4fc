"""Values that a run file does not write out: inputs, outputs of other tasks, items, text with gaps.

Readers translate their format's placeholders into `Expression`s; the expansion evaluates them, per
iteration, to what is `Known` before the run, what a step produces, or nothing (`UNKNOWN`).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.values import (
    UNKNOWN,
    Known,
    Value,
    item_value,
    known_text,
    parsed,
    plain_value,
)

MAX_SEQUENCE = 100_000
"""Longest number sequence that is written out; runs are limited to far fewer steps."""

_SEQUENCE = Place("sequence")

MAX_JOINED = 2**20
"""Longest text put together from parts: text that doubles at each level would fill the memory."""


def _no_output(_task: str, _key: str) -> Value:
    return UNKNOWN


@dataclass(frozen=True)
class Scope:
    """What names mean at one place of one iteration.

    Attributes:
        inputs: values of the enclosing DAG's (or the leaf's own) inputs.
        output: value of an output of a sibling task.
        item: the current loop item.
    """

    inputs: Mapping[str, Value] = field(default_factory=dict)
    output: Callable[[str, str], Value] = _no_output
    item: Value = UNKNOWN


class Expression(Protocol):
    """Something that has a value in a scope; evaluating never raises."""

    def evaluate(self, scope: Scope) -> Value:
        """The value in a scope."""


@dataclass(frozen=True)
class Constant:
    """A value that is in the file."""

    value: Any

    def evaluate(self, _scope: Scope) -> Value:
        """Its value."""
        return Known(self.value)


EMPTY: Final = Constant("")


@dataclass(frozen=True)
class Input:
    """An input parameter or artifact of the enclosing DAG (of a leaf: its own)."""

    name: str

    def evaluate(self, scope: Scope) -> Value:
        """Its value."""
        return scope.inputs.get(self.name, UNKNOWN)


@dataclass(frozen=True)
class TaskOutput:
    """An output of another task of the same DAG."""

    task: str
    key: str

    def evaluate(self, scope: Scope) -> Value:
        """Its value."""
        return scope.output(self.task, self.key)


@dataclass(frozen=True)
class LoopItem:
    """The current item of the loop that the task itself is."""

    def evaluate(self, scope: Scope) -> Value:
        """Its value."""
        return scope.item


@dataclass(frozen=True)
class Runtime:
    """Known only while the run goes on."""

    def evaluate(self, _scope: Scope) -> Value:
        """Nothing."""
        return UNKNOWN


@dataclass(frozen=True)
class Joined:
    """Text put together from parts; a single part keeps its kind."""

    parts: tuple[Expression, ...]

    def evaluate(self, scope: Scope) -> Value:
        """Its value."""
        values = [part.evaluate(scope) for part in self.parts]
        if len(values) == 1:
            return values[0]
        texts = [known_text(value) for value in values]
        known = [text for text in texts if text is not None]
        if len(known) < len(texts) or sum(map(len, known)) > MAX_JOINED:
            return UNKNOWN
        return Known("".join(known))


@dataclass(frozen=True)
class Selected:
    """An entry of a mapping, or of JSON text that holds one."""

    source: Expression
    key: str

    def evaluate(self, scope: Scope) -> Value:
        """Its value."""
        entries = parsed(self.source.evaluate(scope))
        if not isinstance(entries, dict) or self.key not in entries:
            return UNKNOWN
        return item_value(entries[self.key])


@dataclass(frozen=True)
class Listed:
    """A list of which each entry is an expression of its own."""

    entries: tuple[Expression, ...]

    def evaluate(self, scope: Scope) -> Value:
        """Its value."""
        return Known([plain_value(entry.evaluate(scope)) for entry in self.entries])


@dataclass(frozen=True)
class Mapped:
    """A mapping of which each entry is an expression of its own."""

    pairs: tuple[tuple[str, Expression], ...]

    def evaluate(self, scope: Scope) -> Value:
        """Its value."""
        return Known({key: plain_value(entry.evaluate(scope)) for key, entry in self.pairs})


@dataclass(frozen=True)
class NumberSequence:
    """Numbers as Argo's withSequence makes them: `count` of them, or all up to `end`."""

    start: Expression
    end: Expression | None
    count: Expression | None

    def evaluate(self, scope: Scope) -> Value:
        """Its value."""
        start = _number(self.start, scope)
        count = None if self.count is None else _number(self.count, scope)
        end = None if self.end is None else _number(self.end, scope)
        if start is None or (count is None and end is None):
            return UNKNOWN
        if count is not None:
            numbers = range(start, start + count)
        else:
            assert end is not None
            numbers = range(start, end + 1) if end >= start else range(start, end - 1, -1)
        return Known([str(number) for number in numbers])


def within(expression: Expression) -> Iterator[Expression]:
    """An expression, and all that it is put together from."""
    yield expression
    parts: Iterable[Expression | None] = ()
    match expression:
        case Joined(parts) | Listed(parts):
            pass
        case Mapped(pairs):
            parts = (entry for _, entry in pairs)
        case Selected(source, _):
            parts = (source,)
        case NumberSequence(start, end, count):
            parts = (start, end, count)
        case _:
            pass
    for part in parts:
        if part is not None:
            yield from within(part)


def input_names(expression: Expression) -> set[str]:
    """Names of the inputs that a value depends on."""
    return {part.name for part in within(expression) if isinstance(part, Input)}


def text_with_gaps(
    text: str, gap: re.Pattern[str], filled: Callable[[re.Match[str]], Expression]
) -> Expression:
    """Text in which each match of `gap` stands for an expression."""
    parts: list[Expression] = []
    position = 0
    for match in gap.finditer(text):
        if match.start() > position:
            parts.append(Constant(text[position : match.start()]))
        parts.append(filled(match))
        position = match.end()
    if position < len(text) or not parts:
        parts.append(Constant(text[position:]))
    return parts[0] if len(parts) == 1 else Joined(tuple(parts))


def _number(expression: Expression, scope: Scope) -> int | None:
    text = known_text(expression.evaluate(scope))
    try:
        return _SEQUENCE.count(text or "unknown", maximum=MAX_SEQUENCE)
    except InputError:
        return None
