"""Locations and the PlacementPolicy of a dump -> latencies, and the policy in force."""

from collections.abc import Iterable

from kfp_placement_engine.contract.policy import POLICY_NAME, planning_policy
from kfp_placement_engine.contract.resources import Location, PlacementPolicy, read_resource
from kfp_placement_engine.model.policy import PlanningPolicy
from kfp_placement_engine.model.round_trips import Latencies, StatedPlace
from kfp_placement_engine.model.run_graph import Notice
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.readers.text.fields import Fields

_NAMED = 5
"""Nodes that a notice names."""


def read_location(raw: Fields) -> StatedPlace:
    """Read a Location.

    Raises:
        InputError: it is malformed; the message names the first field in question.
    """
    return read_resource(Location, raw.raw).stated()


def read_policy(raw: Fields) -> PlacementPolicy:
    """Read a PlacementPolicy.

    Raises:
        InputError: it is malformed; the message names the first field in question.
    """
    return read_resource(PlacementPolicy, raw.raw)


def hidden_label_notices(by_label: Latencies, with_all: Latencies) -> list[Notice]:
    """Say where a Location hides round trips that only labels state: their nodes then have none.

    Args:
        by_label: what node labels say.
        with_all: the same with Locations, as `with_places` gives it.
    """
    known = {name.lower(): (name, trips) for name, trips in with_all.items()}
    notices = []
    for label, by_node in by_label.items():
        name, trips = known[label.lower()]
        hidden = [node for node in by_node if node not in trips]
        if hidden:
            message = (
                f"Location {name} says nothing of nodes with the label {label}"
                f" ({listed(hidden, _NAMED)}), so the label is not used there and the round trip"
                " counts as unknown; add an entry to the Location"
            )
            notices.append(Notice("hidden-node-label", message))
    return notices


def policy_in_force(policies: Iterable[PlacementPolicy]) -> PlanningPolicy | None:
    """What the policy that counts says of plans; one of another name does not count."""
    named = (policy.spec for policy in policies if policy.metadata.name == POLICY_NAME)
    in_force = next(named, None)
    return None if in_force is None else planning_policy(in_force)
