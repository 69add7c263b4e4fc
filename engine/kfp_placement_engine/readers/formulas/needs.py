"""Values that expressions need of what the run decides.

Two expressions that need different values of the same thing exclude each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kfp_placement_engine.readers.formulas.computed import Computed
from kfp_placement_engine.readers.formulas.evaluation import Lookup, value_of
from kfp_placement_engine.readers.formulas.functions import json_text
from kfp_placement_engine.readers.formulas.languages import EXPR
from kfp_placement_engine.readers.formulas.syntax import Language, Node, Operation, Variable
from kfp_placement_engine.readers.tree.choices import (
    COMPARISONS,
    EVERYTHING,
    NOTHING,
    Cases,
    Needs,
    ValueSet,
    all_of,
    any_of,
    common,
)
from kfp_placement_engine.readers.tree.expressions import (
    Expression,
    Input,
    Runtime,
    Scope,
    TaskOutput,
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
        possible: values that subjects may have, where some are ruled out.
        end: function that returns subject and values of a variable that is itself a comparison.
    """

    lookup: Lookup
    subject: Callable[[str], str]
    language: Language
    possible: Needs
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

    def checked(self, needs: Needs) -> Needs:
        """Return needs, or `NOTHING` if no possible values meet them."""
        asked = [each for each in needs if each in self.possible]
        met = (common([needs[each], self.possible[each]]) for each in asked)
        return needs if all(values.cuts for values in met) else NOTHING


def cases_of(node: Node | None, about: Subjects) -> Cases:
    """Return what an expression needs to be true and to be false; None = it cannot be read."""
    operator, operands = node if isinstance(node, Operation) else ("", ())
    if operator in ("&&", "||", "!"):
        cases = [cases_of(operand, about) for operand in operands]
        met, unmet = (each.met for each in cases), (each.unmet for each in cases)
        if operator == "!":
            return Cases(cases[0].unmet, cases[0].met)
        both = (all_of(met), any_of(unmet)) if operator == "&&" else (any_of(met), all_of(unmet))
        return Cases(*map(about.checked, both))
    value = UNKNOWN if node is None else about.value(node)
    if isinstance(value, bool):
        return Cases(unmet=NOTHING) if value else Cases(met=NOTHING)
    subject, values = ("", EVERYTHING) if node is None else _comparison(node, about)
    if not subject:
        return Cases()
    return Cases(*(about.checked({subject: each}) for each in (values, values.opposite())))


def _comparison(node: Node, about: Subjects) -> tuple[str, ValueSet]:
    """Return subject and values of a comparison; "" = they differ from place to place."""
    if isinstance(node, Variable) and about.end is not None:
        return about.end(node.path)
    operator, operands = node if isinstance(node, Operation) else ("", ())
    if operator in COMPARISONS:
        for one, other in (operands, operands[::-1]):
            value = about.value(other)
            if value is not UNKNOWN:
                is_mirrored = other is operands[0]
                return about.name(one), ValueSet.where(operator, value, is_mirrored=is_mirrored)
    if operator in _OPPOSITES:
        subject, values = _comparison(Operation(_OPPOSITES[operator], operands), about)
        return subject, values.opposite()
    if operator == "in":
        among = about.value(operands[1])
        if isinstance(among, list):
            return about.name(operands[0]), ValueSet.of(among)
    return about.name(node), ValueSet.of([True])


def subject_of(expression: Expression) -> str:
    """Return what has the value of an expression; "" = it may differ from task to task."""
    match expression:
        case TaskOutput(task, key):
            return f"tasks.{task}.{key}"
        case Input(name):
            return f"inputs.{name}"
        case Runtime(subject):
            return subject
        case Computed(_, node, _) if node is not None:
            return computed_subjects(expression, Scope()).name(node)
        case _:
            return ""


def computed_subjects(computed: Computed, scope: Scope) -> Subjects:
    """Return the values and subjects in an expression in expr-lang."""

    def subject(path: str) -> str:
        return text_subject(subject_of(computed.source(path)))

    return Subjects(computed.lookup(scope), subject, EXPR, scope.possible)


def text_subject(subject: str) -> str:
    """Return the subject of a value that is text even if it looks like a number."""
    # A phase is text in any case.
    return f"'{subject}'" if subject and not subject.startswith("status ") else subject
