"""How a step asks for a scheduler: a mark on its pod, since KFP has no setter for the real field.

The cluster turns the mark into `schedulerName` when the pod is created. Without a mark the step
stays with the cluster's default scheduler, unless its namespace lets all steps count as marked: so
whoever asks for the default scheduler says that by a label of its own.
"""

from kfp import dsl

from kfp_placement import _task_metadata
from kfp_placement._task_metadata import labels_of, remember, remembered
from kfp_placement_engine.contract.keys import (
    DEFAULT_SCHEDULER,
    KUBERNETES_SCHEDULER,
    SCHEDULER_LABEL,
    UNPLANNED_LABEL,
)

_ASKED = "scheduler asked for"


def decided(task: dsl.PipelineTask) -> bool:
    """Whether somebody has said which scheduler the step uses, Kubernetes' own included."""
    labels = labels_of(task)
    is_said = SCHEDULER_LABEL in labels or UNPLANNED_LABEL in labels
    return is_said or remembered(task, _ASKED) is not None


def labels_for(scheduler: str | None) -> dict[str, str]:
    """What labels of the same keys must not contradict, if the step asks for a scheduler.

    Args:
        scheduler: its name; None = it does not ask for one.
    """
    if scheduler is None:
        return {}
    unplanned = "true" if scheduler == KUBERNETES_SCHEDULER else "false"
    return {SCHEDULER_LABEL: scheduler, UNPLANNED_LABEL: unplanned}


def mark(task: dsl.PipelineTask, scheduler: str | None) -> None:
    """Mark the step for `scheduler`.

    Args:
        task: the step.
        scheduler: its name; `default-scheduler` takes the mark off and says that none is wanted;
            None leaves what was decided before, else asks for ours.
    """
    if scheduler is None:
        if decided(task):
            return
        scheduler = DEFAULT_SCHEDULER
    remember(task, _ASKED, scheduler)
    if scheduler == KUBERNETES_SCHEDULER:
        _task_metadata.remove_label(task, SCHEDULER_LABEL)
        # Not as a value of the mark: its presence alone is one to readers of an earlier version.
        _task_metadata.set_label(task, UNPLANNED_LABEL, "true")
    else:
        _task_metadata.remove_label(task, UNPLANNED_LABEL)
        _task_metadata.set_label(task, SCHEDULER_LABEL, scheduler)
