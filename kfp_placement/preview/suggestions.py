"""Answers of `Preview.what_if`: the single changes that make a run shorter, and any as HTML."""

from dataclasses import dataclass

from typing_extensions import override

from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.what_if import Suggestions as PlannedSuggestions
from kfp_placement_engine.render.text import table_lines
from kfp_placement_engine.views.document import Document
from kfp_placement_engine.views.plans.what_if import Answer, suggestions_table, what_if_part


@dataclass(frozen=True)
class Suggestion:
    """A single change that makes the run shorter.

    Attributes:
        change: the change, in the form that `what_if` takes: `+1 of worker`.
        makespan: seconds from the submission of the run to its end.
        gain: seconds by which the run ends earlier; infinite if it does not end otherwise.
    """

    change: str
    makespan: float
    gain: float


class Suggestions(tuple[Suggestion, ...]):
    """Tuple of the single changes that make a run at least 1% shorter, the best first.

    A notebook shows it as a table. It is empty if there are no such changes.
    """

    # One that a user makes has no plan to show.
    _shown: tuple[Plan, PlannedSuggestions] | None = None

    @classmethod
    def of(cls, present: Plan, answer: PlannedSuggestions) -> "Suggestions":
        """Return the planner's suggestions, beside the plan without changes."""
        suggestions = cls(
            Suggestion(each.change.text, each.makespan_seconds, each.gain_seconds)
            for each in answer.best
        )
        suggestions._shown = (present, answer)
        return suggestions

    @override
    def __repr__(self) -> str:
        if self._shown is None:
            return super().__repr__()
        return "\n".join(table_lines(suggestions_table(*self._shown)))

    def _repr_html_(self) -> str | None:
        return answer_html(*self._shown) if self._shown else None


def answer_html(present: Plan, answer: Answer) -> str:
    """Return an answer to `what_if` as HTML for a notebook."""
    from kfp_placement_engine.render.html import html_fragment

    return html_fragment(Document(present.run.name, parts=[what_if_part(present, answer)]))
