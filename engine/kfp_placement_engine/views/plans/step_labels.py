"""Short names of steps for sentences, bars and boxes; the table has the full names."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from kfp_placement_engine.plans.planned_step import PlannedStep

_CONTROL_FLOW = re.compile(
    r"(?:condition|condition-branches|exit-handler|for-loop)-\d+(?:\[(?:\d+|\*)\])?"
)
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


def told_names(steps: Sequence[PlannedStep]) -> dict[str, str]:
    """Return a name for each step in sentences: the author's, if no other step has it.

    The table shows the author's name too; a step without one has its own, whole.
    """
    told = {step.name: short_name(step) if display_name(step) else step.name for step in steps}
    counts = Counter(told.values())
    return {
        step.name: told[step.name] if counts[told[step.name]] == 1 else title(step)
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


def _short(step: PlannedStep, name: str, indexes: tuple[object, ...]) -> str:
    short = display_name(step)
    if not short:
        parts = [part for part in name.split(".") if not _CONTROL_FLOW.fullmatch(part)]
        if not parts or len(name) > _LONGEST:
            return name
        short = ".".join(parts)
        # Indexes still in the name: no iteration of a loop that KFP named.
        if short == name:
            return name
    return f"{short} [{','.join(map(str, indexes))}]" if indexes else short
