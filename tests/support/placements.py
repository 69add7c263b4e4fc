"""Questions of tests to a PipelinePlacement."""

from collections.abc import Mapping

from kfp_placement_engine.contract.placement import PipelinePlacement


def step_states(placement: PipelinePlacement) -> Mapping[str, str]:
    """The state of every step, by the step's name."""
    rows = zip(placement.planned_rows().rows, placement.state_rows().rows, strict=True)
    return {plan.name: state.state for plan, state in rows if plan and state}


def planned_nodes(placement: PipelinePlacement) -> Mapping[str, str]:
    """The node of every step that has one, by the step's name."""
    return {
        row.name: placement.spec.nodes[row.node]
        for row in placement.planned_rows().rows
        if row is not None and row.node is not None
    }
