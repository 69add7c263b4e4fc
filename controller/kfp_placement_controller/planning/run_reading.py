"""A run's graph, read within limits; loops get the widths that are known by now."""

from collections.abc import Mapping
from dataclasses import replace

from kfp_placement_controller.sources.source import ObservedRun
from kfp_placement_engine.exceptions import UnknownLoopError
from kfp_placement_engine.model.run_graph import GroupKind, RunGraph
from kfp_placement_engine.readers.options import ReadOptions
from kfp_placement_engine.readers.run_outcomes import RunOutcome, loop_indexes

MAX_STEPS = 10_000
"""More have no room in a PipelinePlacement of 1 MB, whatever is left out."""


def read_graph(
    run: ObservedRun, default_width: int, widths: Mapping[str, int] | None = None
) -> RunGraph:
    """Read a run.

    Args:
        run: as observed.
        default_width: iterations of loops that nobody knows.
        widths: of loops, as far as they are known by now.

    Raises:
        InputError: malformed, or beyond a limit.
    """
    options = ReadOptions(
        loop_widths=dict(widths or {}), default_loop_width=default_width, max_steps=MAX_STEPS
    )
    try:
        return run.content.graph(options)
    except UnknownLoopError:
        # A pod can claim to be of a loop that the run does not have.
        return run.content.graph(replace(options, loop_widths={}))


def graph_widths(graph: RunGraph) -> Mapping[str, int]:
    """Iterations of every loop in a graph."""
    widths = {group.name: group.width for group in graph.groups if group.kind is GroupKind.LOOP}
    if widths:
        return widths
    counted: dict[str, int] = {}
    for step in graph.steps:
        for loop, index in loop_indexes(step.name, step.iteration):
            counted[loop] = max(counted.get(loop, 0), index + 1)
    return counted


def new_widths(
    graph: RunGraph, known: Mapping[str, int], outcome: RunOutcome
) -> Mapping[str, int] | None:
    """All known widths if the graph has to be read again because of them, else None.

    Args:
        graph: as it is planned.
        known: widths that it was read with.
        outcome: what the run's object says now.
    """
    planned = graph_widths(graph)
    found = dict(known)
    for loop, width in outcome.widths.items():
        if planned.get(loop, width) != width:
            found[loop] = width
    for loop, seen in outcome.seen.items():
        if seen > planned.get(loop, seen):
            found[loop] = seen
    return found if found != known else None
