"""Strategic merge patches, as Kubernetes merges pod specs and Argo its templates."""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

MERGE_KEYS: Mapping[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "sidecars": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "templates": "name",
    "parameters": "name",
    "ownerReferences": "uid",
}
"""Lists whose entries are merged by a key; all others are replaced as a whole."""


def strategic_merge(original: Any, patch: Any, field: str = "") -> Any:
    """The original with a patch laid over it; neither is changed.

    Args:
        original: what there is, or None.
        patch: what shall be; `null` removes, `$patch` directives are followed.
        field: the name of the field both are the value of.
    """
    if isinstance(patch, dict):
        return _merged_object(original if isinstance(original, dict) else {}, patch)
    if isinstance(patch, list):
        key = MERGE_KEYS.get(field)
        if key is not None and all(isinstance(entry, dict) for entry in patch):
            return _merged_list(original if isinstance(original, list) else [], patch, key)
    return patch


def _merged_object(original: Json, patch: Json) -> Json:
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    merged = dict(original)
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = strategic_merge(merged.get(key), value, key)
    return merged


def _merged_list(original: list[Json], patch: list[Json], key: str) -> list[Json]:
    if any(entry.get("$patch") == "replace" for entry in patch):
        return [entry for entry in patch if "$patch" not in entry]
    merged = list(original)
    for entry in patch:
        if key not in entry:
            merged.append(entry)
            continue
        places = [n for n, old in enumerate(merged) if old.get(key) == entry[key]]
        if entry.get("$patch") == "delete":
            merged = [old for old in merged if old.get(key) != entry[key]]
        elif places:
            merged[places[0]] = _merged_object(merged[places[0]], entry)
        else:
            merged.append(entry)
    return merged
