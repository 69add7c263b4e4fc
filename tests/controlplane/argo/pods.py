"""The pod of a node, as Argo asks the API server for it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from tests.controlplane.argo.exceptions import TemplateError
from tests.controlplane.argo.executor_containers import (
    MOUNT_ARGO,
    MOUNT_TEMPORARY,
    VOLUMES,
    common_variables,
    executor_command,
    executor_container,
)
from tests.controlplane.argo.names import node_id
from tests.controlplane.argo.settings import EXECUTOR_IMAGE
from tests.controlplane.argo.state import (
    ANNOTATION_NODE_ID,
    ANNOTATION_NODE_NAME,
    LABEL_COMPLETED,
    LABEL_ON_EXIT,
    LABEL_WORKFLOW,
    Json,
    Run,
)
from tests.controlplane.argo.strategic_merge import strategic_merge
from tests.controlplane.argo.substitution import substitute
from tests.controlplane.argo.templates import as_text, parameters_of

_QUANTITY = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+|[numkKMGTPE]|[KMGTPE]i)?")


@dataclass(frozen=True)
class PodRequest:
    """Request for the pod of a node.

    Attributes:
        node_name: name of the node that the pod is for.
        template: the node's template, filled.
        on_exit: whether it belongs to an exit handler.
    """

    node_name: str
    template: Json
    on_exit: bool = False


def build_pod(run: Run, request: PodRequest) -> Json | None:
    """The pod of a node; None when the Workflow's time is over.

    Raises:
        TemplateError: its patch is no pod spec.
    """
    seconds = _active_deadline(run, request)
    if seconds is not None and seconds <= 0:
        return None
    template = request.template
    pod: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": _metadata(run, request)}
    pod["spec"] = _spec(run, request, seconds)
    inputs = parameters_of(template.get("inputs"))
    values = {f"inputs.parameters.{entry['name']}": as_text(entry["value"]) for entry in inputs}
    values |= run.globals
    filled: Json = substitute(pod, values)
    spec = _patched(template, filled["spec"], values)
    return {**filled, "spec": _with_emissary(spec)}


def owner_reference(workflow: Mapping[str, Any]) -> Json:
    """The reference by which the Workflow owns pods and claims."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "name": workflow["metadata"]["name"],
        "uid": workflow["metadata"].get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _active_deadline(run: Run, request: PodRequest) -> int | None:
    if run.deadline is None or request.on_exit:
        return None
    return int((run.deadline - run.now).total_seconds())


def _metadata(run: Run, request: PodRequest) -> Json:
    metadata = run.workflow["metadata"]
    labels = {LABEL_WORKFLOW: run.name, LABEL_COMPLETED: "false"}
    if request.on_exit:
        labels[LABEL_ON_EXIT] = "true"
    annotations = {
        ANNOTATION_NODE_NAME: request.node_name,
        ANNOTATION_NODE_ID: node_id(run.name, request.node_name),
        "kubectl.kubernetes.io/default-container": "main",
    }
    for source in (run.spec.get("podMetadata") or {}, request.template.get("metadata") or {}):
        labels |= source.get("labels") or {}
        annotations |= source.get("annotations") or {}
    return {
        "name": run.pod_name(request.node_name, request.template["name"]),
        "namespace": metadata.get("namespace", "default"),
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [owner_reference(run.workflow)],
    }


def _spec(run: Run, request: PodRequest, deadline_seconds: int | None) -> Json:
    template = request.template
    main = {**template["container"], "name": "main"}
    wait = executor_container(run, "wait")
    inits = [dict(container) for container in template.get("initContainers") or []]
    spec: Json = {
        "restartPolicy": "Never",
        "volumes": [*(dict(volume) for volume in VOLUMES), *(template.get("volumes") or [])],
        "initContainers": [executor_container(run, "init"), *inits],
        "containers": [wait, main],
    }
    _mirror_mounts(wait, main)
    _add_environment(run, request, spec)
    if deadline_seconds is not None:
        spec["activeDeadlineSeconds"] = deadline_seconds
    if run.spec.get("serviceAccountName"):
        spec["serviceAccountName"] = run.spec["serviceAccountName"]
    security = template.get("securityContext") or run.spec.get("securityContext")
    if security:
        spec["securityContext"] = security
    return spec


def _mirror_mounts(wait: Json, main: Json) -> None:
    """Mount what the main container sees into the wait container, below `/mainctrfs`."""
    mounts = []
    for mount in main.get("volumeMounts") or []:
        mounts.append({**mount, "mountPath": f"/mainctrfs{mount['mountPath']}"})
    wait["volumeMounts"] = mounts


def _add_environment(run: Run, request: PodRequest, spec: Json) -> None:
    artifacts = (request.template.get("inputs") or {}).get("artifacts")
    shown = {**request.template, "inputs": {"artifacts": artifacts} if artifacts else {}}
    text = json.dumps(shown, separators=(",", ":"))
    common = common_variables(run, request.node_name, on_exit=request.on_exit)
    for key in ("initContainers", "containers"):
        for container in spec[key]:
            own = [{"name": "ARGO_CONTAINER_NAME", "value": container["name"]}]
            if key == "initContainers":
                own.append({"name": "ARGO_TEMPLATE", "value": text})
            container["env"] = [*(container.get("env") or []), *own, *common]
            if key == "initContainers":
                mounts = container.get("volumeMounts") or []
                container["volumeMounts"] = [*mounts, dict(MOUNT_ARGO)]


def _patched(template: Json, spec: Json, values: Mapping[str, str]) -> Json:
    """The spec with the template's patch laid over it."""
    text = substitute(template.get("podSpecPatch") or "", values)
    if not text.strip():
        return spec
    try:
        patch = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise TemplateError(f"Error applying PodSpecPatch: {error}") from error
    if not isinstance(patch, dict):
        raise TemplateError("Error applying PodSpecPatch: it is no object")
    merged: Json = strategic_merge(spec, patch)
    for container in merged["containers"]:
        for amounts in container.get("resources", {}).values():
            if not all(_QUANTITY.fullmatch(str(amount)) for amount in amounts.values()):
                raise TemplateError(f"Error applying PodSpecPatch: no quantities: {amounts}")
    return merged


def _with_emissary(spec: Json) -> Json:
    """Argo's own process stands in front of every command but those of `wait`."""
    containers = []
    for number, container in enumerate(spec["containers"]):
        changed = dict(container)
        if container["name"] != "wait":
            changed["command"] = [*executor_command("emissary"), "--", *container["command"]]
        mounts = list(container.get("volumeMounts") or [])
        if container.get("image") == EXECUTOR_IMAGE:
            mounts.append({**MOUNT_TEMPORARY, "subPath": str(number)})
        changed["volumeMounts"] = [*mounts, dict(MOUNT_ARGO)]
        containers.append(changed)
    return {**spec, "containers": containers}
