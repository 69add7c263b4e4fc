"""Values that a run file does not write out: inputs, outputs of tasks, items, text with gaps.

Readers translate their format's placeholders to `Expression`s. The expansion evaluates them in each
iteration: to a `KnownValue`, to a value that a step produces, or to an unknown one (`UNKNOWN`).
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from typing_extensions import override

from kfp_placement_engine.readers.tree.choices import EVERYTHING, Needs
from kfp_placement_engine.readers.tree.values import (
    MAX_CHARACTERS,
    UNKNOWN,
    KnownValue,
    Value,
    item_value,
    known_text,
    parsed,
    plain_value,
)

ANY_PHASE: Final = frozenset({"Succeeded", "Failed", "Error", "Skipped", "Omitted"})
"""Phases in which Argo may end a task: not run because of its condition (`Skipped`), or because of
the tasks that it waits for (`Omitted`)."""


def phase_subject(task: str) -> str:
    """Return the subject of needs that the phase of a task is; "" = the run's."""
    return f"status of {task or 'the run'}"


def succeeded_items(task: str) -> str:
    """Return the subject of needs that says whether any item of a loop has succeeded."""
    return f'AnySucceeded()("{task}")'


class Scope(NamedTuple):
    """Values of names at one place of one iteration.

    Attributes:
        inputs: values of the enclosing DAG's (or the leaf's own) inputs.
        output: function that returns the value of an output of a sibling task.
        item: current loop item.
        possible: values that the run may make, by subject, where some are ruled out.
    """

    inputs: Mapping[str, Value] = MappingProxyType({})
    output: Callable[[str, str], Value] = lambda _task, _key: UNKNOWN
    item: Value = UNKNOWN
    possible: Needs = MappingProxyType({})


class Expression(Protocol):
    """A placeholder or constant that has a value in a scope; evaluating never raises."""

    def evaluate(self, scope: Scope) -> Value:
        """Return the value in a scope."""


Expressions = dict[str, Expression]
"""Expressions by the name of an input."""


@dataclass(frozen=True)
class Constant:
    """A value that is in the file."""

    value: Any

    def evaluate(self, _scope: Scope) -> Value:
        """Return the value in a scope."""
        return KnownValue(self.value)


EMPTY: Final = Constant("")


@dataclass(frozen=True)
class Input:
    """An input parameter or artifact of the enclosing DAG (of a leaf: its own)."""

    name: str

    def evaluate(self, scope: Scope) -> Value:
        """Return the value in a scope."""
        return scope.inputs.get(self.name, UNKNOWN)


@dataclass(frozen=True)
class TaskOutput:
    """An output of another task of the same DAG."""

    task: str
    key: str

    def evaluate(self, scope: Scope) -> Value:
        """Return the value in a scope."""
        return scope.output(self.task, self.key)


@dataclass(frozen=True)
class LoopItem:
    """The current item of the loop that the task itself is."""

    def evaluate(self, scope: Scope) -> Value:
        """Return the value in a scope."""
        return scope.item


@dataclass(frozen=True)
class Runtime:
    """A value that is known only at run time.

    Attributes:
        subject: name of the value, if it is the same in the whole DAG; "" = it may differ.
    """

    subject: str = ""

    def evaluate(self, scope: Scope) -> Value:
        """Return the only value that it may have, or an unknown one."""
        values = scope.possible.get(self.subject, EVERYTHING)
        return KnownValue(values.cuts[0][1]) if values.is_single else UNKNOWN


@dataclass(frozen=True)
class Joined:
    """Text put together from parts."""

    parts: tuple[Expression, ...]

    def evaluate(self, scope: Scope) -> Value:
        """Return the value in a scope."""
        joined = ""
        for part in self.parts:
            text = known_text(part.evaluate(scope))
            if text is None or len(joined) + len(text) > MAX_CHARACTERS:
                return UNKNOWN
            joined += text
        return KnownValue(joined)


@dataclass(frozen=True)
class Selected:
    """An entry of a mapping, or of JSON text that holds one."""

    source: Expression
    key: str

    def evaluate(self, scope: Scope) -> Value:
        """Return the value in a scope."""
        entries = parsed(self.source.evaluate(scope))
        if not isinstance(entries, dict) or self.key not in entries:
            return UNKNOWN
        return item_value(entries[self.key])


@dataclass(frozen=True)
class Listed:
    """A list of which each entry is an expression of its own."""

    entries: tuple[Expression, ...]

    def evaluate(self, scope: Scope) -> Value:
        """Return the value in a scope."""
        return KnownValue([plain_value(entry.evaluate(scope)) for entry in self.entries])


@dataclass(frozen=True)
class Mapped:
    """A mapping of which each entry is an expression of its own."""

    pairs: tuple[tuple[str, Expression], ...]

    def evaluate(self, scope: Scope) -> Value:
        """Return the value in a scope."""
        return KnownValue({key: plain_value(entry.evaluate(scope)) for key, entry in self.pairs})


@dataclass(frozen=True)
class Composed(ABC):
    """A value that is computed of others.

    Attributes:
        parts: expressions that it depends on.
    """

    parts: tuple[Expression, ...]

    @abstractmethod
    def evaluate(self, scope: Scope) -> Value:
        """Return the value in a scope."""

    def is_unread(self, _scope: Scope) -> bool:
        """Return whether it is not computed, though its parts are known before the run."""
        return False


@dataclass(frozen=True)
class Kept(Composed):
    """A value that is known before the run, or else the placeholder as it is written.

    Attributes:
        written: text of the placeholder.
    """

    written: str

    @override
    def evaluate(self, scope: Scope) -> Value:
        """Return the value in a scope."""
        text = known_text(self.parts[0].evaluate(scope))
        return KnownValue(self.written if text is None else text)


def within(expression: Expression) -> Iterator[Expression]:
    """Yield an expression, and all expressions that it is made of."""
    yield expression
    parts: Iterable[Expression] = ()
    match expression:
        case Constant() | Input():  # Most are, and the others take longer to tell.
            pass
        case Joined(parts) | Listed(parts) | Composed(parts):
            pass
        case Mapped(pairs):
            parts = (entry for _, entry in pairs)
        case Selected(source, _):
            parts = (source,)
        case _:
            pass
    for part in parts:
        yield from within(part)


def input_names(expression: Expression) -> set[str]:
    """Return the names of the inputs that an expression depends on."""
    return {part.name for part in within(expression) if isinstance(part, Input)}


def text_with_gaps(
    text: str, gaps: Iterable[re.Match[str]], filled: Callable[[re.Match[str]], Expression]
) -> Expression:
    """Return text in which each match of `gaps` stands for an expression.

    Text that is a single match keeps the kind of the expression's value.
    """
    parts: list[Expression] = []
    position = 0
    for match in gaps:
        if match.start() > position:
            parts.append(Constant(text[position : match.start()]))
        parts.append(filled(match))
        position = match.end()
    if position < len(text) or not parts:
        parts.append(Constant(text[position:]))
    return parts[0] if len(parts) == 1 else Joined(tuple(parts))
