"""Syntax trees of expressions, the same for all expression languages of run files."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

MAX_CHARACTERS = 20_000
"""Length of the longest expression that is read; the longest known ones have some hundred."""

MAX_DEPTH = 60
"""Deepest nesting of an expression; each level takes several frames of Python's stack."""

GAP = re.compile("\ue000([0-9]{1,6})\ue001")
"""Mark, of characters for private use, of a part that is not known before the run."""


def gap(index: int) -> str:
    """Return the mark of the part with this index."""
    return f"\ue000{index}\ue001"


class Literal(NamedTuple):
    """A value that is written out."""

    value: Any


class Variable(NamedTuple):
    """A name with its fields, joined by dots; or text that is not known before the run.

    Such text is a mark of an unknown part; in quotes, it may also have several and other text.
    """

    path: str


class Operation(NamedTuple):
    """An operator or function, and what it is applied to.

    Attributes:
        operator: operator, such as `==`, or name of a function with `()`; `&&`, `||`, `[,]` (a
            list) and `{:}` (a mapping: key, value, key, value) have any number of operands.
        operands: syntax trees.
    """

    operator: str
    operands: "tuple[Node, ...]"


Node = Literal | Variable | Operation
"""Syntax tree of an expression."""


@dataclass(frozen=True, eq=False)
class Language:
    """An expression language.

    Attributes:
        tokens: pattern with the groups `number`, `text`, `name`, `gap` and `symbol`.
        infix: strength with which an operator between two operands binds.
        prefix: strength with which an operator before its operand binds.
        right: operators that are applied from right to left.
        words: names that are operators or values.
        plain_words: whether other names are text, and quotes may differ.
    """

    tokens: re.Pattern[str]
    infix: Mapping[str, int]
    prefix: Mapping[str, int]
    right: frozenset[str] = frozenset()
    words: Mapping[str, Any] = field(default_factory=lambda: {"true": True, "false": False})
    plain_words: bool = False


def variables(node: Node) -> Iterator[str]:
    """Yield the paths of all variables of a syntax tree."""
    if isinstance(node, Variable):
        yield node.path
    elif isinstance(node, Operation):
        for operand in node.operands:
            yield from variables(operand)
