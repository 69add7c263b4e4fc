"""KFP executors -> leaves: container spec, Kubernetes config and task spec of one task.

The rules are those of KFP's container driver, which makes the pod's resources, constraints and
volumes from the same three pieces at run time.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kfp_placement_engine.readers.expressions import (
    EMPTY,
    Constant,
    Expression,
    Input,
    Joined,
    Runtime,
    Selected,
    TaskOutput,
)
from kfp_placement_engine.readers.fields import (
    as_count,
    as_flag,
    as_list,
    as_mapping,
    as_number,
    as_text,
    as_text_mapping,
)
from kfp_placement_engine.readers.leaf_facts import constant_texts
from kfp_placement_engine.readers.task_tree import Leaf, ResourceSpec
from kfp_placement_engine.run_graph import StepKind

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

_INPUT = re.compile(r"""\{\{\$\.inputs\.parameters\[(?:'([^']*)'|"([^"]*)")\]\}\}""")
_SELECTOR = re.compile(r"""^parseJson\(string_value\)\["(.*)"\]$""", re.DOTALL)


@dataclass(frozen=True)
class LeafWithInputs:
    """A leaf, and inputs that it reads besides those of its task."""

    leaf: Leaf
    inputs: Mapping[str, Expression]


def text_with_inputs(text: str) -> Expression:
    """Text in which `{{$.inputs.parameters['x']}}` stands for the task's own input x."""
    parts: list[Expression] = []
    position = 0
    for match in _INPUT.finditer(text):
        if match.start() > position:
            parts.append(Constant(text[position : match.start()]))
        parts.append(Input(match.group(1) if match.group(1) is not None else match.group(2)))
        position = match.end()
    if position < len(text) or not parts:
        parts.append(Constant(text[position:]))
    return parts[0] if len(parts) == 1 else Joined(tuple(parts))


def parameter_source(spec: dict[str, Any], place: str) -> Expression:
    """Where a task's input parameter comes from, in the enclosing DAG.

    Raises:
        InputError: malformed.
    """
    source: Expression
    if "componentInputParameter" in spec:
        source = Input(as_text(spec["componentInputParameter"], place))
    elif "taskOutputParameter" in spec:
        output = as_mapping(spec["taskOutputParameter"], place)
        task = as_text(output.get("producerTask"), place)
        source = TaskOutput(task, as_text(output.get("outputParameterKey"), place))
    elif "runtimeValue" in spec:
        source = _runtime_value(as_mapping(spec["runtimeValue"], place), place)
    else:
        source = Runtime()
    selector = as_text(spec.get("parameterExpressionSelector"), place)
    if not selector:
        return source
    match = _SELECTOR.match(selector)
    return Selected(source, match.group(1)) if match else Runtime()


def _runtime_value(value: dict[str, Any], place: str) -> Expression:
    if "constant" in value:
        return Constant(value["constant"])
    if "runtimeParameter" in value:
        return Input(as_text(value["runtimeParameter"], place))
    # Packages of schema 2.0: {"constantValue": {"intValue": "3"}}.
    constants = list(as_mapping(value.get("constantValue"), place).values())
    return Constant(constants[0]) if constants else Runtime()


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
    config = _KubernetesConfig(kubernetes, _on_pod(component, place), place)
    metadata = as_mapping(kubernetes.get("podMetadata"), f"{place}: podMetadata")
    retry = as_mapping(task.get("retryPolicy"), f"{place}: retryPolicy")
    retries = as_count(retry.get("maxRetryCount"), f"{place}: maxRetryCount")
    caching = as_mapping(task.get("cachingOptions"), f"{place}: cachingOptions")
    resources = as_mapping(container.get("resources"), f"{place}: resources")
    leaf = Leaf(
        image=text_with_inputs(image),
        resources=_resources(resources, place) if config.on_pod("RESOURCES") else (),
        labels=constant_texts(as_text_mapping(metadata.get("labels"), f"{place}: labels")),
        annotations=constant_texts(
            as_text_mapping(metadata.get("annotations"), f"{place}: annotations")
        ),
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


def _on_pod(component: dict[str, Any], place: str) -> Mapping[str, bool]:
    """Settings that a component wants for itself (trainer jobs) instead of on its pod."""
    settings: dict[str, bool] = {}
    listed = as_list(component.get("taskConfigPassthroughs"), f"{place}: taskConfigPassthroughs")
    for entry in listed:
        fields = as_mapping(entry, f"{place}: taskConfigPassthroughs")
        field = as_text(fields.get("field"), f"{place}: taskConfigPassthroughs")
        settings[field] = as_flag(fields.get("applyToTask"), f"{place}: applyToTask")
    return settings


class _KubernetesConfig:
    """KFP's KubernetesExecutorConfig; keys it may get later are ignored.

    Values given by parameters are resolved in the enclosing DAG, so each becomes an extra input of
    the task (`inputs`), which the leaf then reads.
    """

    def __init__(self, config: dict[str, Any], on_pod: Mapping[str, bool], place: str) -> None:
        self._config = config
        self._on_pod = on_pod
        self._place = place
        self.inputs: dict[str, Expression] = {}

    def on_pod(self, field: str) -> bool:
        """Whether a kind of setting reaches the pod."""
        return self._on_pod.get(field, True)

    def node_selectors(self) -> tuple[Expression, ...]:
        """Each evaluates to a mapping of labels."""
        place = f"{self._place}: nodeSelector"
        selector = as_mapping(self._config.get("nodeSelector"), place)
        if not selector or not self.on_pod("KUBERNETES_NODE_SELECTOR"):
            return ()
        if selector.get("nodeSelectorJson") is not None:
            return (self._parameter(selector["nodeSelectorJson"], "nodeSelector", place),)
        return (Constant(dict(as_text_mapping(selector.get("labels"), place))),)

    def tolerations(self) -> tuple[Expression, ...]:
        """Each evaluates to one toleration or a list."""
        found: list[Expression] = []
        if self.on_pod("KUBERNETES_TOLERATIONS"):
            for place, entry in self._entries("tolerations"):
                if entry.get("tolerationJson") is not None:
                    found.append(self._parameter(entry["tolerationJson"], place, place))
                else:
                    found.append(Constant(entry))
        return tuple(found)

    def affinities(self) -> tuple[Expression, ...]:
        """Each evaluates to a Kubernetes node affinity."""
        found: list[Expression] = []
        if self.on_pod("KUBERNETES_AFFINITY"):
            for place, entry in self._entries("nodeAffinity"):
                if entry.get("nodeAffinityJson") is not None:
                    found.append(self._parameter(entry["nodeAffinityJson"], place, place))
                elif entry.get("matchExpressions") or entry.get("matchFields"):
                    found.append(Constant(_affinity(entry)))
        return tuple(found)

    def claims(self) -> tuple[Expression, ...]:
        """Each evaluates to the name of a claim."""
        found: list[Expression] = []
        if self.on_pod("KUBERNETES_VOLUMES"):
            for place, entry in self._entries("pvcMount"):
                if entry.get("pvcNameParameter") is not None:
                    found.append(self._parameter(entry["pvcNameParameter"], place, place))
                elif "constant" in entry:
                    found.append(Constant(as_text(entry["constant"], place)))
                else:
                    found.append(self._parameter(entry, place, place))
        return tuple(found)

    def _entries(self, key: str) -> list[tuple[str, dict[str, Any]]]:
        place = f"{self._place}: {key}"
        entries = enumerate(as_list(self._config.get(key), place))
        return [
            (f"{place}[{index}]", as_mapping(entry, f"{place}[{index}]"))
            for index, entry in entries
        ]

    def _parameter(self, spec: Any, name: str, place: str) -> Expression:
        source = parameter_source(as_mapping(spec, place), place)
        if isinstance(source, Constant):
            return text_with_inputs(source.value) if isinstance(source.value, str) else source
        self.inputs[name] = source
        return Input(name)


def _affinity(term: dict[str, Any]) -> dict[str, Any]:
    """KFP's own form of one term, as Kubernetes writes it; a weight makes it a preference."""
    selector = {key: term[key] for key in ("matchExpressions", "matchFields") if key in term}
    if term.get("weight") is not None:
        preferred = [{"weight": term["weight"], "preference": selector}]
        return {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    required = {"nodeSelectorTerms": [selector]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": required}
