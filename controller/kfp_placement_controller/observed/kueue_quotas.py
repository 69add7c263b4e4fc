"""What Kueue has beside Workloads, slimmed: LocalQueues, ResourceFlavors, AdmissionChecks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kfp_placement_controller.observed.kueue_fields import (
    MAX_LISTED,
    KueueCondition,
    conditions_of,
    entries,
    short_text,
)
from kfp_placement_controller.observed.workloads import ObservedWorkload
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place

PLANNER_CONTROLLER = "kfp-placement.dev/planner"
"""AdmissionChecks that name this controller are answered by us."""


@dataclass(frozen=True, slots=True)
class ObservedLocalQueue:
    """A LocalQueue.

    Attributes:
        namespace, name: of the object.
        problem: why it admits nobody, in Kueue's words; "" = it does.
        resources: that its ClusterQueue has quota for.
        flavors: names of the ResourceFlavors of that quota.
    """

    namespace: str
    name: str
    problem: str
    resources: frozenset[str]
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ObservedCheck:
    """An AdmissionCheck that we answer.

    Attributes:
        name: of the object.
        active: whether it says that we answer it; None = it does not say.
    """

    name: str
    active: KueueCondition | None


@dataclass(frozen=True)
class KueueListing:
    """All of Kueue's objects that matter.

    Attributes:
        workloads: that RunRequests own.
        local_queues: all.
        flavors: labels of their nodes, by name.
        checks: that are answered by us.
    """

    workloads: Sequence[ObservedWorkload]
    local_queues: Sequence[ObservedLocalQueue]
    flavors: Mapping[str, Mapping[str, str]]
    checks: Sequence[ObservedCheck]


def observe_local_queue(raw: Mapping[str, Any]) -> ObservedLocalQueue:
    """A LocalQueue as the API server prints it.

    Raises:
        InputError: not even its metadata can be read.
    """
    fields = Fields(raw, Place("LocalQueue"))
    metadata, status = fields.flat("metadata"), fields.flat("status")
    active = conditions_of(status).get("Active")
    problem = "" if active is None or active.holds else active.message or active.reason
    flavors = entries(status, "flavorsReservation")
    resources = {
        short_text(each.get("name")) for flavor in flavors for each in entries(flavor, "resources")
    }
    return ObservedLocalQueue(
        metadata.name("namespace"),
        metadata.name("name"),
        problem,
        frozenset(resources),
        tuple(short_text(each.get("name")) for each in flavors),
    )


def observe_flavor(raw: Mapping[str, Any]) -> Mapping[str, str]:
    """Labels of the nodes that a ResourceFlavor stands for.

    Raises:
        InputError: it cannot be read.
    """
    labels = Fields(raw, Place("ResourceFlavor")).flat("spec").text_mapping("nodeLabels")
    return dict([*labels.items()][:MAX_LISTED])


def observe_check(raw: Mapping[str, Any]) -> ObservedCheck | None:
    """An AdmissionCheck as the API server prints it; None = others answer it.

    Raises:
        InputError: not even its metadata can be read.
    """
    fields = Fields(raw, Place("AdmissionCheck"))
    if fields.flat("spec").get("controllerName") != PLANNER_CONTROLLER:
        return None
    name = fields.flat("metadata").name("name")
    return ObservedCheck(name, conditions_of(fields.flat("status")).get("Active"))
