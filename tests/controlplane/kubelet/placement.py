"""Kubernetes settings of a step, added to its pod as KFP's container driver does."""

import json
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

WORKSPACE_PLACEHOLDER = "{{$.workspace_path}}"
WORKSPACE = "kfp-workspace"
WORKSPACE_PATH = "/kfp-workspaces"


def placement_of(
    patch: Json,
    config: Mapping[str, Any],
    container: Mapping[str, Any],
    workflow: str,
    parameters: Mapping[str, str],
) -> Json:
    """The patch with claims, selectors, affinity, tolerations and the workspace.

    Args:
        patch: patch of one container.
        config: the step's Kubernetes settings.
        container: container as in the pipeline.
        workflow: the name of its Workflow.
        parameters: values of the step's inputs, for claims that these name.
    """
    spec = dict(patch)
    main = dict(spec["containers"][0])
    volumes, mounts = _claims(config, parameters)
    if WORKSPACE_PLACEHOLDER in json.dumps(dict(container)):
        claim = {"claimName": f"{workflow}-{WORKSPACE}"}
        volumes.append({"name": WORKSPACE, "persistentVolumeClaim": claim})
        mounts.append({"name": WORKSPACE, "mountPath": WORKSPACE_PATH})
    if volumes:
        spec["volumes"] = volumes
        main["volumeMounts"] = mounts
    spec["containers"] = [main, *spec["containers"][1:]]
    return spec | _constraints(config)


def _constraints(config: Mapping[str, Any]) -> Json:
    constraints: Json = {}
    selector = (config.get("nodeSelector") or {}).get("labels")
    if selector:
        constraints["nodeSelector"] = dict(selector)
    tolerations = [_toleration(entry) for entry in config.get("tolerations") or []]
    if tolerations:
        constraints["tolerations"] = tolerations
    affinity = _affinity(config.get("nodeAffinity") or [])
    if affinity:
        constraints["affinity"] = {"nodeAffinity": affinity}
    if config.get("activeDeadlineSeconds"):
        constraints["activeDeadlineSeconds"] = int(config["activeDeadlineSeconds"])
    return constraints


def _toleration(entry: Mapping[str, Any]) -> Json:
    kept = {key: entry[key] for key in ("key", "operator", "value", "effect") if entry.get(key)}
    if entry.get("tolerationSeconds") is not None:
        kept["tolerationSeconds"] = int(entry["tolerationSeconds"])
    return kept


def _affinity(terms: list[Mapping[str, Any]]) -> Json:
    """Terms with a weight are preferred, those without required."""
    required, preferred = [], []
    for term in terms:
        keys = ("matchExpressions", "matchFields")
        selector = {key: term[key] for key in keys if term.get(key)}
        if term.get("weight") is None:
            required.append(selector)
        else:
            preferred.append({"weight": int(term["weight"]), "preference": selector})
    affinity: Json = {}
    if required:
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": required}
    if preferred:
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return affinity


def _claims(
    config: Mapping[str, Any], parameters: Mapping[str, str]
) -> tuple[list[Json], list[Json]]:
    volumes: list[Json] = []
    mounts: list[Json] = []
    for entry in config.get("pvcMount") or []:
        name = claim_name(entry, parameters)
        if name is None:
            continue
        if not any(volume["name"] == name for volume in volumes):
            volumes.append({"name": name, "persistentVolumeClaim": {"claimName": name}})
        mount = {"name": name, "mountPath": entry.get("mountPath", "")}
        if entry.get("subPath"):
            mount["subPath"] = entry["subPath"]
        mounts.append(mount)
    return volumes, mounts


def claim_name(entry: Mapping[str, Any], parameters: Mapping[str, str]) -> str | None:
    """The claim that a mount names; None where it comes from an input that nobody has told."""
    source = entry.get("pvcNameParameter") or {}
    constant = (source.get("runtimeValue") or {}).get("constant") or entry.get("constant")
    if constant:
        return str(constant)
    return parameters.get(source.get("componentInputParameter", ""))
