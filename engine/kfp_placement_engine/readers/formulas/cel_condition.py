"""Conditions of KFP: the trigger policies of tasks, in CEL."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kfp_placement_engine.readers.formulas.evaluation import Lookup
from kfp_placement_engine.readers.formulas.languages import CEL
from kfp_placement_engine.readers.formulas.needs import Subjects, cases_of, subject_of
from kfp_placement_engine.readers.formulas.parser import parsed, problem_of
from kfp_placement_engine.readers.formulas.syntax import MAX_CHARACTERS, Node, Operation, Variable
from kfp_placement_engine.readers.tree.choices import Cases
from kfp_placement_engine.readers.tree.expressions import Expression, Scope
from kfp_placement_engine.readers.tree.values import UNKNOWN, KnownValue

_INPUTS = "inputs.parameter_values."


@dataclass(frozen=True)
class CelCondition:
    """A condition of KFP, which its driver evaluates with the inputs of the task.

    Attributes:
        text: the condition, in CEL.
        inputs: the task's input parameters, evaluated in the enclosing DAG.
    """

    text: str
    inputs: Mapping[str, Expression]
    of_item: bool = False

    def cases(self, scope: Scope) -> Cases:
        """Return which of these values it needs to hold, and which not to."""
        about = Subjects(self._lookup(scope), self._subject, CEL, scope.possible)
        return cases_of(self._node, about)

    def problem(self, _scope: Scope) -> str:
        """Return why KFP's driver cannot evaluate it."""
        return problem_of(self.text, self._read, "KFP's driver can evaluate")

    @property
    def is_refused(self) -> bool:
        """True if KFP's driver stops the run at it."""
        return self._read is None and len(self.text) <= MAX_CHARACTERS

    @cached_property
    def _read(self) -> Node | None:
        return parsed(self.text, CEL)

    @cached_property
    def _node(self) -> Node:
        return self._read or _unread(self.text)

    def _lookup(self, scope: Scope) -> Lookup:
        def lookup(path: str) -> Any:
            source = self.inputs.get(path.removeprefix(_INPUTS))
            if source is None or not path.startswith(_INPUTS):
                return UNKNOWN
            value = source.evaluate(scope)
            # KFP's driver refuses a condition on a value that is not given.
            is_given = isinstance(value, KnownValue) and value.value is not None
            return value.value if isinstance(value, KnownValue) and is_given else UNKNOWN

        return lookup

    def _subject(self, path: str) -> str:
        source = self.inputs.get(path.removeprefix(_INPUTS))
        if source is None:
            return "" if path.startswith(_INPUTS) else path
        return subject_of(source)


def _unread(text: str) -> Node:
    """Return what an unreadable condition of If, Elif or Else says of the others: they differ."""
    parts: list[Node] = []
    for part in text.split(" && "):
        is_opposite = part.startswith("!(")
        whole = Variable(part[2:-1] if is_opposite else part)
        parts.append(Operation("!", (whole,)) if is_opposite else whole)
    return Operation("&&", tuple(parts))
