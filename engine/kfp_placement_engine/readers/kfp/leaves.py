"""KFP executors -> leaves: container spec, Kubernetes config and task spec of one task.

The rules are those of KFP's container driver, which makes the pod's resources, constraints and
volumes from the same three pieces at run time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kfp_placement_engine.model.run_graph import StepKind
from kfp_placement_engine.readers.fields import (
    as_count,
    as_flag,
    as_mapping,
    as_number,
    as_text,
)
from kfp_placement_engine.readers.kfp.kubernetes import KubernetesConfig, on_pod_settings
from kfp_placement_engine.readers.kfp.values import text_with_inputs
from kfp_placement_engine.readers.tree.expressions import EMPTY, Constant, Expression, Input
from kfp_placement_engine.readers.tree.leaf_facts import constant_texts
from kfp_placement_engine.readers.tree.tasks import Leaf, ResourceSpec

DRIVER_ONLY_IMAGES = {
    "argostub/createpvc": StepKind.CREATE_PVC,
    "argostub/deletepvc": StepKind.DELETE_PVC,
}
"""Images that are never pulled: KFP's driver does the work itself."""

_DRIVER_RESOURCES = (
    ResourceSpec(Constant("cpu"), Constant("100m")),
    ResourceSpec(Constant("memory"), Constant("64Mi")),
)
"""What KFP's compiler asks for driver and importer pods."""

_MAX_ATTEMPTS = 1000


@dataclass(frozen=True)
class LeafWithInputs:
    """A leaf, and inputs that it reads besides those of its task."""

    leaf: Leaf
    inputs: Mapping[str, Expression]


def container_leaf(
    container: dict[str, Any],
    kubernetes: dict[str, Any],
    component: dict[str, Any],
    task: dict[str, Any],
    place: str,
) -> LeafWithInputs:
    """A container task, or one that KFP's driver does itself (createpvc, deletepvc).

    Raises:
        InputError: malformed.
    """
    image = as_text(container.get("image"), f"{place}: image")
    if image in DRIVER_ONLY_IMAGES:
        return LeafWithInputs(_driver_leaf(image, component, place), {})
    config = KubernetesConfig(kubernetes, on_pod_settings(component, place), place)
    metadata = as_mapping(kubernetes.get("podMetadata"), f"{place}: podMetadata")
    retry = as_mapping(task.get("retryPolicy"), f"{place}: retryPolicy")
    retries = as_count(retry.get("maxRetryCount"), f"{place}: maxRetryCount")
    caching = as_mapping(task.get("cachingOptions"), f"{place}: cachingOptions")
    resources = as_mapping(container.get("resources"), f"{place}: resources")
    leaf = Leaf(
        image=text_with_inputs(image),
        resources=_resources(resources, place) if config.on_pod("RESOURCES") else (),
        labels=constant_texts(metadata.get("labels"), f"{place}: labels"),
        annotations=constant_texts(metadata.get("annotations"), f"{place}: annotations"),
        node_selectors=config.node_selectors(),
        affinities=config.affinities(),
        tolerations=config.tolerations(),
        claims=config.claims(),
        attempt_limit=1 + min(retries, _MAX_ATTEMPTS),
        caching_enabled=as_flag(caching.get("enableCache"), f"{place}: enableCache"),
        has_driver=True,
        defaults=input_defaults(component, place),
        place=place,
    )
    return LeafWithInputs(leaf, config.inputs)


def importer_leaf(importer: dict[str, Any], component: dict[str, Any], place: str) -> Leaf:
    """An importer: one pod of KFP's launcher, without driver and without the author's labels.

    Raises:
        InputError: malformed.
    """
    workspace = as_flag(importer.get("downloadToWorkspace"), f"{place}: downloadToWorkspace")
    return Leaf(
        kind=StepKind.IMPORTER,
        resources=_DRIVER_RESOURCES,
        uses_workspace=workspace,
        fills_workspace=workspace,
        defaults=input_defaults(component, place),
        place=place,
    )


def _driver_leaf(image: str, component: dict[str, Any], place: str) -> Leaf:
    return Leaf(
        kind=DRIVER_ONLY_IMAGES[image],
        image=Constant(image),
        resources=_DRIVER_RESOURCES,
        access_modes=Input("access_modes"),
        claim_name=Input("pvc_name"),
        defaults=input_defaults(component, place),
        place=place,
    )


def input_defaults(component: dict[str, Any], place: str) -> dict[str, Any]:
    """Default values of a component's input parameters.

    Raises:
        InputError: malformed.
    """
    definitions = as_mapping(component.get("inputDefinitions"), f"{place}: inputDefinitions")
    parameters = as_mapping(definitions.get("parameters"), f"{place}: input parameters")
    defaults = {}
    for name, definition in parameters.items():
        fields = as_mapping(definition, f"{place}: input parameter {name:.80}")
        if "defaultValue" in fields:
            defaults[name] = fields["defaultValue"]
    return defaults


def _resources(resources: dict[str, Any], place: str) -> tuple[ResourceSpec, ...]:
    accelerator = as_mapping(resources.get("accelerator"), f"{place}: accelerator")
    specs = [
        ResourceSpec(
            Constant("cpu"),
            _amount(resources, "resourceCpuRequest", "cpuRequest", "", place),
            _amount(resources, "resourceCpuLimit", "cpuLimit", "", place),
        ),
        ResourceSpec(
            Constant("memory"),
            _amount(resources, "resourceMemoryRequest", "memoryRequest", "G", place),
            _amount(resources, "resourceMemoryLimit", "memoryLimit", "G", place),
        ),
    ]
    kind = _either(accelerator, "resourceType", "type", place)
    count = _either(accelerator, "resourceCount", "count", place)
    if kind != EMPTY and count not in (EMPTY, Constant("0")):
        specs.append(ResourceSpec(kind, None, count))
    return tuple(specs)


def _amount(
    resources: dict[str, Any], new: str, old: str, unit: str, place: str
) -> Expression | None:
    """The text field if it is set, else the older number of cores or GB."""
    text = as_text(resources.get(new), f"{place}: {new}")
    if text:
        return text_with_inputs(text)
    number = as_number(resources.get(old), f"{place}: {old}")
    return Constant(f"{number:.9f}{unit}") if number else None


def _either(fields: dict[str, Any], new: str, old: str, place: str) -> Expression:
    text = as_text(fields.get(new), f"{place}: {new}") or as_text(fields.get(old), place)
    return text_with_inputs(text)
