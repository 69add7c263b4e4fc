"""Short names of steps, and what is said of a step in a table, a drawing or a sentence."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.run_graph import StepKind
from kfp_placement_engine.model.step_names import CONTROL_FLOW
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.planned_step import PlannedStep
from kfp_placement_engine.views.formatting import duration, noticeable
from kfp_placement_engine.views.plans import promises

_NUMBERED = re.compile(r"[-_](?:ID)?\d+")
_LONGEST = 200


def display_name(step: PlannedStep) -> str:
    """Return the name that the author gave the task, "" where that says no more than the task's id.

    The ids of `train-2` and `train_ID0000002` are made from the name `train`.
    """
    own = step.spec.task.rpartition(".")[2].removesuffix("[*]")
    rest = own.removeprefix(step.spec.display_name)
    made_of_it = rest != own and (not rest or _NUMBERED.fullmatch(rest))
    return "" if made_of_it else step.spec.display_name


def title(step: PlannedStep) -> str:
    """Return the author's name of a step and its full name: `xgboost (train-7)`."""
    shown_name = display_name(step)
    return f"{shown_name} ({step.name})" if shown_name else step.name


def short_name(step: PlannedStep) -> str:
    """Return the author's name of a step, else its name without groups: `work-2 [0,1]`.

    KFP names those itself (`condition-4`, `for-loop-1`); nested, they fill any bar with words that
    say nothing, and the indexes that tell iterations apart would be cut out.
    """
    return _short(step, step.name, step.spec.iteration)


def short_task(step: PlannedStep) -> str:
    """Return the short name of all iterations of a step: `work-2 [*]`."""
    return _short(step, step.spec.task, ("*",) * step.spec.task.count("[*]"))


def names_in_sentences(steps: Sequence[PlannedStep]) -> dict[str, str]:
    """Return a name for each step in sentences: the author's, if no other step has it.

    The table shows the author's name too; a step without one has its own, whole.
    """
    names = {step.name: short_name(step) if display_name(step) else step.name for step in steps}
    counts = Counter(names.values())
    return {
        step.name: names[step.name] if counts[names[step.name]] == 1 else title(step)
        for step in steps
    }


def distinct_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels by their subjects, which follows where several have the same.

    Two tasks may have one display name, and tasks of one name may be in several groups.
    """
    counts = Counter(labels.values())
    return {
        key: f"{label} ({key})" if counts[label] > 1 else label for key, label in labels.items()
    }


def waits(cause: PlannedStep | None) -> str:
    """Describe what a step waits for without end: `after crunch-2, which gets no node`."""
    return "" if cause is None else f"after {short_name(cause)}, which gets no node"


def is_missing(step: PlannedStep) -> bool:
    """Return whether a step needs a node and has none."""
    return step.node is None and step.needs_node


def marks(steps: Iterable[PlannedStep]) -> list[str]:
    """Return the marks of drawings that hold for all steps: `conditional`, `assumed`."""
    specs = [step.spec for step in steps]
    marked = {
        "conditional": all(spec.is_conditional for spec in specs),
        "assumed": all(spec.assumed for spec in specs),
    }
    return [mark for mark, holds in marked.items() if holds]


def step_title(plan: Plan, step: PlannedStep, cause: PlannedStep | None = None) -> str:
    """Return all details of a step in a sentence, for drawings."""
    words = ", ".join(remarks(step, cause, speed=True))
    phases = {
        "image pull": step.phases.image_pull_seconds,
        "transfers": step.phases.transfer_seconds,
    }
    texts = [f"{name} {duration(each)}" for name, each in phases.items() if noticeable(each)]
    when = f": {promises.span(plan, step)}; {', '.join([*texts, f'run {run_time(step)}'])}"
    return (
        f"{step.name} on {where(step)}{f' ({words})' if words else ''}"
        f"{when if step.node is not None else ''}. {step.explanation.sentence}"
    )


def where(step: PlannedStep) -> str:
    """Return the node of a step, or words if it has none."""
    words = "no node" if step.needs_node else "from cache" if step.is_cached else "no pod"
    return step.node or words


def run_time(step: PlannedStep) -> str:
    """Format the run time of a step on its node; `~` marks one that was assumed, or is a guess."""
    mark = "~" if step.run_time.is_guess and step.spec.kind.has_pod else ""
    return mark + duration(step.phases.duration_seconds)


def remarks(step: PlannedStep, cause: PlannedStep | None, *, speed: bool) -> list[str]:
    """Return special properties of a step, in a word or two each.

    Args:
        step: the step.
        cause: step without a node that it waits for; None = it can start.
        speed: whether to name the speed of a slow or fast node.
    """
    is_conditional = step.spec.is_conditional and not step.spec.after_failure
    branch = step.spec.branches[-1].name if step.spec.branches and is_conditional else ""
    # What only excludes the same as a branch is not inside of it.
    follows = any(f".{branch}." in f".{name}." for name in step.spec.depends_on)
    named = ", ".join(step.spec.inside)
    flags = {
        waits(cause): cause is not None,
        "only after a failure": step.spec.after_failure,
        "conditional": is_conditional,
        f"branch {branch}": not named and bool(branch) and follows,
        f"in {named}": bool(named),
        "assumed": step.spec.assumed,
        "assumed cached": step.is_cached,
        str(step.spec.kind): step.spec.kind is not StepKind.CONTAINER,
        f"node speed {step.run_time.node_speed:.3g}": speed and reference_seconds(step) is not None,
    }
    return [words for words, holds in flags.items() if holds]


def why(step: PlannedStep) -> str:
    """Return the reason of a step and, on a slow or fast node, the effect on its run time."""
    reference = reference_seconds(step)
    if reference is None:
        return step.explanation.sentence
    return (
        f"{step.explanation.sentence}; runs {run_time(step)} here, {duration(reference)} on a"
        f" node of speed 1: this node's speed is {step.run_time.node_speed:.3g}"
    )


def reference_seconds(step: PlannedStep) -> float | None:
    """Return the run time on a node of speed 1, or None if the step's node has that speed."""
    scales = step.spec.kind is StepKind.CONTAINER and step.progress is ProgressState.WAITING
    if step.node is None or not scales or math.isclose(step.run_time.node_speed, 1.0):
        return None
    seconds = step.phases.duration_seconds * step.run_time.node_speed
    return seconds if noticeable(seconds) else None


def _short(step: PlannedStep, name: str, indexes: tuple[object, ...]) -> str:
    short = display_name(step)
    if not short:
        parts = [part for part in name.split(".") if not CONTROL_FLOW.fullmatch(part)]
        if not parts or len(name) > _LONGEST:
            return name
        short = ".".join(parts)
        # Indexes still in the name: no iteration of a loop that KFP named.
        if short == name:
            return name
    return f"{short} [{','.join(map(str, indexes))}]" if indexes else short
