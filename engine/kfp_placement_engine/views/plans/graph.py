"""Graph of the steps of a plan, each with its node."""

from collections.abc import Mapping

from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.planned_step import PlannedStep
from kfp_placement_engine.views.drawings import Box, Graph
from kfp_placement_engine.views.formatting import counted
from kfp_placement_engine.views.plans.detail import Detail
from kfp_placement_engine.views.plans.step_texts import (
    distinct_labels,
    is_missing,
    marks,
    short_name,
    short_task,
    step_title,
    where,
)
from kfp_placement_engine.views.plans.steps import RowSteps, grouped, waiting_for


def plan_graph(plan: Plan, detail: Detail) -> Graph:
    """Return the graph; items of a long loop share a box, in a large run the steps of any task."""
    groups, notes = grouped(plan, detail.folded_above), []
    if len(groups) > detail.boxes:
        groups = grouped(plan, 1)
        notes.append(f"Of {len(plan.steps):,} steps, those of one task share a box.")
    elif len(groups) < len(plan.steps):
        notes.append(f"Loops of more than {detail.folded_above} items share a box.")
    key_of = {step.name: _key(group) for group in groups for step in group}
    waiting = waiting_for(plan)
    names = {
        _key(group): short_task(group[0]) if len(group) > 1 else short_name(group[0])
        for group in groups
    }
    labels = distinct_labels(names)
    is_summed_up = len(groups) > detail.boxes
    if is_summed_up:
        notes = [f"{len(plan.steps):,} steps are too many to draw one by one."]
    return Graph(
        name=f"Steps of {plan.run.name} and their nodes",
        boxes=[_box(plan, group, key_of, labels[_key(group)], waiting) for group in groups],
        is_summed_up=is_summed_up,
        notes=notes,
    )


def _key(group: RowSteps) -> str:
    return group[0].name if len(group) == 1 else group[0].spec.task


def _box(
    plan: Plan,
    steps: RowSteps,
    key_of: Mapping[str, str],
    label: str,
    waiting: Mapping[str, PlannedStep],
) -> Box:
    """Return the box of a step, or of all steps of a task."""
    places, first, key = list(dict.fromkeys(map(where, steps))), steps[0], _key(steps)
    before = [key_of[name] for step in steps for name in step.spec.depends_on if name in key_of]
    note = places[0] if len(places) == 1 else counted(len(places), "node")
    if len(steps) == 1:
        cause = waiting.get(first.name)
        details, note = step_title(plan, first, cause), note + " · never starts" * bool(cause)
    else:
        note = f"{len(steps):,} steps on {note}"
        details = f"{first.spec.task}: {note}"
    return Box(
        key=key,
        parents=[parent for parent in dict.fromkeys(before) if parent != key],
        label=label,
        note=note,
        details=details,
        place=(first.node or "") if len(places) == 1 else "",
        marks=marks(steps),
        is_missing=any(map(is_missing, steps)),
    )
