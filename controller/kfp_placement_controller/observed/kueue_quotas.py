"""Kueue's LocalQueues, ResourceFlavors and AdmissionChecks, slimmed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kfp_placement_controller.observed.limited_fields import MAX_LISTED, entries, limited_text
from kfp_placement_controller.observed.workloads import (
    KueueCondition,
    ObservedWorkload,
    conditions_of,
)
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_kube.kinds import JsonObject

PLANNER_CONTROLLER = "kfp-placement.dev/planner"
"""Controller name in the AdmissionChecks that we answer."""


@dataclass(frozen=True, slots=True)
class ObservedLocalQueue:
    """A LocalQueue.

    Attributes:
        namespace: namespace of the object.
        name: name of the object.
        problem: reason why it admits no Workload, in Kueue's words; "" = it admits them.
        resources: names of the resources for which its ClusterQueue has quota.
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
        name: name of the object.
        active: condition by which we tell Kueue that we answer the check; None = it has none yet.
    """

    name: str
    active: KueueCondition | None


@dataclass(frozen=True)
class KueueListing:
    """Kueue's objects that matter to runs.

    Attributes:
        workloads: Workloads that RunRequests own.
        local_queues: LocalQueues of all namespaces.
        flavors: labels of the nodes of each ResourceFlavor, by its name.
        checks: AdmissionChecks that we answer.
    """

    workloads: Sequence[ObservedWorkload]
    local_queues: Sequence[ObservedLocalQueue]
    flavors: Mapping[str, Mapping[str, str]]
    checks: Sequence[ObservedCheck]


def observe_local_queue(raw: JsonObject) -> ObservedLocalQueue:
    """Slim a LocalQueue as the API server prints it.

    Raises:
        InputError: not even its metadata can be read.
    """
    fields = Fields(raw, Place("LocalQueue"))
    metadata, status = fields.flat("metadata"), fields.flat("status")
    active = conditions_of(status).get("Active")
    problem = "" if active is None or active.holds else active.message or active.reason
    flavors = entries(status, "flavorsReservation")
    resources = {
        limited_text(each.get("name"))
        for flavor in flavors
        for each in entries(flavor, "resources")
    }
    return ObservedLocalQueue(
        metadata.name("namespace"),
        metadata.name("name"),
        problem,
        frozenset(resources),
        tuple(limited_text(each.get("name")) for each in flavors),
    )


def observe_flavor(raw: JsonObject) -> Mapping[str, str]:
    """Return the labels of the nodes that a ResourceFlavor stands for.

    Raises:
        InputError: it cannot be read.
    """
    labels = Fields(raw, Place("ResourceFlavor")).flat("spec").text_mapping("nodeLabels")
    return dict([*labels.items()][:MAX_LISTED])


def observe_check(raw: JsonObject) -> ObservedCheck | None:
    """Slim an AdmissionCheck as the API server prints it; None = another controller answers it.

    Raises:
        InputError: not even its metadata can be read.
    """
    fields = Fields(raw, Place("AdmissionCheck"))
    if fields.flat("spec").get("controllerName") != PLANNER_CONTROLLER:
        return None
    name = fields.flat("metadata").name("name")
    return ObservedCheck(name, conditions_of(fields.flat("status")).get("Active"))
