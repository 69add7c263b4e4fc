"""Widths of loops that past runs had, where the run's file does not tell them."""

from collections.abc import Mapping

from kfp_placement_engine.history import Past
from kfp_placement_engine.model.history import LearnedWidth
from kfp_placement_engine.model.run_graph import RunGraph


def learned_widths(graph: RunGraph, past: Past) -> Mapping[str, LearnedWidth]:
    """What past runs tell of a run's loops, by their paths; empty where none is assumed.

    Args:
        graph: as it was read without.
        past: of its namespace.
    """
    # A loop without a step in it needs no width.
    if not any(step.assumed for step in graph.steps):
        return {}
    return past.courses.widths(graph.name)
