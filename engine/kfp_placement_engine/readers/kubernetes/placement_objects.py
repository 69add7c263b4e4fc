"""A reader of Locations and of the PlacementPolicy in a dump."""

from collections.abc import Iterable

from kfp_placement_engine.contract.custom_resources import Location, PlacementPolicy, read_resource
from kfp_placement_engine.contract.planned_policy import planning_policy
from kfp_placement_engine.contract.policy import POLICY_NAME
from kfp_placement_engine.model.node_rules.round_trips import Latencies, StatedPlace
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.policy import PlanningPolicy
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.readers.text.fields import Fields

_NAMED = 5
"""Largest number of nodes that a notice names."""


def read_location(raw: Fields) -> StatedPlace:
    """Read a Location.

    Raises:
        InputError: the object is malformed; the message names the first bad field.
    """
    return read_resource(Location, raw.raw).stated()


def read_policy(raw: Fields) -> PlacementPolicy:
    """Read a PlacementPolicy.

    Raises:
        InputError: the object is malformed; the message names the first bad field.
    """
    return read_resource(PlacementPolicy, raw.raw)


def hidden_label_notices(by_label: Latencies, with_all: Latencies) -> list[Notice]:
    """Return notices about Locations that hide round trips which only labels of nodes state.

    Args:
        by_label: round trips by the labels of nodes.
        with_all: round trips with those of Locations, as `with_places` returns them.
    """
    by_lower_name = {name.lower(): (name, trips) for name, trips in with_all.items()}
    notices = []
    for label, by_node in by_label.items():
        name, trips = by_lower_name[label.lower()]
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
    """Return the settings for plans of the policy `default`, or None without that policy."""
    named = (policy.spec for policy in policies if policy.metadata.name == POLICY_NAME)
    in_force = next(named, None)
    return None if in_force is None else planning_policy(in_force)
