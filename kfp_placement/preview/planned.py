"""The plan of a run as the author sees it: what `preview` returns."""

import math
import os
import reprlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, overload

from typing_extensions import override

from kfp_placement._files import write_whole
from kfp_placement._reading import engine_errors
from kfp_placement.exceptions import (
    MarkValueError,
    MissingLibraryError,
    UnknownStepError,
    UsageError,
)
from kfp_placement.planning import PreparedRun
from kfp_placement.preview.promised import PreviewedStep, Range, previewed, range_of
from kfp_placement.preview.what_if import Suggestions, WhatIf
from kfp_placement_engine.model.run_graph import Notice
from kfp_placement_engine.model.step_names import StepNames, listed
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.planned_step import PlannedStep
from kfp_placement_engine.readers.change_text import read_change
from kfp_placement_engine.render.plan_json import plan_json, plan_yaml
from kfp_placement_engine.views.formatting import counted, duration, shown, visible
from kfp_placement_engine.views.plans import promises
from kfp_placement_engine.views.plans.comparison import ends
from kfp_placement_engine.views.plans.detail import NOTEBOOK, PAGE
from kfp_placement_engine.views.plans.step_labels import title
from kfp_placement_engine.views.plans.steps import waiting_for, waits, why
from kfp_placement_engine.views.plans.verdict import headline, search_verdict
from kfp_placement_engine.views.plans.view import plan_view

if TYPE_CHECKING:
    from pandas import DataFrame

_NAMES_SHOWN = 20
_VALUE_CHARACTERS = 60
_ROOM = frozenset({"cpu", "memory", "pods"})
"""Requests with a column of a fixed name, or none."""


class StepMapping(Mapping[str, PreviewedStep]):
    """The steps of a plan by name; asked for one that is not there, it names those that are close.

    The error is a `KeyError`, so that `in` and `get` work as always.
    """

    def __init__(self, plan: Plan) -> None:
        self._run_name = plan.run.name
        self._steps = {step.name: previewed(plan, step) for step in plan.steps}
        self._names = StepNames(
            (step.name, step.spec.task, step.spec.display_name) for step in plan.steps
        )

    @override
    def __getitem__(self, name: str) -> PreviewedStep:
        """The step of that name; an author's name will do where it means a single step.

        Raises:
            UnknownStepError: there is none, or there are several.
        """
        steps = self.named(name)
        if len(steps) > 1:
            raise UnknownStepError(
                f"{self._run_name}: {name!r:.120} means {len(steps)} steps; name one of"
                f" {listed([step.name for step in steps])}, or ask explain() for all"
            )
        return steps[0]

    def named(self, name: object) -> list[PreviewedStep]:
        """All steps that a name means: one, or the iterations of a task.

        Raises:
            UnknownStepError: there are none.
        """
        meant = self._names.meant(name) if isinstance(name, str) else ()
        if not meant:
            raise UnknownStepError(f"{self._run_name}: {self._names.problem(name)}")
        return [self._steps[each] for each in meant]

    @override
    def __iter__(self) -> Iterator[str]:
        """The names, dependencies first."""
        return iter(self._steps)

    @override
    def __len__(self) -> int:
        """The number of steps."""
        return len(self._steps)

    @override
    def __repr__(self) -> str:
        """The names."""
        return f"<{len(self._steps)} steps: {', '.join(list(self._steps)[:_NAMES_SHOWN])}>"


class Preview:
    """The plan of one run on one cluster; shows as table, time line and graph in a notebook.

    Attributes:
        plan: the plan itself, with all figures.
    """

    def __init__(self, plan: Plan, prepared: PreparedRun | None = None) -> None:
        """Show a plan.

        Args:
            plan: the plan.
            prepared: what made it; without it, nothing about the run can be changed.
        """
        self.plan = plan
        self._prepared = prepared
        self._steps = StepMapping(plan)

    @property
    def makespan(self) -> float:
        """Seconds from the submission of the run to the end of its last step.

        Infinite if the run does not end, because a step fits no node.
        """
        return self.plan.figures.makespan_seconds if ends(self.plan) else math.inf

    @property
    def ends(self) -> Range | None:
        """When the run ends by past runs: `.low`, `.typical`, `.high`, since its submission.

        None without past runs, or if too little is known, and then the preview says why.
        """
        promise = self.plan.promise
        return None if promise is None or not ends(self.plan) else range_of(promise.ends)

    @property
    def steps(self) -> Mapping[str, PreviewedStep]:
        """The steps by name; `for-loop-1[0].work` names one iteration, `work` an only one."""
        return self._steps

    @property
    def warnings(self) -> tuple[Notice, ...]:
        """What the plan rests on that may not hold, and what will not work as asked."""
        return self.plan.notices

    def explain(self, step: str) -> str:
        """Why a step goes where it goes, in a sentence.

        Args:
            step: its name; `for-loop-1[*].work`, or `work` where that is clear, for all iterations,
                one line each.

        Raises:
            UnknownStepError: there is no such step.
        """
        steps = self._steps.named(step)
        waiting = waiting_for(self.plan)
        return "\n".join(_explanation(self.plan, item, waiting.get(item.name)) for item in steps)

    @overload
    def what_if(self) -> Suggestions: ...

    @overload
    def what_if(self, change: str, /, *changes: str) -> WhatIf: ...

    def what_if(self, *changes: str) -> WhatIf | Suggestions:
        """The plan if something were different, or what would make the run shorter.

        The search starts from this plan. Every form of a change: `+2 of worker`, `-1 of worker`,
        `gpu-node cpu=32 memory=64Gi gpu=2`, `worker speed=2`, `loop for-loop-1 limit=4`,
        `loop for-loop-1 limit=off`, `step train cpu=4 memory=8Gi gpu=1`, `step train
        node=worker-2`, `step train duration=10m`, `step predict max-latency=30ms`, `step predict
        max-latency=off`, `image python:3.12 everywhere`, `volume data access=ReadWriteMany`.
        `worker` is a node, or all of worker-1, worker-2 and so on. The first word may be left out
        where that is clear: `train node=worker-2`, and `train cpu=4` where no node has that name.

        Args:
            changes: what changes, all of it together. Without any, or with `"best"` as on the
                command line, single changes are tried: one empty node more, one node with twice
                the CPU or memory, a loop's limit one up or off, an image held by every node, a
                volume ReadWriteMany.

        Returns:
            `.makespan`, `.gain` and `.plan` after the changes; or the changes that make the run at
            least 1% shorter, the best first.

        Raises:
            UnknownStepError: a change of a step that the run does not have.
            RunError: a change that cannot be understood, or of what is not there.
            UsageError: a change that is not text; the plan was not made by `preview`.
        """
        prepared = self._prepared
        if prepared is None:
            raise UsageError("what_if is for a plan that preview(pipeline, cluster) has made")
        for change in changes:
            # Nobody has to guess at numbers, lists of changes and other values.
            if not isinstance(change, str):
                value = shown(reprlib.repr(change), _VALUE_CHARACTERS)
                raise UsageError(
                    "a change is text, such as what_if('+1 of worker'); got"
                    f" {value} ({type(change).__name__})"
                )
        with engine_errors():
            if changes in ((), ("best",)):
                return Suggestions.of(self.plan, prepared.best_changes(self.plan))
            asked = tuple(read_change(change) for change in changes)
            answer = prepared.what_if(self.plan, asked)
            same = answer.plan is self.plan
            changed = self if same else Preview(answer.plan, prepared.after(asked))
            return WhatIf(self.plan, answer, changed)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the plan to a file, whole or not at all.

        Args:
            path: `.html` makes a report for people; `.json`, `.yaml` and `.yml` the document for
                programs.

        Returns:
            The path written to.

        Raises:
            MarkValueError: another ending.
            RunError: the file cannot be written.
        """
        target = Path(path)
        write_whole(target, _rendered(self.plan, target))
        return target

    def to_dataframe(self) -> "DataFrame":
        """The steps as a pandas DataFrame, one row each, in the plan's order.

        Times are seconds since the submission of the run; what a step does not have is missing
        (NaN). The index is the step's name. Resources that it asks for beside CPU and memory are
        columns of their own, such as `nvidia.com/gpu`. A plan on past runs has columns for when
        steps start and end by them, and for what their run times rest on.

        Raises:
            MissingLibraryError: pandas is not installed.
        """
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise MissingLibraryError(
                "to_dataframe() needs pandas, which is not installed: `pip install pandas`"
            ) from error
        rows = [_row(step) | _promised_row(self.plan, step) for step in self.plan.steps]
        return DataFrame(rows).set_index("step")

    @override
    def __repr__(self) -> str:
        return f"<Preview {_summary(self.plan)}>"

    def _repr_html_(self) -> str:
        from kfp_placement_engine.render.html import html_fragment

        return html_fragment(plan_view(self.plan, NOTEBOOK))


def _row(step: PlannedStep) -> dict[str, object]:
    """A step as a row of a table; figures carry their unit in the name."""
    others = {name: amount for name, amount in step.requests.items() if name not in _ROOM}
    return {
        "step": step.name,
        "task": step.spec.task,
        "display_name": step.spec.display_name,
        "type": step.spec.type,
        "location": step.spec.location,
        "kind": str(step.spec.kind),
        "node": step.node,
        "start_seconds": _number(step.start_seconds),
        "finish_seconds": _number(step.finish_seconds),
        "run_seconds": _number(step.phases.duration_seconds),
        "run_time_source": str(step.run_time.source),
        "image_pull_seconds": _number(step.phases.image_pull_seconds),
        "transfer_seconds": _number(step.phases.transfer_seconds),
        "round_trip_milliseconds": _number(step.latency_ms),
        "cpu_cores": step.requests.get("cpu", 0) / 1000,
        "memory_bytes": step.requests.get("memory", 0),
        "image": step.spec.image,
        "conditional": step.spec.is_conditional,
        "cached": step.is_cached,
        "reason": step.explanation.sentence,
        **others,
    }


def _promised_row(plan: Plan, step: PlannedStep) -> dict[str, object]:
    """What past runs tell, where somebody asked."""
    if plan.promise is None:
        return {}
    as_shown, row = previewed(plan, step), dict[str, object]()
    for name, times in (("starts", as_shown.starts), ("ends", as_shown.ends)):
        for part in ("low", "typical", "high"):
            row[f"{name}_{part}_seconds"] = math.nan if times is None else getattr(times, part)
    return {**row, "run_time_basis": as_shown.basis}


def _number(value: float | None) -> float:
    """A figure; NaN where there is none, so that the column stays one of numbers."""
    return math.nan if value is None else float(value)


def _summary(plan: Plan) -> str:
    steps = counted(len(plan.steps), "step")
    nodes = counted(len(plan.cluster.nodes), "node")
    found = search_verdict(plan)
    warnings = counted(len(plan.notices), "warning") if plan.notices else ""
    learned = visible(promises.headline(plan)).removesuffix(".")
    learned = f"{learned[:1].lower()}{learned[1:]}"
    parts = [headline(plan).removesuffix("."), learned, found, warnings, "see .explain(step)"]
    return f"{shown(plan.run.name, 80)}, {steps} on {nodes}: {'; '.join(filter(None, parts))}"


def _explanation(plan: Plan, step: PlannedStep, cause: PlannedStep | None) -> str:
    name = visible(title(step))
    if step.node is None:
        return f"{name} goes nowhere: {visible(step.explanation.sentence)}"
    start, end = duration(step.start_seconds), duration(step.finish_seconds)
    stuck = f"; but it comes {visible(waits(cause))}" if cause is not None else ""
    where = f"{name} goes to {visible(step.node)}, {start} to {end}"
    return f"{where}: {visible(why(step))}{stuck}{_past(plan, step)}"


def _past(plan: Plan, step: PlannedStep) -> str:
    """What the run time rests on, and when the step starts and ends by past runs."""
    if plan.promise is None:
        return ""
    rests = f". Its run time rests on: {visible(promises.basis(step))}"
    start, end = promises.start_and_end(plan, step)
    return f"{rests}; starts after {start}, ends after {end}" if start and end else rests


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
