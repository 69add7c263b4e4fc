"""What waits for what in a plan, each step with its node."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from kfp_placement_engine.model.plan import Plan, PlannedStep
from kfp_placement_engine.views.drawings import Box, Graph
from kfp_placement_engine.views.formatting import counted
from kfp_placement_engine.views.plans.detail import Detail
from kfp_placement_engine.views.plans.step_labels import distinct_labels, short_name, short_task
from kfp_placement_engine.views.plans.steps import is_missing, marks, step_title, waiting_for, where


def plan_graph(plan: Plan, detail: Detail) -> Graph:
    """The graph; items of a long loop share a box, in a large run the steps of any task."""
    sizes = Counter(step.task for step in plan.steps)
    shared = {task for task, size in sizes.items() if size > detail.folded_above}
    notes = []
    if len(shared) + sum(size for task, size in sizes.items() if task not in shared) > detail.boxes:
        shared = set(sizes)
        notes.append(f"Of {len(plan.steps):,} steps, those of one task share a box.")
    elif shared:
        notes.append(f"Loops of more than {detail.folded_above} items share a box.")
    key_of = {step.name: step.task if step.task in shared else step.name for step in plan.steps}
    members: dict[str, list[PlannedStep]] = defaultdict(list)
    parents: dict[str, dict[str, None]] = {key: {} for key in key_of.values()}
    for step in plan.steps:
        key = key_of[step.name]
        members[key].append(step)
        before = (key_of[parent] for parent in step.depends_on if parent in key_of)
        parents[key].update((parent, None) for parent in before if parent != key)
    waiting = waiting_for(plan)
    boxes = {
        key: _task_box(key, steps)
        if len(steps) > 1
        else _step_box(plan, key, steps[0], waiting.get(steps[0].name))
        for key, steps in members.items()
    }
    labels = distinct_labels({key: box.label for key, box in boxes.items()})
    is_summed_up = len(boxes) > detail.boxes
    if is_summed_up:
        notes = [f"{len(plan.steps):,} steps are too many to draw one by one."]
    return Graph(
        name=f"Steps of {plan.run_name} and their nodes",
        boxes=[
            replace(box, parents=list(parents[key]), label=labels[key])
            for key, box in boxes.items()
        ],
        is_summed_up=is_summed_up,
        notes=notes,
    )


def _step_box(plan: Plan, key: str, step: PlannedStep, cause: PlannedStep | None) -> Box:
    return Box(
        key=key,
        parents=(),
        label=short_name(step),
        note=where(step) if cause is None else f"{where(step)} · never starts",
        title=step_title(plan, step, cause),
        place=step.node or "",
        marks=marks([step]),
        is_missing=is_missing(step),
    )


def _task_box(key: str, steps: Sequence[PlannedStep]) -> Box:
    nodes = Counter(map(where, steps))
    first = next(iter(nodes))
    note = f"{len(steps):,} steps on {first if len(nodes) == 1 else counted(len(nodes), 'node')}"
    return Box(
        key=key,
        parents=(),
        label=short_task(steps[0]),
        note=note,
        title=f"{steps[0].task}: {note}",
        place=first if len(nodes) == 1 else "",
        marks=marks(steps),
        is_missing=any(map(is_missing, steps)),
    )
