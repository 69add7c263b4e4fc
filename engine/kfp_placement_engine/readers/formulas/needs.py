"""Values that expressions need of what the run decides.

Two expressions that need different values of the same thing exclude each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kfp_placement_engine.readers.formulas.evaluation import Lookup, value_of
from kfp_placement_engine.readers.formulas.functions import json_text
from kfp_placement_engine.readers.formulas.syntax import Language, Node, Operation, Variable
from kfp_placement_engine.readers.tree.choices import NOTHING, Needs, ValueSet, all_of, any_of
from kfp_placement_engine.readers.tree.decisions import phase_subject
from kfp_placement_engine.readers.tree.expressions import (
    Expression,
    Input,
    Runtime,
    TaskOutput,
    TaskPhase,
)
from kfp_placement_engine.readers.tree.values import UNKNOWN

_OPPOSITES = {"!=": "==", "<=": ">", ">=": "<", "!~": "=~"}
"""Operators that hold exactly where another one does not."""


@dataclass(frozen=True)
class Subjects:
    """Values and subjects in an expression, as far as they are known before the run.

    Attributes:
        lookup: known values of variables.
        subject: function that returns what has the value of a variable; "" = that differs.
        language: language of the expression.
        end: function that returns subject and values of a variable that is itself a comparison.
    """

    lookup: Lookup
    subject: Callable[[str], str]
    language: Language
    end: Callable[[str], tuple[str, ValueSet]] | None = None

    def value(self, node: Node) -> Any:
        """Return the value of an expression, as far as it is known."""
        return value_of(node, self.lookup, self.language)

    def name(self, node: Node) -> str:
        """Return the subject of an expression, which is equal wherever its value is; "" = none."""
        value = self.value(node)
        if value is not UNKNOWN:
            return json_text(value)
        if isinstance(node, Variable):
            return self.subject(node.path)
        if not isinstance(node, Operation):
            return ""
        names = [self.name(operand) for operand in node.operands]
        return f"{node.operator}({', '.join(names)})" if all(names) else ""


def needs_of(node: Node | None, about: Subjects, *, wanted: bool = True) -> Needs:
    """Return the values without which an expression is not true (or false)."""
    value = UNKNOWN if node is None else about.value(node)
    if node is None or isinstance(value, bool):
        return {} if value is UNKNOWN or value is wanted else NOTHING
    if isinstance(node, Operation) and node.operator == "!":
        return needs_of(node.operands[0], about, wanted=not wanted)
    if isinstance(node, Operation) and node.operator in ("&&", "||"):
        parts = [needs_of(operand, about, wanted=wanted) for operand in node.operands]
        return (all_of if (node.operator == "&&") is wanted else any_of)(parts)
    subject, values = _comparison(node, about)
    return {subject: values if wanted else values.opposite()} if subject else {}


def _comparison(node: Node, about: Subjects) -> tuple[str, ValueSet]:
    """Return subject and values of a comparison; "" = they differ from place to place."""
    if isinstance(node, Variable) and about.end is not None:
        return about.end(node.path)
    if isinstance(node, Operation) and node.operator in _OPPOSITES:
        subject, values = _comparison(Operation(_OPPOSITES[node.operator], node.operands), about)
        return subject, values.opposite()
    if isinstance(node, Operation) and node.operator == "==":
        for one, other in (node.operands, node.operands[::-1]):
            value = about.value(other)
            if value is not UNKNOWN:
                return about.name(one), ValueSet(frozenset({json_text(value)}))
    if isinstance(node, Operation) and node.operator == "in":
        among = about.value(node.operands[1])
        if isinstance(among, list):
            return about.name(node.operands[0]), ValueSet(frozenset(map(json_text, among)))
    return about.name(node), ValueSet(frozenset({"true"}))


def subject_of(expression: Expression) -> str:
    """Return what has the value of an expression; "" = it may differ from task to task."""
    match expression:
        case TaskOutput(task, key):
            return f"tasks.{task}.{key}"
        case Input(name):
            return f"inputs.{name}"
        case TaskPhase(task):
            return phase_subject(task)
        case Runtime(subject):
            return subject
        case _:
            return ""
