"""Runs as their outline shows them: without requests, images and components."""

from dataclasses import replace

from kfp_placement_engine.model.run_graph import RunGraph, StepKind


def outline_of(graph: RunGraph) -> RunGraph:
    """The outline of a run; only containers lose what they request.

    The texts of conditions, which tell branches apart, are in the package.
    """
    steps = tuple(
        replace(step, requests={}, image="", component="", unknown_resources=(), branches=())
        if step.kind is StepKind.CONTAINER
        else replace(step, branches=())
        for step in graph.steps
    )
    return replace(graph, steps=steps, is_outline=True)
