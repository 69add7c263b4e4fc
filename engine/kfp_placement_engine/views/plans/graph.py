"""What waits for what in a plan, each step with its node."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

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
    names = {
        key: short_task(each[0]) if len(each) > 1 else short_name(each[0])
        for key, each in members.items()
    }
    labels = distinct_labels(names)
    is_summed_up = len(members) > detail.boxes
    if is_summed_up:
        notes = [f"{len(plan.steps):,} steps are too many to draw one by one."]
    return Graph(
        name=f"Steps of {plan.run_name} and their nodes",
        boxes=[
            _box(plan, key, each, parents[key], labels[key], waiting)
            for key, each in members.items()
        ],
        is_summed_up=is_summed_up,
        notes=notes,
    )


def _box(
    plan: Plan,
    key: str,
    steps: Sequence[PlannedStep],
    parents: Iterable[str],
    label: str,
    waiting: Mapping[str, PlannedStep],
) -> Box:
    """The box of a step, or of the steps of a task together."""
    places, first = list(Counter(map(where, steps))), steps[0]
    note = places[0] if len(places) == 1 else counted(len(places), "node")
    if len(steps) == 1:
        cause = waiting.get(first.name)
        title, note = step_title(plan, first, cause), note + " · never starts" * bool(cause)
    else:
        note = f"{len(steps):,} steps on {note}"
        title = f"{first.task}: {note}"
    return Box(
        key=key,
        parents=list(parents),
        label=label,
        note=note,
        title=title,
        place=(first.node or "") if len(places) == 1 else "",
        marks=marks(steps),
        is_missing=any(map(is_missing, steps)),
    )
