"""Runs that may use some nodes only, whatever their steps say of nodes themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kfp_placement_engine.model.run_graph import (
    NodeAffinity,
    NodeSelectorTerm,
    Requirement,
    RunGraph,
    Step,
)


def limited_to(graph: RunGraph, selectors: Sequence[Mapping[str, str]]) -> RunGraph:
    """The same run, of which each step may use only some nodes.

    Args:
        graph: of the run.
        selectors: labels; a node must have all labels of one of these. () = any node.
    """
    if not selectors:
        return graph
    terms = [
        NodeSelectorTerm(
            tuple(Requirement(key, "In", (value,)) for key, value in sorted(selector.items()))
        )
        for selector in selectors
    ]
    return replace(graph, steps=tuple(_limited(step, terms) for step in graph.steps))


def _limited(step: Step, terms: Sequence[NodeSelectorTerm]) -> Step:
    own = step.affinity.required
    required = tuple(
        replace(term, requirements=(*mine.requirements, *term.requirements))
        for mine in ((NodeSelectorTerm(),) if own is None else own)
        for term in terms
        # A term without requirements matches nothing: with others it must not match either.
        if own is None or mine.requirements
    )
    return replace(step, affinity=NodeAffinity(required, step.affinity.preferred))
