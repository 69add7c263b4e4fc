"""How a step asks for a scheduler: a mark on its pod, since KFP has no setter for the real field.

The cluster turns the mark into `schedulerName` when the pod is created. No mark: the step stays
with the cluster's default scheduler.
"""

from kfp import dsl

from kfp_placement import _task_metadata
from kfp_placement._task_metadata import labels_of, remember, remembered
from kfp_placement_engine.contract.keys import (
    DEFAULT_SCHEDULER,
    KUBERNETES_SCHEDULER,
    SCHEDULER_LABEL,
)

_ASKED = "scheduler asked for"


def decided(task: dsl.PipelineTask) -> bool:
    """Whether somebody has said which scheduler the step uses, Kubernetes' own included."""
    return SCHEDULER_LABEL in labels_of(task) or remembered(task, _ASKED) is not None


def mark(task: dsl.PipelineTask, scheduler: str | None) -> None:
    """Mark the step for `scheduler`.

    Args:
        task: the step.
        scheduler: its name; `default-scheduler` takes the mark off and keeps it off; None leaves
            what was decided before, else asks for ours.
    """
    if scheduler is None:
        if decided(task):
            return
        scheduler = DEFAULT_SCHEDULER
    remember(task, _ASKED, scheduler)
    if scheduler == KUBERNETES_SCHEDULER:
        _task_metadata.remove_label(task, SCHEDULER_LABEL)
    else:
        _task_metadata.set_label(task, SCHEDULER_LABEL, scheduler)
