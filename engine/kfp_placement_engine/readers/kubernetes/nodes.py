"""A reader of Node objects."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from kfp_placement_engine.contract.keys import PULL_RATE_LABEL, SPEED_LABEL, STORE_BANDWIDTH_LABEL
from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.model.cluster import Node, Taint
from kfp_placement_engine.model.node_rules.constraints import (
    ARCHITECTURE_LABEL,
    AWAY_KEYS,
    NOT_READY_TAINT,
    OS_LABEL,
    UNSCHEDULABLE_TAINT,
)
from kfp_placement_engine.model.node_rules.images import normalised
from kfp_placement_engine.model.node_rules.round_trips import location_labels
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.units.durations import parse_latency_ms
from kfp_placement_engine.units.quantities import parse_quantity, parse_resource
from kfp_placement_engine.units.resources import DISK, Resources, without_zeros

MAX_SPEED = 1000.0
"""Largest speed against the reference node; a larger one is a typing error."""

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

Value = TypeVar("Value")


def read_node(raw: Fields) -> tuple[Node, list[Notice]]:
    """Read one node, without the room that pods take on it.

    Raises:
        InputError: the node is malformed, or an amount is malformed, negative or absurd.
    """
    name = raw.fields("metadata").text("name")
    if not name:
        raise raw.error("has no name; every node needs metadata.name")
    raw = raw.at(" {:.80}", name)
    spec, status = raw.fields("spec"), raw.fields("status")
    labels = raw.fields("metadata").text_mapping("labels")
    notices: list[Notice] = []
    size = "allocatable" if "allocatable" in status else "capacity"
    if status.get(size) is None:
        notices.append(Notice("no-allocatable", f"node {name} reports no resources: nothing fits"))
    cordoned = spec.get("unschedulable") is True
    node = Node(
        name=name,
        allocatable=node_size(status.resources(size)),
        labels=labels,
        taints=_taints(spec, status, cordoned),
        unschedulable=cordoned,
        speed=from_label(SPEED_LABEL, read_speed, labels, name, notices) or 1.0,
        images=_images(status),
        store_bytes_per_second=from_label(STORE_BANDWIDTH_LABEL, read_rate, labels, name, notices),
        pull_bytes_per_second=from_label(PULL_RATE_LABEL, read_rate, labels, name, notices),
        platform=_platform(status),
    )
    return node, notices


def _platform(status: Fields) -> dict[str, str]:
    info = status.fields("nodeInfo")
    names = {OS_LABEL: "operatingSystem", ARCHITECTURE_LABEL: "architecture"}
    return {label: info.text(key) for label, key in names.items() if info.text(key)}


def bad_latency_labels(nodes: Iterable[Node], locations: Iterable[str]) -> list[Notice]:
    """Return a notice for each node label that is named like a location but holds no latency.

    Args:
        nodes: nodes whose labels are read.
        locations: names of locations, in any case, as other nodes or Locations have them.
    """
    names = {location.lower() for location in locations}
    bad: dict[str, list[str]] = {}
    for node in nodes:
        for key, value in location_labels(node.labels):
            if key.lower() not in names:
                continue
            try:
                parse_latency_ms(value)
            except QuantityError as error:
                bad.setdefault(key, []).append(f"node {node.name}, label {key}: {error}; not used")
    return [Notice("bad-node-label", _with_others(*messages)) for messages in bad.values()]


def _with_others(first: str, *others: str) -> str:
    if not others:
        return first
    return f"{first}, nor on {len(others)} more node{'s' if len(others) > 1 else ''}"


def node_size(resources: Resources) -> dict[str, int]:
    """Return a node's size: always CPU, memory and pods, and other resources if it has any.

    Disk of 0 is kept: disk that is not stated is unknown.
    """
    least = {name: resources.get(name, 0) for name in ("cpu", "memory", "pods")}
    disk = {DISK: resources[DISK]} if DISK in resources else {}
    return {**least, **without_zeros(resources), **disk}


def read_speed(value: object) -> float:
    """Read a speed against the reference node.

    Raises:
        QuantityError: the value is not a number above 0, or is an absurd one.
    """
    text = str(value)
    try:
        # Python also reads `1_5` and digits of other scripts.
        speed = float(text) if text.isascii() and "_" not in text else -1.0
    except ValueError:
        speed = -1.0
    if not 0 < speed <= MAX_SPEED:
        raise QuantityError(
            f"{value!r:.60} is not a speed; write a number above 0, at most {MAX_SPEED:g}"
        )
    return speed


def read_rate(value: object) -> float:
    """Read a rate in bytes per second, a quantity such as `125M`.

    Raises:
        QuantityError: the value is not a quantity, or is 0.
    """
    rate = parse_quantity(value)
    if rate == 0:
        raise QuantityError(f"{value!r:.60}: a rate must be greater than 0 bytes per second")
    return float(rate)


def from_label(
    key: str,
    read: Callable[[object], Value],
    labels: Mapping[str, str],
    node: str,
    notices: list[Notice],
) -> Value | None:
    """Return the value of a node's label, or None without it; a bad one adds a notice."""
    if key not in labels:
        return None
    try:
        return read(labels[key])
    except QuantityError as error:
        notices.append(Notice("bad-node-label", f"node {node}, label {key}: {error}; not used"))
        return None


def _taints(spec: Fields, status: Fields, cordoned: bool) -> tuple[Taint, ...]:
    taints = []
    for raw in spec.each("taints"):
        key, value, effect = (raw.text(each) for each in ("key", "value", "effect"))
        if not key or effect not in EFFECTS:
            raise raw.error(
                f"taint {key:.80}={value:.80}:{effect:.80}; it needs a key and one of the"
                f" effects {', '.join(EFFECTS)}"
            )
        taints.append(Taint(key, value, effect))
    keys = {taint.key for taint in taints}
    # The control plane adds both within seconds; a snapshot may have been taken before.
    if cordoned and UNSCHEDULABLE_TAINT.key not in keys:
        taints.append(UNSCHEDULABLE_TAINT)
    if _not_ready(status) and not keys & AWAY_KEYS:
        taints.append(NOT_READY_TAINT)
    return tuple(taints)


def _not_ready(status: Fields) -> bool:
    """Return whether the node is reported not ready; without a report it counts as ready."""
    for condition in status.each("conditions"):
        if condition.get("type") == "Ready":
            return condition.get("status") != "True"
    return False


def _images(status: Fields) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for image in status.each("images"):
        size_bytes = _size_bytes(image)
        for name in image.texts("names"):
            # kube-scheduler never finds names without a tag: it adds a tag to the images of pods.
            if normalised(name) == name and not name.startswith("<none>"):
                sizes.setdefault(name, size_bytes)
    return sizes


def _size_bytes(image: Fields) -> int:
    try:
        return parse_resource("sizeBytes", image.get("sizeBytes", 0))
    except QuantityError as error:
        raise image.place.error(f"{error}", QuantityError) from error
