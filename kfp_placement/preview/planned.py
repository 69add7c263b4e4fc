"""The plan of a run as its author sees it, and the plan after changes: `Preview`, `WhatIf`."""

import math
import os
import reprlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from typing_extensions import override

from kfp_placement._files import write_whole
from kfp_placement._reading import engine_errors
from kfp_placement.exceptions import MarkValueError, MissingLibraryError, UsageError
from kfp_placement.prepared_run import PreparedRun
from kfp_placement.preview.steps import PreviewedStep, Range, StepMapping, range_of, row_of
from kfp_placement.preview.suggestions import Suggestions, answer_html
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import OUTLINE
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.planned_step import PlannedStep
from kfp_placement_engine.plans.what_if import ChangedPlan
from kfp_placement_engine.readers.change_text import read_change
from kfp_placement_engine.render.plan_json import plan_json, plan_yaml
from kfp_placement_engine.views.formatting import counted, duration, shown, visible
from kfp_placement_engine.views.plans import promises
from kfp_placement_engine.views.plans.comparison import can_end
from kfp_placement_engine.views.plans.detail import NOTEBOOK, PAGE
from kfp_placement_engine.views.plans.step_texts import is_missing, remarks, title, waits, why
from kfp_placement_engine.views.plans.steps import waiting_for
from kfp_placement_engine.views.plans.verdict import headline, search_verdict
from kfp_placement_engine.views.plans.view import plan_view
from kfp_placement_engine.views.plans.what_if import end_sentence

if TYPE_CHECKING:
    from pandas import DataFrame

_VALUE_CHARACTERS = 60
"""Length of a wrong value in a message, in characters."""


class Preview:
    """The plan of one run on one cluster; shows as table, time line and graph in a notebook.

    Attributes:
        plan: the plan itself, with all figures.
    """

    def __init__(self, plan: Plan, prepared: PreparedRun | None = None) -> None:
        """Set up the preview of a plan.

        Args:
            plan: plan to show.
            prepared: run that was planned; None if no changes need to be tried.
        """
        self.plan = plan
        self._prepared = prepared
        self._steps = StepMapping(plan, {} if prepared is None else prepared.run.left_out)

    @property
    def makespan(self) -> float:
        """Seconds from the submission of the run to the end of its last step.

        Infinite if the run does not end, because a step fits no node.
        """
        return self.plan.figures.makespan_seconds if can_end(self.plan) else math.inf

    @property
    def ends(self) -> Range | None:
        """Range of the run's end by past runs: `.low`, `.typical`, `.high`, since its submission.

        None without past runs, or if too little is known; the preview then says why.
        """
        promise = self.plan.promise
        return None if promise is None or not can_end(self.plan) else range_of(promise.ends)

    @property
    def basis(self) -> str | None:
        """`outline` for a Workflow of KFP 3 without its package: its requests are estimates.

        None for all other runs.
        """
        return OUTLINE if self.plan.run.is_outline else None

    @property
    def steps(self) -> Mapping[str, PreviewedStep]:
        """Steps by name: `for-loop-1[0].work` is one iteration, `work` a task without others."""
        return self._steps

    @property
    def warnings(self) -> tuple[Notice, ...]:
        """Warnings: assumptions of the plan that may not hold, and requests that have no effect."""
        return self.plan.notices

    def explain(self, step: str) -> str:
        """Return in a sentence why a step goes where it goes.

        Args:
            step: name of the step; `for-loop-1[*].work`, or `work` where that is clear, for all
                iterations, in one line each.

        Raises:
            UnknownStepError: there is no such step.
        """
        steps = [self.plan.step(each.name) for each in self._steps.named(step)]
        waiting = waiting_for(self.plan)
        return "\n".join(_explained(self.plan, item, waiting.get(item.name)) for item in steps)

    @overload
    def what_if(self) -> Suggestions: ...

    @overload
    def what_if(self, best: Literal["best"], /) -> Suggestions: ...  # type: ignore[overload-overlap]

    @overload
    def what_if(self, change: str, /, *changes: str) -> "WhatIf": ...

    def what_if(self, *changes: str) -> "WhatIf | Suggestions":
        """Plan the run again after changes, or find the changes that make it shorter.

        The search starts from this plan. Every form of a change: `+2 of worker`, `-1 of worker`,
        `gpu-node cpu=32 memory=64Gi gpu=2`, `worker speed=2`, `loop for-loop-1 limit=4`,
        `loop for-loop-1 limit=off`, `step train cpu=4 memory=8Gi gpu=1`, `step train
        node=worker-2`, `step train duration=10m`, `step predict max-latency=30ms`, `step predict
        max-latency=off`, `image python:3.12 everywhere`, `volume data access=ReadWriteMany`.
        `worker` is a node, or all of worker-1, worker-2 and so on. The first word may be left out
        where that is clear: `train node=worker-2`, and `train cpu=4` where no node has that name.

        Args:
            changes: changes, all of them together. Without any, or with `"best"` as on the command
                line, single changes are tried: one empty node more, one node with twice the CPU or
                memory, a loop's limit one up or off, an image held by every node, a volume
                ReadWriteMany.

        Returns:
            `.makespan`, `.gain` and `.plan` after the changes; or the changes that make the run at
            least 1% shorter, the best first.

        Raises:
            UnknownStepError: the run does not have a step that changes.
            RunError: a change cannot be understood, or names something that does not exist.
            UsageError: a change is not text, or the plan was not made by `preview`.
        """
        prepared = self._prepared
        if prepared is None:
            raise UsageError("what_if is for a plan that preview(pipeline, cluster) has made")
        for change in changes:
            # A number, or a list of changes, would fail in ways that are hard to understand.
            if not isinstance(change, str):
                value = shown(reprlib.repr(change), _VALUE_CHARACTERS)
                raise UsageError(
                    "a change is text, such as what_if('+1 of worker'); got"
                    f" {value} ({type(change).__name__})"
                )
        with engine_errors():
            if changes in ((), ("best",)):
                return Suggestions.of(self.plan, prepared.best_changes(self.plan))
            read = tuple(read_change(change) for change in changes)
            answer = prepared.what_if(self.plan, read)
            is_same = answer.plan is self.plan
            changed = self if is_same else Preview(answer.plan, prepared.after(read))
            return WhatIf(self.plan, answer, changed)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the plan to a file, whole or not at all.

        Args:
            path: `.html` makes a report for people; `.json`, `.yaml` and `.yml` the document for
                programs.

        Returns:
            The path written to.

        Raises:
            MarkValueError: the path has another ending.
            RunError: the file cannot be written.
        """
        target = Path(path)
        write_whole(target, _rendered(self.plan, target))
        return target

    def to_dataframe(self) -> "DataFrame":
        """Return the steps as a pandas DataFrame, one row each, in the plan's order.

        Times are seconds since the submission of the run; a missing value is NaN. The index is the
        step's name. Requests beside CPU and memory have their own columns, such as
        `nvidia.com/gpu`. A plan on past runs has columns for the ranges of start and end, and for
        the origin of run times.

        Raises:
            MissingLibraryError: pandas is not installed.
        """
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise MissingLibraryError(
                "to_dataframe() needs pandas, which is not installed: `pip install pandas`"
            ) from error
        rows = [row_of(self.plan, step) for step in self._steps.values()]
        return DataFrame(rows).set_index("step")

    @override
    def __repr__(self) -> str:
        return f"<Preview {_summary(self.plan)}>"

    def _repr_html_(self) -> str:
        from kfp_placement_engine.render.html import html_fragment

        return html_fragment(plan_view(self.plan, NOTEBOOK))


class WhatIf:
    """The plan of a run after changes, beside the plan without them; prints as a sentence.

    Attributes:
        changes: the changes, all of them together: `("+2 of worker",)`.
        plan: preview of the run with the changes, to show, explain and change as any other; the
            plan itself is `plan.plan`.
        gain: seconds by which the run ends earlier, negative if later; infinite if it does not end
            without the changes, minus infinite if it does not end with them.
    """

    def __init__(self, present: Plan, answer: ChangedPlan, plan: Preview) -> None:
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
        return f"<WhatIf {end_sentence(self._present, self._answer)}>"

    def _repr_html_(self) -> str:
        return answer_html(self._present, self._answer)


def _summary(plan: Plan) -> str:
    steps = counted(len(plan.steps), "step")
    nodes = counted(len(plan.cluster.nodes), "node")
    warnings = counted(len(plan.notices), "warning") if plan.notices else ""
    learned = visible(promises.promised_end(plan)).removesuffix(".")
    learned = f"{learned[:1].lower()}{learned[1:]}"
    parts = [
        headline(plan).removesuffix("."),
        learned,
        *search_verdict(plan),
        warnings,
        "see .explain(step)",
    ]
    return f"{shown(plan.run.name, 80)}, {steps} on {nodes}: {'; '.join(filter(None, parts))}"


def _rendered(plan: Plan, target: Path) -> str:
    renderers: dict[str, Callable[[Plan], str]] = {
        ".html": _page,
        ".json": plan_json,
        ".yaml": plan_yaml,
        ".yml": plan_yaml,
    }
    renderer = renderers.get(target.suffix.lower())
    if renderer is None:
        raise MarkValueError(f"{target}: cannot tell the format; end it in {', '.join(renderers)}")
    return renderer(plan)


def _page(plan: Plan) -> str:
    from kfp_placement_engine.render.html import html_page

    return html_page(plan_view(plan, PAGE))


def _explained(plan: Plan, step: PlannedStep, cause: PlannedStep | None) -> str:
    """Return a sentence that says where a step goes, when and why.

    Args:
        plan: plan of the step.
        step: step to explain.
        cause: step without a node for which `step` waits; None = `step` can start.
    """
    name = visible(title(step))
    if step.node is None:
        where = "goes nowhere:" if is_missing(step) else "is"
        return f"{name} {where} {visible(step.explanation.sentence)}"
    start, end = duration(step.start_seconds), duration(step.finish_seconds)
    stuck = f"; but it comes {visible(waits(cause))}" if cause is not None else ""
    words = visible(", ".join(remarks(step, None, speed=False)))
    where = f"{name}{f' ({words})' if words else ''} goes to {visible(step.node)}, {start} to {end}"
    return f"{where}: {visible(why(step))}{stuck}{_past(plan, step)}"


def _past(plan: Plan, step: PlannedStep) -> str:
    """Return the end of an explanation: the origin of the run time, and when the step runs."""
    if plan.promise is None:
        return ""
    rests = f". Its run time rests on: {visible(promises.basis(step))}"
    start, end = promises.start_and_end(plan, step)
    return f"{rests}; starts after {start}, ends after {end}" if start and end else rests
