"""Mark with which a step asks for a scheduler: a pod label, as KFP cannot set `schedulerName`.

The cluster turns the mark into `schedulerName` when the pod is created. Without a mark the step
stays with the cluster's default scheduler, unless all steps of its namespace count as marked. So a
step that asks for the default scheduler has another label, which says so.
"""

from kfp import dsl

from kfp_placement._task_metadata import labels_of, remember, remembered, remove_label, set_label
from kfp_placement_engine.contract.keys import (
    DEFAULT_SCHEDULER,
    KUBERNETES_SCHEDULER,
    SCHEDULER_LABEL,
    UNPLANNED_LABEL,
)

_SCHEDULER = "scheduler"
"""Key under which the scheduler that a step asks for is remembered."""


def decided(task: dsl.PipelineTask) -> bool:
    """Return whether a scheduler was chosen for the step, which may be Kubernetes' own."""
    labels = labels_of(task)
    has_label = SCHEDULER_LABEL in labels or labels.get(UNPLANNED_LABEL) == "true"
    return has_label or remembered(task, _SCHEDULER) is not None


def labels_for(scheduler: str | None) -> dict[str, str]:
    """Return labels that the author's labels must not contradict if a step asks for a scheduler.

    Args:
        scheduler: name of the scheduler; None if the step does not ask for one.
    """
    if scheduler is None:
        return {}
    unplanned = "true" if scheduler == KUBERNETES_SCHEDULER else "false"
    return {SCHEDULER_LABEL: scheduler, UNPLANNED_LABEL: unplanned}


def mark(task: dsl.PipelineTask, scheduler: str | None) -> None:
    """Mark the step for `scheduler`.

    Args:
        task: step to mark.
        scheduler: name of the scheduler; `default-scheduler` removes the mark and sets the label
            for steps without one; None keeps an earlier choice, else asks for our scheduler.
    """
    if scheduler is None:
        if decided(task):
            return
        scheduler = DEFAULT_SCHEDULER
    remember(task, _SCHEDULER, scheduler)
    if scheduler == KUBERNETES_SCHEDULER:
        remove_label(task, SCHEDULER_LABEL)
        # Not as a value of the mark: for readers of an earlier version any value is a mark.
        set_label(task, UNPLANNED_LABEL, "true")
    else:
        remove_label(task, UNPLANNED_LABEL)
        set_label(task, SCHEDULER_LABEL, scheduler)
