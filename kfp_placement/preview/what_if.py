"""What changes would make of a previewed run: what `Preview.what_if` returns."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from kfp_placement_engine.plans import what_if as engine
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.render.text import table_lines
from kfp_placement_engine.views.document import Document
from kfp_placement_engine.views.plans.what_if import (
    Answer,
    sentence,
    suggestions_table,
    what_if_part,
)

if TYPE_CHECKING:
    from kfp_placement.preview.planned import Preview


class WhatIf:
    """The plan after changes, beside the one without; shows as a sentence.

    Attributes:
        changes: what changes, all of it together: `("+2 of worker",)`.
        plan: the plan then, as `preview` would have made it.
        gain: seconds by which the run ends earlier; negative = later, infinite = it ends only then,
            minus infinite = it no longer ends.
    """

    def __init__(self, present: Plan, answer: engine.ChangedPlan, plan: "Preview") -> None:
        self.changes = tuple(change.text for change in answer.changes)
        self.plan = plan
        self.gain = answer.gain_seconds
        self._present = present
        self._answer = answer

    @property
    def makespan(self) -> float:
        """Seconds from the submission of the run to its end; infinite if it does not end."""
        return self.plan.makespan

    @override
    def __repr__(self) -> str:
        return f"<WhatIf {sentence(self._present, self._answer)}>"

    def _repr_html_(self) -> str:
        return _html(self._present, self._answer)


@dataclass(frozen=True)
class Suggestion:
    """A single change that makes the run shorter.

    Attributes:
        change: what changes, as `what_if` takes it: `+1 of worker`.
        makespan: seconds from the submission of the run to its end.
        gain: seconds by which it ends earlier; infinite = it ends only then.
    """

    change: str
    makespan: float
    gain: float


class Suggestions(tuple[Suggestion, ...]):
    """The single changes that make a run at least 1% shorter, the best first; shows as a table.

    Empty if there are none.
    """

    _shown: tuple[Plan, engine.Suggestions]

    @classmethod
    def of(cls, present: Plan, answer: engine.Suggestions) -> "Suggestions":
        """What the planner has found, beside the plan without changes."""
        made = cls(
            Suggestion(each.change.text, each.makespan_seconds, each.gain_seconds)
            for each in answer.best
        )
        made._shown = (present, answer)
        return made

    @override
    def __repr__(self) -> str:
        return "\n".join(table_lines(suggestions_table(*self._shown)))

    def _repr_html_(self) -> str:
        return _html(*self._shown)


def _html(present: Plan, answer: Answer) -> str:
    from kfp_placement_engine.render.html import html_fragment

    return html_fragment(Document(present.run.name, parts=[what_if_part(present, answer)]))
