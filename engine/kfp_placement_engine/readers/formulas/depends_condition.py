"""Argo's `depends`: how the tasks that a task waits for must have ended."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kfp_placement_engine.readers.formulas.evaluation import unknown
from kfp_placement_engine.readers.formulas.languages import EXPR
from kfp_placement_engine.readers.formulas.needs import Subjects, cases_of
from kfp_placement_engine.readers.formulas.parser import parsed
from kfp_placement_engine.readers.formulas.syntax import (
    GAP,
    MAX_CHARACTERS,
    Node,
    gap,
)
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.choices import Cases, ValueSet
from kfp_placement_engine.readers.tree.decisions import AFTER_SUCCESS, AFTER_SUCCESS_OR_SKIP
from kfp_placement_engine.readers.tree.expressions import Scope, phase_subject

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

_ALL_OF = re.compile(r"\s*([\w-]+(\s*&&\s*[\w-]+)*\s*)?", re.ASCII)
"""Condition that says no more than the usual: all these tasks must have ended."""

_TASK_RESULT = re.compile(
    r"([A-Za-z0-9_][A-Za-z0-9_-]*?)\.([A-Z][A-Za-z]+)|[A-Za-z0-9_][A-Za-z0-9_-]*"
)


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
    is_refused: bool = False

    def cases(self, scope: Scope) -> Cases:
        """Return which of these ends it needs to hold, and which not to."""

        def end(path: str) -> tuple[str, ValueSet]:
            task, ends = self.ends[path]
            return phase_subject(task), ValueSet.of(ends)

        about = Subjects(unknown, lambda _path: "", EXPR, scope.possible, end)
        return cases_of(self.node, about)

    def problem(self, _scope: Scope) -> str:
        """Return nothing: what Argo cannot read is refused with the file."""
        return ""


def read_depends(
    text: str,
    continues_after: Callable[[str], frozenset[str]],
    is_loop: Callable[[str], bool],
    has_when: Callable[[str], bool],
    place: Place,
) -> DependsCondition | None:
    """Read Argo's `depends`; None = the usual, or too long.

    Args:
        text: the condition, such as `a.Succeeded && (b.Failed || c)`.
        continues_after: function that returns further ends of a task after which the DAG goes on.
        is_loop: function that returns whether a task is a loop.
        has_when: function that returns whether a task, or all items of a loop, may be skipped.
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
        may_be_none = result == "AnySucceeded" and has_when(task)
        ends_of_some = _FAILED | AFTER_SUCCESS if may_be_none else _FAILED
        of_items = f'{mark(task, ends_of_some)} && {result}("{task}")'
        return (
            f"({mark(task, AFTER_SUCCESS)} || {of_items})"
            if result == "AnySucceeded" and not may_be_none
            else f"({of_items})"
        )

    if len(text) > MAX_CHARACTERS or GAP.search(text) or _ALL_OF.fullmatch(text):
        return None
    node = parsed(_TASK_RESULT.sub(marked, text), EXPR)
    if node is None:
        raise place.error(f"Argo cannot read {text!r:.80}; write it as in a.Succeeded && !b.Failed")
    return DependsCondition(text, node, ends)
