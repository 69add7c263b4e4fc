"""Conditions of KFP: the trigger policies of tasks, in CEL."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kfp_placement_engine.readers.formulas.evaluation import Lookup
from kfp_placement_engine.readers.formulas.languages import CEL
from kfp_placement_engine.readers.formulas.needs import Subjects, cases_of, subject_of
from kfp_placement_engine.readers.formulas.parser import parsed, problem_of
from kfp_placement_engine.readers.formulas.syntax import Node
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
        return problem_of(self.text, self._node, "KFP's driver can evaluate")

    @cached_property
    def _node(self) -> Node | None:
        return parsed(self.text, CEL)

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
        return "" if source is None else subject_of(source)
