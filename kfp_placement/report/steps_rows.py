"""The rows of a table of steps: a single step, or once for all items of a loop."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from kfp_placement.report import summary
from kfp_placement.report.labels import display_name
from kfp_placement.report.values import counted, duration, latency
from kfp_placement.report.visible import visible
from kfp_placement_engine.model.plan import Plan, PlannedStep


@dataclass(frozen=True)
class StepGroup:
    """What one row is about.

    Attributes:
        task: the step as a whole, `for-loop-1[*].work`; of a single step its name.
        steps: the items of a loop in the plan's order, or the single step.
    """

    task: str
    steps: tuple[PlannedStep, ...]

    @property
    def is_folded(self) -> bool:
        """Whether it stands for several steps."""
        return len(self.steps) > 1

    @property
    def start_seconds(self) -> float | None:
        """When the first of them starts; None if none of them does."""
        starts = [step.start_seconds for step in self.steps if step.start_seconds is not None]
        return min(starts, default=None)

    @property
    def finish_seconds(self) -> float | None:
        """When the last of them ends; None if none of them does."""
        ends = [step.finish_seconds for step in self.steps if step.finish_seconds is not None]
        return max(ends, default=None)

    @property
    def nodes(self) -> Mapping[str, int]:
        """How many of them are on each node, most first."""
        placed = Counter(step.node for step in self.steps if step.node is not None)
        return dict(placed.most_common())


def grouped(plan: Plan, *, most: int = 1) -> list[StepGroup]:
    """The plan's steps in its order, loops of more than this many items folded.

    A folded loop is one group for each of its tasks, where the first item of that task is. Nested
    loops are folded together.

    Args:
        plan: the plan.
        most: items of a loop that are still shown one by one; 8 in a report.
    """
    items: dict[str, list[PlannedStep]] = {}
    for step in plan.steps:
        if step.iteration:
            items.setdefault(step.task, []).append(step)
    groups: dict[str, StepGroup] = {}
    for step in plan.steps:
        together = items.get(step.task, []) if step.iteration else []
        if len(together) <= max(most, 1):
            groups[f"step {step.name}"] = StepGroup(step.name, (step,))
        elif f"task {step.task}" not in groups:
            groups[f"task {step.task}"] = StepGroup(step.task, tuple(together))
    return list(groups.values())


def name_text(group: StepGroup) -> str:
    """The step's name; of a loop's items their task and number: `for-loop-1[*].work x 12`."""
    times = f" x {len(group.steps):,}" if group.is_folded else ""
    return visible(group.task) + times


def display_text(group: StepGroup) -> str:
    """The name that its author gave the task, or ""."""
    return visible(display_name(group.steps[0]))


def node_text(group: StepGroup, named: int = 2) -> str:
    """The node; of a loop's items `worker-1 x 4, worker-2 x 3`, or how many nodes there are.

    Args:
        group: the step, or the loop's items.
        named: nodes of a loop's items that are named; if there are more, they are counted.
    """
    if not group.is_folded:
        return visible(summary.where(group.steps[0]))
    nodes = group.nodes
    rest = Counter(summary.where(step) for step in group.steps if step.node is None)
    if len(nodes) + len(rest) == 1:
        return visible(next(iter(nodes or rest)))
    texts = [f"{visible(node)} x {count:,}" for node, count in nodes.items()]
    if len(nodes) > named:
        texts = [counted(len(nodes), "node")]
    return ", ".join([*texts, *(f"{words} x {count:,}" for words, count in rest.items())])


def run_text(group: StepGroup) -> str:
    """The run time; of a loop's items `5m each`, or a range."""
    if not group.is_folded:
        return summary.run_time(group.steps[0])
    texts = list(dict.fromkeys(summary.run_time(step) for step in group.steps))
    if len(texts) == 1:
        return f"{texts[0]} each"
    mark = "~" if any(text.startswith("~") for text in texts) else ""
    seconds = [step.duration_seconds for step in group.steps]
    return f"{mark}{duration(min(seconds))} to {duration(max(seconds))}"


def latency_text(group: StepGroup) -> str:
    """The round trip, or a range; "" where there is none."""
    known = [step.latency_ms for step in group.steps if step.latency_ms is not None]
    texts = dict.fromkeys(latency(each) for each in (min(known), max(known))) if known else ()
    return " to ".join(texts)


def remark_text(group: StepGroup, waiting: Mapping[str, PlannedStep]) -> str:
    """What is special about the step; what is true of some of a loop's items only is counted."""
    if not group.is_folded:
        return summary.remark(group.steps[0], waiting.get(group.steps[0].name))
    counts = Counter(
        words for step in group.steps for words in _item_remarks(step, waiting.get(step.name))
    )
    everywhere = len(group.steps)
    return ", ".join(
        words if count == everywhere else f"{count:,} of {everywhere:,} {words}"
        for words, count in counts.items()
    )


def _item_remarks(step: PlannedStep, cause: PlannedStep | None) -> list[str]:
    """What is special about an item, without times, which differ between items."""
    differs = summary.reference_seconds(step) is not None
    speed = [f"node speed {step.node_speed:.3g}"] if differs else []
    return summary.remarks(step, cause) + speed
