"""Models of our custom resources, and the one way to read them.

The CRDs in `deploy` are the source; a test keeps these models equal to them. Fields are only
ever added, and those of a newer revision are skipped; rows of a PipelineHistory with more entries
than are known are refused.
"""

from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import Field, ValidationError

from kfp_placement_engine.contract.history.pipeline_history import PipelineHistory
from kfp_placement_engine.contract.placement import PipelinePlacement
from kfp_placement_engine.contract.policy import (
    PlacementPolicy,
    PlacementPolicySpec,
    PlacementPolicyStatus,
)
from kfp_placement_engine.contract.run_queue import RunQueue
from kfp_placement_engine.contract.run_request import RunRequest
from kfp_placement_engine.contract.shared_parts import (
    Condition,
    LabelValue,
    Milliseconds,
    ObjectMetadata,
    Resource,
    ResourceModel,
    ResourceStatus,
    readable_fields,
)
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.node_rules.round_trips import LabelRoundTrip, StatedPlace

__all__ = [
    "Condition",
    "Location",
    "ObjectMetadata",
    "PipelineHistory",
    "PipelinePlacement",
    "PlacementPolicy",
    "RunQueue",
    "RunRequest",
    "StoredPolicy",
    "read_resource",
    "read_stored_policy",
]

_WRONG, _OURS = "Input should", "Value error, "
"""Beginnings of messages: pydantic's for a wrong kind or size, and that of our own checks."""

_A_TIME = "be a time such as 2026-11-30T00:00:00Z"
_KINDS = {
    "datetime_parsing": _A_TIME,
    "datetime_from_date_parsing": _A_TIME,
    "datetime_type": _A_TIME,
    "model_type": "be an object",
    "model_attributes_type": "be an object",
    "dict_type": "be an object",
    "tuple_type": "be a list",
    "named_tuple_type": "be a list",
}
"""Descriptions of valid values in words of YAML, by pydantic's name of the problem."""

_NUMBERS = ("less_than", "greater_than", "finite_number", "int_", "float_")
"""Beginnings of pydantic's names of problems with numbers."""

_PLAIN = {
    "missing": "is missing",
    "missing_argument": "is missing",
    "timezone_aware": "has no time zone; write, for example, 2026-11-30T00:00:00Z",
}
"""Messages in place of pydantic's, by its name of the problem."""

_LABEL_KEY = r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"


class StaticLatency(ResourceModel):
    """The round trip of all nodes with a label."""

    topology_key: str = Field(min_length=1, max_length=317, pattern=_LABEL_KEY)
    """Key of a node label, such as `topology.kubernetes.io/zone`."""

    value: LabelValue
    """Value of the label."""

    rtt_ms: Milliseconds
    """Round trip between such a node and the place."""


class LocationSpec(ResourceModel):
    """Settings of a place."""

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
        """Return the place with its round trips, as the model knows it."""
        location = self.metadata.name or ""
        round_trips = tuple(
            LabelRoundTrip(each.topology_key, each.value, each.rtt_ms) for each in self.spec.static
        )
        return StatedPlace(self.spec.name or location, location, round_trips)


ResourceT = TypeVar("ResourceT", bound=Resource)


def read_resource(kind: type[ResourceT], parsed: object) -> ResourceT:
    """Read an object of the API.

    Args:
        kind: expected kind.
        parsed: the object, as parsed from JSON or YAML.

    Raises:
        InputError: it is not one, or is malformed; the message names the first field in question.
    """
    if not isinstance(parsed, dict):
        raise InputError(f"{kind.__name__} must be an object, not {type(parsed).__name__}")
    try:
        return kind.model_validate(parsed)
    except ValidationError as error:
        raise InputError(f"{_named(kind, parsed)}: {_first_problem(error)}") from error


class StoredPolicy(NamedTuple):
    """The PlacementPolicy of a cluster, as far as it is used.

    Attributes:
        policy: the policy; what is not used has its default.
        problem: reason why a part of it is not used; "" = all of it is.
    """

    policy: PlacementPolicy
    problem: str = ""


def read_stored_policy(stored: dict[str, Any]) -> StoredPolicy:
    """Read the PlacementPolicy of a cluster, even if a part of its spec or status is malformed.

    An older version of the kind may have let that in. Without the other parts a pause would end.

    Raises:
        InputError: not even its metadata can be read.
    """
    try:
        policy = read_resource(PlacementPolicy, stored)
    except InputError as error:
        readable = {
            "spec": readable_fields(PlacementPolicySpec, stored.get("spec")),
            "status": readable_fields(PlacementPolicyStatus, stored.get("status")),
        }
        return StoredPolicy(read_resource(PlacementPolicy, stored | readable), str(error))
    return StoredPolicy(policy, policy.spec.history.problem)


def _named(kind: type[Resource], parsed: dict[object, object]) -> str:
    metadata = parsed.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{kind.__name__} {name!r:.80}" if isinstance(name, str) else kind.__name__


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = ".".join(f"{part!s:.80}" for part in first["loc"])
    others = error.error_count() - 1
    more = f" (and {others} more problem{'s' if others > 1 else ''})" if others else ""
    words = _PLAIN.get(first["type"], first["msg"].removeprefix(_OURS))
    if first["type"] == "too_long":
        limits = first["ctx"]
        words = (
            f"has {limits['actual_length']:,} entries, and at most {limits['max_length']:,} are"
            " read; leave the others out"
        )
    if words.startswith(_WRONG):
        wanted = _KINDS.get(first["type"], words.removeprefix(_WRONG).strip())
        # NaN is not even equal to itself.
        if first["input"] != first["input"] and first["type"].startswith(_NUMBERS):
            wanted = "be a number"
        words = f"must {wanted}, not {_shown(first['input'])}"
    return f"{place}: {words}{more}"


def _shown(value: object) -> str:
    """Return the beginning of a value, whatever it is."""
    try:
        return f"{value!r:.60}"
    except (ValueError, RecursionError):
        return "a number that is too long, or too many lists in each other"
