"""Requests of memory beside what past runs used."""

from collections.abc import Iterator

from kfp_placement.check.findings import Finding, Level
from kfp_placement.check.marks import container_tasks
from kfp_placement_engine.contract.memory_texts import memory_quantity
from kfp_placement_engine.history import Past
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.planning.memory_advice import advice_on


def memory_off(run: RunGraph, past: Past) -> Iterator[Finding]:
    """Steps that ask for far more memory than they used, and those that were killed for it."""
    if past.memory is None:
        return
    for step in container_tasks(run):
        advice = advice_on(run.name, step, past.memory)
        if advice is None:
            continue
        yield Finding(
            Level.WARNING if advice.was_killed else Level.NOTE,
            "memory-killed" if advice.was_killed else "memory-large",
            f'{advice.text}: write "{memory_quantity(advice.amount_bytes)}"'
            if advice.was_killed
            else f'{advice.text}, written "{memory_quantity(advice.amount_bytes)}"',
            step.task,
        )
