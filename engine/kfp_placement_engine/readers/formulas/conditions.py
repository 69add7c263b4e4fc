"""Conditions of tasks: KFP's trigger policies, Argo's `when` and `depends`.

Each can say whether it holds, as far as that is known before the run, and which values it needs of
what the run decides. So two tasks are seen to exclude each other.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from kfp_placement_engine.readers.formulas.computed import Computed
from kfp_placement_engine.readers.formulas.evaluation import Lookup, value_of
from kfp_placement_engine.readers.formulas.functions import json_text
from kfp_placement_engine.readers.formulas.syntax import (
    CEL,
    EXPR,
    GAP,
    GOVALUATE,
    MAX_CHARACTERS,
    FormulaSyntaxError,
    Language,
    Node,
    Operation,
    Variable,
    gap,
    parse,
)
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.choices import NOTHING, Needs, ValueSet, all_of, any_of
from kfp_placement_engine.readers.tree.decisions import (
    AFTER_SUCCESS,
    AFTER_SUCCESS_OR_SKIP,
    phase_subject,
    phase_values,
)
from kfp_placement_engine.readers.tree.expressions import (
    Expression,
    Input,
    Joined,
    LoopItem,
    Runtime,
    Scope,
    TaskOutput,
    TaskPhase,
    within,
)
from kfp_placement_engine.readers.tree.values import UNKNOWN, KnownValue, known_text

_INPUTS = "inputs.parameter_values."

_PHASES = {
    "Succeeded": frozenset({"Succeeded"}),
    "Failed": frozenset({"Failed"}),
    "Errored": frozenset({"Error"}),
    "Skipped": frozenset({"Skipped"}),
    "Omitted": frozenset({"Omitted"}),
    # A daemon goes on for those that wait for it, as a task does that has succeeded.
    "Daemoned": frozenset({"Succeeded"}),
}
_RESULTS = (*_PHASES, "AnySucceeded", "AllFailed")
_FAILED = frozenset({"Failed", "Error"})

_ANY = Variable("")
"""Stand-in for an expression that nobody knows yet."""

_OPPOSITES = {"!=": "==", "<=": ">", ">=": "<", "!~": "=~"}
"""Operators that hold exactly where another one does not."""


_TASK_RESULT = re.compile(
    r"([A-Za-z0-9_][A-Za-z0-9_-]*?)\.([A-Z][A-Za-z]+)|[A-Za-z0-9_][A-Za-z0-9_-]*"
)


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

    def holds(self, scope: Scope) -> bool | None:
        """Return whether it holds, as KFP's driver evaluates it."""
        return _truth(self._node, self._lookup(scope), CEL)

    def needs(self, scope: Scope) -> Needs:
        """Return the values of outputs and parameters that it needs."""
        return _needs(self._node, _Subjects(self._lookup(scope), self._subject, CEL))

    def problem(self, _scope: Scope) -> str:
        """Return why KFP's driver cannot evaluate it."""
        return _problem(self.text, self._node, "KFP's driver")

    @cached_property
    def _node(self) -> Node | None:
        return _parsed(self.text, CEL)

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
        return "" if source is None else _subject_of(source)


@dataclass(frozen=True)
class WhenCondition:
    """Argo's `when`, whose tags are replaced by text before it is read.

    Attributes:
        text: the condition as written.
        expression: the condition with expressions in place of its tags.
    """

    text: str
    expression: Expression

    @cached_property
    def of_item(self) -> bool:
        """True if the condition depends on the item of the loop that the task itself is."""
        return any(isinstance(part, LoopItem) for part in within(self.expression))

    def holds(self, scope: Scope) -> bool | None:
        """Return whether it holds, as Argo's controller evaluates it."""
        return _truth(self._node(scope), _unknown, GOVALUATE)

    def needs(self, scope: Scope) -> Needs:
        """Return the values of outputs, parameters and statuses that it needs."""
        whole = self.expression
        if isinstance(whole, Computed):
            about = _Subjects(
                whole.lookup(scope),
                lambda path: _text_subject(_subject_of(whole.source(path))),
                EXPR,
            )
            return _needs(whole.node, about)
        return _needs(self._node(scope), _Subjects(_unknown, self._subject, GOVALUATE))

    def problem(self, scope: Scope) -> str:
        """Return why Argo cannot evaluate it; one with values that a step makes may be right."""
        is_known = known_text(self.expression.evaluate(scope)) is not None
        return _problem(self.text, self._node(scope) if is_known else _ANY, "Argo")

    @cached_property
    def _parts(self) -> tuple[Expression, ...]:
        expression = self.expression
        return expression.parts if isinstance(expression, Joined) else (expression,)

    def _node(self, scope: Scope) -> Node | None:
        texts: list[str] = []
        size = 0
        for index, part in enumerate(self._parts):
            text = known_text(part.evaluate(scope))
            if text is not None and GAP.search(text):
                return None
            texts.append(gap(index) if text is None else text)
            size += len(texts[-1])
            if size > MAX_CHARACTERS:
                return None
        return _parsed("".join(texts), GOVALUATE)

    def _subject(self, path: str) -> str:
        match = GAP.fullmatch(path.strip("'"))
        subject = _subject_of(self._parts[int(match[1])]) if match else ""
        return _text_subject(subject) if path[0] == "'" else subject


@dataclass(frozen=True)
class DependsCondition:
    """Argo's `depends`: how the tasks that a task waits for must have ended.

    Attributes:
        text: the condition as written.
        node: syntax tree of the condition, whose variables are marks of `ends`.
        ends: tasks and the ends that are meant, by mark.
    """

    text: str
    node: Node
    ends: Mapping[str, tuple[str, frozenset[str]]]
    of_item: bool = False

    def holds(self, scope: Scope) -> bool | None:
        """Return whether it holds when all these tasks have ended."""
        return _truth(self.node, self._lookup(scope), EXPR)

    def needs(self, scope: Scope) -> Needs:
        """Return the ends of tasks that it needs."""

        def end(path: str) -> tuple[str, ValueSet]:
            task, ends = self.ends[path]
            return phase_subject(task), phase_values(ends)

        return _needs(self.node, _Subjects(self._lookup(scope), lambda _path: "", EXPR, end))

    def problem(self, _scope: Scope) -> str:
        """Return nothing: what Argo cannot read is refused with the file."""
        return ""

    def _lookup(self, scope: Scope) -> Lookup:
        def lookup(path: str) -> Any:
            task, ends = self.ends[path]
            phases = scope.phases(task)
            if phases.isdisjoint(ends):
                return False
            return True if phases <= ends else UNKNOWN

        return lookup


def read_depends(
    text: str,
    continues_after: Callable[[str], frozenset[str]],
    is_loop: Callable[[str], bool],
    place: Place,
) -> DependsCondition | None:
    """Read Argo's `depends`; None = it is too long to be read.

    Args:
        text: the condition, such as `a.Succeeded && (b.Failed || c)`.
        continues_after: function that returns further ends of a task after which the DAG goes on.
        is_loop: function that returns whether a task is a loop.
        place: place of the condition.

    Raises:
        InputError: Argo refuses it.
    """
    ends: dict[str, tuple[str, frozenset[str]]] = {}

    def mark(task: str, wanted: frozenset[str]) -> str:
        ends[made := gap(len(ends))] = (task, wanted)
        return made

    def marked(match: re.Match[str]) -> str:
        task, result = match[1] or match[0], match[2]
        if result is None:
            return mark(task, AFTER_SUCCESS_OR_SKIP | continues_after(task))
        if result not in _RESULTS:
            raise place.error(
                f"{result:.80} is not a result of a task; write {', '.join(_RESULTS)}"
            )
        if result in _PHASES or not is_loop(task):
            return mark(task, _PHASES.get(result, frozenset()))
        # A loop fails if one of its items does; what its items decide, is known only at run time.
        of_items = f'{mark(task, _FAILED)} && {result}("{task}")'
        return (
            f"({mark(task, AFTER_SUCCESS)} || {of_items})"
            if result == "AnySucceeded"
            else f"({of_items})"
        )

    if len(text) > MAX_CHARACTERS or GAP.search(text):
        return None
    node = _parsed(_TASK_RESULT.sub(marked, text), EXPR)
    if node is None:
        raise place.error(f"Argo cannot read {text!r:.80}; write it as in a.Succeeded && !b.Failed")
    return DependsCondition(text, _with_joined_ends(node, ends), ends)


def _with_joined_ends(node: Node, ends: dict[str, tuple[str, frozenset[str]]]) -> Node:
    """Return a tree in which `a.Succeeded || a.Skipped` is one variable: one of them holds."""
    if not isinstance(node, Operation):
        return node
    operands = [_with_joined_ends(operand, ends) for operand in node.operands]
    if node.operator == "||":
        of_task: dict[str, Variable] = {}
        others: list[Node] = []
        for operand in operands:
            if not isinstance(operand, Variable):
                others.append(operand)
                continue
            task, wanted = ends[operand.path]
            first = of_task.setdefault(task, operand)
            ends[first.path] = (task, ends[first.path][1] | wanted)
        operands = [*of_task.values(), *others]
        if len(operands) == 1:
            return operands[0]
    return Operation(node.operator, tuple(operands))


@dataclass(frozen=True)
class _Subjects:
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


def _needs(node: Node | None, about: _Subjects, *, wanted: bool = True) -> Needs:
    """Return the values without which an expression is not true (or false)."""
    value = UNKNOWN if node is None else about.value(node)
    if node is None or isinstance(value, bool):
        return {} if value is UNKNOWN or value is wanted else NOTHING
    if isinstance(node, Operation) and node.operator == "!":
        return _needs(node.operands[0], about, wanted=not wanted)
    if isinstance(node, Operation) and node.operator in ("&&", "||"):
        parts = [_needs(operand, about, wanted=wanted) for operand in node.operands]
        return (all_of if (node.operator == "&&") is wanted else any_of)(parts)
    subject, values = _comparison(node, about)
    return {subject: values if wanted else values.opposite()} if subject else {}


def _comparison(node: Node, about: _Subjects) -> tuple[str, ValueSet]:
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


def _subject_of(expression: Expression) -> str:
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


def _text_subject(subject: str) -> str:
    """Return the subject of a value that is text even if it looks like a number."""
    # A phase is text in any case.
    return f"'{subject}'" if subject and not subject.startswith("status ") else subject


def _problem(text: str, node: Node | None, engine: str) -> str:
    if len(text) > MAX_CHARACTERS:
        return f"is longer than {MAX_CHARACTERS} characters; plans do not read it"
    return "" if node is not None else f"is not an expression that {engine} can evaluate"


def _truth(node: Node | None, lookup: Lookup, language: Language) -> bool | None:
    value = UNKNOWN if node is None else value_of(node, lookup, language)
    return value if isinstance(value, bool) else None


def _unknown(_path: str) -> Any:
    return UNKNOWN


@lru_cache(maxsize=64)
def _parsed(text: str, language: Language) -> Node | None:
    """Return the syntax tree of an expression, or None if the engine refuses it."""
    try:
        return parse(text, language)
    except FormulaSyntaxError:
        return None
