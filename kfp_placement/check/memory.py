"""Requests of memory beside what past runs used."""

from collections.abc import Iterator

from kfp_placement.check.findings import Finding, Level
from kfp_placement.check.marks import container_tasks
from kfp_placement_engine.contract.memory_texts import memory_quantity, memory_text
from kfp_placement_engine.history import Past
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.planning.memory_advice import MemoryProblem, advice_on


def memory_off(run: RunGraph, past: Past) -> Iterator[Finding]:
    """Steps that ask for far more memory than they used, or less, or were killed for it."""
    if past.memory is None:
        return
    for step in container_tasks(run):
        advice = advice_on(run.name, step, past.memory)
        if advice is None:
            continue
        yield Finding(
            Level.NOTE if advice.problem is MemoryProblem.LARGE else Level.WARNING,
            f"memory-{advice.problem}",
            f"{advice.text}{_written(advice.amount_bytes)}",
            step.task,
        )


def _written(amount_bytes: int) -> str:
    """How KFP takes an amount, if that is not how the advice says it: `, written "1536Mi"`."""
    written = memory_quantity(amount_bytes)
    return "" if written == memory_text(amount_bytes) else f', written "{written}"'
