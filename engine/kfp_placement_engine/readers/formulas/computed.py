"""Argo's `{{=...}}`: text that is computed of parameters, items and outputs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from kfp_placement_engine.readers.formulas.evaluation import Lookup, value_of
from kfp_placement_engine.readers.formulas.functions import json_text
from kfp_placement_engine.readers.formulas.languages import EXPR
from kfp_placement_engine.readers.formulas.parser import parsed
from kfp_placement_engine.readers.formulas.syntax import Node, variables
from kfp_placement_engine.readers.tree.expressions import Composed, Expression, Scope
from kfp_placement_engine.readers.tree.values import UNKNOWN, KnownValue, Value, known_text

_MAX_CHARACTERS = 4096
"""Length of the longest formula, which may be computed once for each step of a run."""


@dataclass(frozen=True)
class Computed(Composed):
    """A value that an expression in expr-lang makes of others, which are text there.

    Attributes:
        node: syntax tree of the expression; None = it cannot be read.
        paths: names of `parts` in the expression.
    """

    node: Node | None
    paths: tuple[str, ...]

    @override
    def evaluate(self, scope: Scope) -> Value:
        """Return the value in a scope, as the text that Argo puts in place of the expression."""
        value = UNKNOWN if self.node is None else value_of(self.node, self.lookup(scope), EXPR)
        if value is UNKNOWN or value is None:
            return UNKNOWN
        return KnownValue(value if isinstance(value, str) else json_text(value))

    @override
    def is_unread(self, scope: Scope) -> bool:
        """Return whether it is not computed, though its parts are known before the run."""
        parts = (known_text(part.evaluate(scope)) for part in self.parts)
        return None not in parts and self.evaluate(scope) is UNKNOWN

    def source(self, path: str) -> Expression:
        """Return the expression for a name in this one."""
        return self.parts[self.paths.index(path)]

    def lookup(self, scope: Scope) -> Lookup:
        """Return the function that looks up the value of a name in a scope."""

        def lookup(path: str) -> Any:
            text = known_text(self.source(path).evaluate(scope))
            return UNKNOWN if text is None else text

        return lookup


def read_computed(text: str, source: Callable[[str], Expression]) -> Expression:
    """Read the text between `{{=` and `}}`.

    Args:
        text: the expression.
        source: function that returns the expression for a name such as `inputs.parameters.x`.
    """
    node = parsed(text, EXPR) if len(text) <= _MAX_CHARACTERS else None
    if node is None:
        return Computed((), None, ())
    paths = tuple(dict.fromkeys(variables(node)))
    return Computed(tuple(source(path) for path in paths), node, paths)
