"""A reader of KFP's executors, which become leaves of the task tree.

A leaf is made from the container spec, Kubernetes config and task spec of one task. The rules are
those of KFP's container driver, which makes the pod's resources, constraints and volumes from the
same three pieces at run time.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from kfp_placement_engine.model.history import text_digest
from kfp_placement_engine.model.run_graph import StepKind
from kfp_placement_engine.readers.kfp.kubernetes import KubernetesConfig, on_pod_settings
from kfp_placement_engine.readers.kfp.values import constant_texts, text_with_inputs
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.tree.expressions import EMPTY, Constant, Expression, Input
from kfp_placement_engine.readers.tree.leaves import Leaf, ResourceSpec, init_containers

DRIVER_ONLY_IMAGES = {
    "argostub/createpvc": StepKind.CREATE_PVC,
    "argostub/deletepvc": StepKind.DELETE_PVC,
}
"""Kinds of steps by images that are never pulled: KFP's driver does the work itself."""

_DRIVER_RESOURCES = (
    ResourceSpec(Constant("cpu"), Constant("100m")),
    ResourceSpec(Constant("memory"), Constant("64Mi")),
)
"""Requests of driver and importer pods, as KFP's compiler sets them."""

_MAX_ATTEMPTS = 1000


def container_leaf(
    container: Fields, kubernetes: Fields, component: Fields, task: Fields
) -> tuple[Leaf, Mapping[str, Expression]]:
    """Read a container task, or one that KFP's driver does itself (createpvc, deletepvc).

    Return the leaf, and the inputs that it reads besides those of its task.

    Args:
        container: the container spec, at the task's place like all others.
        kubernetes: Kubernetes config of the executor.
        component: component that the task runs.
        task: PipelineTaskSpec of the task.

    Raises:
        InputError: one of the pieces is malformed.
    """
    image = container.text("image")
    if image in DRIVER_ONLY_IMAGES:
        leaf = Leaf(
            kind=DRIVER_ONLY_IMAGES[image],
            resources=_DRIVER_RESOURCES,
            access_modes=Input("access_modes"),
            claim_name=Input("pvc_name"),
            claim_size=(Input("size"), Input("storage_class_name")),
            defaults=input_defaults(component),
            place=component.place,
        )
        return leaf, {}
    # The digest is of what the container runs, so requests and environment are left out.
    command = [container.get(key) for key in ("image", "command", "args")]
    config = KubernetesConfig(kubernetes, on_pod_settings(component))
    metadata = kubernetes.fields("podMetadata")
    retries = task.fields("retryPolicy").count("maxRetryCount")
    caching = task.fields("cachingOptions")
    resources = container.fields("resources")
    leaf = Leaf(
        image=text_with_inputs(image),
        component=text_digest(json.dumps(command, sort_keys=True, default=str))
        if container
        else "",
        resources=_resources(resources) if config.on_pod("RESOURCES") else (),
        container_count=1 if container else 0,
        init_containers=init_containers(kubernetes.each("initContainers")),
        labels=constant_texts(metadata, "labels"),
        annotations=constant_texts(metadata, "annotations"),
        node_selectors=config.node_selectors(),
        affinities=config.affinities(),
        tolerations=config.tolerations(),
        claims=config.claims(),
        end_limits=config.end_limits(),
        attempt_limit=1 + min(retries, _MAX_ATTEMPTS),
        caching_enabled=caching.flag("enableCache"),
        has_driver=True,
        defaults=input_defaults(component),
        numeric_inputs=_numeric_inputs(component),
        place=task.place,
    )
    return leaf, config.inputs


def importer_leaf(importer: Fields, component: Fields) -> Leaf:
    """Read an importer: one pod of KFP's launcher, without driver and without the author's labels.

    Args:
        importer: importer spec, at the task's place.
        component: component that the task runs, at the task's place.

    Raises:
        InputError: one of the pieces is malformed.
    """
    workspace = importer.flag("downloadToWorkspace")
    return Leaf(
        kind=StepKind.IMPORTER,
        resources=_DRIVER_RESOURCES,
        uses_workspace=workspace,
        fills_workspace=workspace,
        defaults=input_defaults(component),
        place=component.place,
    )


def input_defaults(component: Fields) -> dict[str, Any]:
    """Return default values of a component's input parameters.

    Raises:
        InputError: one of the pieces is malformed.
    """
    named = _parameters(component)
    return {name: fields.get("defaultValue") for name, fields in named if "defaultValue" in fields}


def _numeric_inputs(component: Fields) -> frozenset[str]:
    """Return names of the input parameters that are numbers or booleans, so never a path."""
    kinds = ("NUMBER_INTEGER", "NUMBER_DOUBLE", "BOOLEAN")
    named = _parameters(component)
    return frozenset(name for name, fields in named if fields.get("parameterType") in kinds)


def _parameters(component: Fields) -> Iterable[tuple[str, Fields]]:
    definitions = component.fields("inputDefinitions")
    return definitions.each_named("parameters")


def _resources(resources: Fields) -> tuple[ResourceSpec, ...]:
    accelerator = resources.fields("accelerator")
    specs = [
        ResourceSpec(
            Constant("cpu"),
            _amount(resources, "resourceCpuRequest", "cpuRequest", ""),
            _amount(resources, "resourceCpuLimit", "cpuLimit", ""),
        ),
        ResourceSpec(
            Constant("memory"),
            _amount(resources, "resourceMemoryRequest", "memoryRequest", "G"),
            _amount(resources, "resourceMemoryLimit", "memoryLimit", "G"),
        ),
    ]
    kind = _either(accelerator, "resourceType", "type")
    count = _either(accelerator, "resourceCount", "count")
    # Also where one of both is missing, which the reader of resources warns of.
    if count != Constant("0") and (kind, count) != (EMPTY, EMPTY):
        specs.append(ResourceSpec(kind, None, count))
    return tuple(specs)


def _amount(resources: Fields, new: str, old: str, unit: str) -> Expression | None:
    """Return the amount as text if given, else the older number of cores or GB, else None."""
    text = resources.text(new)
    if text:
        return text_with_inputs(text)
    number = resources.number(old)
    return Constant(f"{number:.9f}{unit}") if number else None


def _either(fields: Fields, new: str, old: str) -> Expression:
    return text_with_inputs(fields.text(new) or fields.text(old))
