"""Location: a place that people name in the location label, and how far it is from nodes."""

from typing import Literal

from pydantic import Field

from kfp_placement_engine.contract.fields import (
    LabelValue,
    Milliseconds,
    Resource,
    ResourceModel,
    ResourceStatus,
)
from kfp_placement_engine.model.round_trips import LabelRoundTrip, StatedPlace

_LABEL_KEY = r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"


class StaticLatency(ResourceModel):
    """The round trip of all nodes with a label."""

    topology_key: str = Field(min_length=1, max_length=317, pattern=_LABEL_KEY)
    """Key of a node label, such as `topology.kubernetes.io/zone`."""

    value: LabelValue
    """Its value."""

    rtt_ms: Milliseconds
    """Round trip between such a node and the place."""


class LocationSpec(ResourceModel):
    """What people say of a place."""

    name: LabelValue | None = None
    """Name in the location label, in any case; without it, the object's name."""

    display_name: str | None = Field(default=None, max_length=256)
    """Name for people."""

    static: tuple[StaticLatency, ...] = Field(default=(), max_length=256)
    """Round trips by node label; the first entry that matches a node counts."""


class Location(Resource):
    """A place, cluster-wide; written by admins."""

    kind: Literal["Location"] = "Location"
    spec: LocationSpec
    status: ResourceStatus | None = None

    def stated(self) -> StatedPlace:
        """What it says of its place."""
        location = self.metadata.name or ""
        round_trips = tuple(
            LabelRoundTrip(each.topology_key, each.value, each.rtt_ms) for each in self.spec.static
        )
        return StatedPlace(self.spec.name or location, location, round_trips)
