"""Facts from past runs that a run's file leaves open: widths of loops, and left-out steps."""

from collections.abc import Iterator, Mapping

from kfp_placement_engine.history import Past
from kfp_placement_engine.model.history import LearnedWidth
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import RunGraph, StepKind

_LEAST_IN_A_ROW = 3
"""Number of runs in a row without a step from which on a notice names the step."""


def learned_widths(graph: RunGraph, past: Past) -> Mapping[str, LearnedWidth]:
    """Return widths of a run's loops by their paths; empty where no width has to be assumed.

    Args:
        graph: run as it was read without learned widths.
        past: past runs of the run's namespace.
    """
    # A loop without a step in it does not need a width.
    if not any(step.assumed for step in graph.steps):
        return {}
    return past.widths(graph.name)


def left_out_notices(graph: RunGraph, past: Past) -> Iterator[Notice]:
    """Yield notices about steps that ran once, but not in the last runs.

    Such steps are planned anyway, since they may run.

    Args:
        graph: run that is planned.
        past: past runs of the run's namespace.
    """
    tasks = {step.task: step for step in graph.steps if step.kind is StepKind.CONTAINER}
    for task, step in tasks.items():
        runs = past.steps.runs_without(graph.name, task)
        if runs >= _LEAST_IN_A_ROW and not step.assumed_cached:
            yield Notice(
                "usually-left-out",
                f"did not run in the last {runs} runs: it came from the cache, or its branch was"
                " not taken; it is planned as it may run, and --assume-cached"
                f" {task} plans without it (assume_cached in Python)",
                task,
            )
