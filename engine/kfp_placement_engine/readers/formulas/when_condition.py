"""Argo's `when`, in govaluate once its tags are replaced."""

from dataclasses import dataclass
from functools import cached_property

from kfp_placement_engine.readers.formulas.computed import Computed
from kfp_placement_engine.readers.formulas.evaluation import unknown
from kfp_placement_engine.readers.formulas.languages import GOVALUATE
from kfp_placement_engine.readers.formulas.needs import (
    Subjects,
    cases_of,
    computed_subjects,
    subject_of,
    text_subject,
)
from kfp_placement_engine.readers.formulas.parser import parsed, problem_of
from kfp_placement_engine.readers.formulas.syntax import GAP, MAX_CHARACTERS, Node, Variable, gap
from kfp_placement_engine.readers.tree.choices import Cases
from kfp_placement_engine.readers.tree.expressions import (
    Expression,
    Joined,
    LoopItem,
    Scope,
    within,
)
from kfp_placement_engine.readers.tree.values import known_text

_ANY = Variable("")
"""Stand-in for an expression that nobody knows yet."""

_READABLE = (
    "Argo can evaluate, so that the step ends with an error; write == for =, quotes around text,"
    " and {{ }} around names"
)
_UNCLEAR = (
    "compares values of different kinds, with which the step ends with an error (put text in"
    " quotes), or needs what plans do not compute"
)


@dataclass(frozen=True)
class WhenCondition:
    """Argo's `when`, whose tags are replaced by text before it is read.

    Attributes:
        text: the condition as written.
        expression: the condition with expressions in place of its tags.
    """

    text: str
    expression: Expression
    is_refused: bool = False

    @cached_property
    def of_item(self) -> bool:
        """True if the condition depends on the item of the loop that the task itself is."""
        return any(isinstance(part, LoopItem) for part in within(self.expression))

    def cases(self, scope: Scope) -> Cases:
        """Return which of these values it needs to hold, and which not to."""
        whole = self.expression
        if isinstance(whole, Computed):
            return cases_of(whole.node, computed_subjects(whole, scope))
        about = Subjects(unknown, self._subject, GOVALUATE, scope.possible)
        return cases_of(self._node(scope), about)

    def problem(self, scope: Scope) -> str:
        """Return why Argo cannot evaluate it; one with values that a step makes may be right."""
        node: Node | None = _ANY
        if known_text(self.expression.evaluate(scope)) is not None:
            node = self._node(scope)
        is_open = any(
            isinstance(part, Computed) and part.is_unread(scope) for part in within(self.expression)
        )
        if is_open or (node not in (None, _ANY) and self.cases(scope).holds is None):
            return _UNCLEAR
        return problem_of(self.text, node, _READABLE)

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
        return parsed("".join(texts), GOVALUATE)

    def _subject(self, path: str) -> str:
        match = GAP.fullmatch(path.strip("'"))
        subject = subject_of(self._parts[int(match[1])]) if match else ""
        return text_subject(subject) if path[0] == "'" else subject
