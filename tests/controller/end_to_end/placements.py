"""What a run's placement, and events, say of its steps."""

from collections.abc import Mapping

from kfp_placement_engine.contract.rows import StateRow
from tests.controller.end_to_end.teams import Team
from tests.controlplane.waiting import wait_until
from tests.support.placements import planned_nodes


def nodes_planned_for(team: Team, run: str) -> Mapping[str, str]:
    """Where the steps of a run that is planned go."""
    placement = team.placement(run)
    assert placement is not None
    return planned_nodes(placement)


def actual_node(team: Team, run: str, name: str) -> str | None:
    """Where a step runs, as its placement says."""
    placement = team.placement(run)
    row = state_of(team, run, name)
    return None if placement is None or row is None else placement.node_name(row.node)


def state_of(team: Team, run: str, name: str) -> StateRow | None:
    """What the placement says of a step."""
    placement = team.placement(run)
    if placement is None or placement.status is None:
        return None
    if placement.status.revision != placement.spec.revision:
        return None  # it speaks of the plan before
    rows = zip(placement.planned_rows().rows, placement.state_rows().rows, strict=True)
    return next((state for planned, state in rows if planned and planned.name == name), None)


def why_deviating(team: Team) -> list[str]:
    """What events say of pods that are not where they were planned."""
    events = team.api.list("events.k8s.io/v1", "Event", team.name)
    return [event["note"] for event in events if event.get("reason") == "PlacedElsewhere"]


def wait_until_success_is_shown(team: Team, run: str) -> None:
    """Wait until the placement of a run that has succeeded says so."""
    wait_until(lambda: phase(team, run) == "Succeeded", f"{run} to succeed")


def phase(team: Team, run: str) -> str | None:
    """What the placement says of the run."""
    placement = team.placement(run)
    return None if placement is None or placement.status is None else placement.status.phase
