"""The form of a Cluster file: `kind: Cluster`, nodes in a few lines each, for people to write.

What stands in it becomes canonical numbers here; `cluster_file` makes a `Cluster` of it.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.cluster import Taint
from kfp_placement_engine.model.durations import parse_duration, parse_latency_ms
from kfp_placement_engine.model.quantities import (
    parse_cpu,
    parse_quantity,
    parse_resources,
)
from kfp_placement_engine.readers.fields import Fields
from kfp_placement_engine.readers.kubernetes.constraints import read_terms
from kfp_placement_engine.readers.kubernetes.nodes import EFFECTS, read_rate, read_speed
from kfp_placement_engine.readers.place import UNNAMED, Place

KIND = "Cluster"

MAX_NODES = 20_000
"""A Cluster file may describe so many nodes, those of `count` included."""


def _checked(read: Callable[[Any], Any]) -> BeforeValidator:
    def validate(value: Any) -> Any:
        try:
            return read(value)
        except InputError as error:
            raise ValueError(str(error)) from error

    return BeforeValidator(validate)


def _labels(value: Any) -> Mapping[str, str]:
    return Place("labels").text_mapping(value)


def _amounts(value: Any) -> Mapping[str, int]:
    return parse_resources(Place("resources").mapping(value))


def _name(value: Any) -> str:
    return Place("name").text(value)


def _taint(value: Any) -> Taint:
    """`key=value:Effect`, `key:Effect`, or an object."""
    if isinstance(value, dict):
        taint = Fields(value, UNNAMED)
        key, text, effect = taint.text("key"), taint.text("value"), taint.text("effect")
    elif isinstance(value, str):
        pair, _, effect = value.rpartition(":")
        key, _, text = pair.partition("=")
    else:
        key, text, effect = "", "", ""
    if not key or effect not in EFFECTS:
        raise InputError(
            f"{value!r:.80} is no taint; write key=value:Effect with one of {', '.join(EFFECTS)}"
        )
    return Taint(key, text, effect)


def _terms(value: Any) -> Any:
    return read_terms(value, Place("nodeAffinity"))


Text = Annotated[str, _checked(_name)]
Labels = Annotated[Mapping[str, str], _checked(_labels)]
Cpu = Annotated[int, _checked(parse_cpu)]
Amount = Annotated[int, _checked(parse_quantity)]
Amounts = Annotated[Mapping[str, int], _checked(_amounts)]
Rate = Annotated[float, _checked(read_rate)]
Speed = Annotated[float, _checked(read_speed)]
Milliseconds = Annotated[float, _checked(parse_latency_ms)]
Seconds = Annotated[float, _checked(parse_duration)]


class FileModel(BaseModel):
    """Keys in camel case; unknown ones are refused, as they are typing errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)


class NodeEntry(FileModel):
    """One node, or `count` equal ones, then named `name-1` to `name-<count>`."""

    name: Text = Field(min_length=1)
    count: int = Field(default=1, ge=1, le=MAX_NODES, strict=True)
    cpu: Cpu
    memory: Amount
    pods: Amount = 110
    extended: Amounts = Field(default_factory=dict)
    """Other resources, such as `nvidia.com/gpu` or `ephemeral-storage`."""
    speed: Speed | None = None
    labels: Labels = Field(default_factory=dict)
    taints: tuple[Annotated[Taint, _checked(_taint)], ...] = ()
    unschedulable: bool = Field(default=False, strict=True)
    images: Mapping[str, Amount] = Field(default_factory=dict)
    store_bandwidth: Rate | None = None
    pull_rate: Rate | None = None
    used: Amounts = Field(default_factory=dict)
    """What runs there already and stays: the sum of its requests, `pods` included."""
    scored_used: Amounts | None = None
    """CPU and memory of the same as kube-scheduler's scores count them; the same unless given."""


class ClaimEntry(FileModel):
    """A volume claim that exists."""

    name: Text = Field(min_length=1)
    namespace: Text = ""
    access_modes: tuple[str, ...] = ()
    node: Text = ""
    """The node that its volume is bound to."""
    node_affinity: Annotated[Any, _checked(_terms)] = None
    """Node selector terms of its volume, where more than one node reaches it."""
    used_on: tuple[Text, ...] = ()
    """Nodes on which running pods mount it."""


class DefaultsEntry(FileModel):
    """What to assume in place of the built-in assumptions."""

    duration: Seconds | None = None
    output: Amount | None = None
    image: Amount | None = None
    store_bandwidth: Rate | None = None
    pull_rate: Rate | None = None
    driver: Seconds | None = None
    loop_width: int | None = Field(default=None, ge=1, le=100_000, strict=True)
    link_bandwidth: Rate | None = None


class ClusterEntry(FileModel):
    """The whole file."""

    api_version: str
    kind: str
    nodes: tuple[NodeEntry, ...]
    latencies: Mapping[str, Mapping[str, Milliseconds]] = Field(default_factory=dict)
    """Location -> node, or entry of several nodes -> round trip."""
    claims: tuple[ClaimEntry, ...] = ()
    defaults: DefaultsEntry = DefaultsEntry()
    policy: PlacementPolicySpec | None = None
    """What the cluster's PlacementPolicy says of plans; keys of `defaults` go before its own."""


ASSUMPTION_FIELDS = {
    "duration": "duration_seconds",
    "output": "output_bytes",
    "image": "image_bytes",
    "store_bandwidth": "store_bytes_per_second",
    "pull_rate": "pull_bytes_per_second",
    "driver": "driver_seconds",
    "loop_width": "loop_width",
    "link_bandwidth": "link_bytes_per_second",
}
"""Key of `defaults` -> field of `Assumptions`."""
