"""What past runs did where a run's file leaves it open: widths of loops, steps that do not run."""

from collections.abc import Iterator, Mapping

from kfp_placement_engine.history import Past
from kfp_placement_engine.model.history import LearnedWidth
from kfp_placement_engine.model.run_graph import Notice, RunGraph, StepKind

_LEAST_IN_A_ROW = 3
"""Runs in a row without a step, from which on it is named."""


def learned_widths(graph: RunGraph, past: Past) -> Mapping[str, LearnedWidth]:
    """What past runs tell of a run's loops, by their paths; empty where none is assumed.

    Args:
        graph: as it was read without.
        past: of its namespace.
    """
    # A loop without a step in it needs no width.
    if not any(step.assumed for step in graph.steps):
        return {}
    return past.widths(graph.name)


def left_out_notices(graph: RunGraph, past: Past) -> Iterator[Notice]:
    """Steps that ran once and not in the last runs; they are still planned, as they may run.

    Args:
        graph: the run.
        past: of its namespace.
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
