"""Runs as their outline shows them: without requests, images and components, and all branches."""

from dataclasses import replace

from kfp_placement_engine.model.run_graph import GroupKind, RunGraph, StepKind


def outline_of(graph: RunGraph) -> RunGraph:
    """The outline of a run; only containers lose what they request.

    The texts of conditions, which tell branches apart, are in the package.
    """
    steps = tuple(
        replace(
            step,
            requests={},
            containers=(),
            image="",
            component="",
            unknown_resources=(),
            branches=(),
        )
        if step.kind is StepKind.CONTAINER
        else replace(step, branches=())
        for step in graph.steps
    )
    return replace(graph, steps=steps, is_outline=True)


def branches_not_taken(graph: RunGraph) -> tuple[str, ...]:
    """Groups of a run of which only the driver runs, as their conditions are false."""
    inside = [step.name for step in graph.steps] + [group.name for group in graph.groups]
    return tuple(
        group.name
        for group in graph.groups
        if group.kind is GroupKind.DAG
        and group.name
        and not any(name.startswith(f"{group.name}.") for name in inside)
    )
