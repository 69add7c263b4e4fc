"""Strategic merge patches, as Kubernetes merges pod specs and Argo its templates."""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

MERGE_KEYS: Mapping[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
}
"""Lists whose entries are merged by a key; all others are replaced as a whole."""


def strategic_merge(original: Any, patch: Any, field: str = "") -> Any:
    """The original with a patch laid over it; neither is changed.

    Args:
        original: value that is there; None if there is none.
        patch: value to lay over it; `null` removes.
        field: the name of the field both are the value of.
    """
    if isinstance(patch, dict):
        return _merged_object(original if isinstance(original, dict) else {}, patch)
    if isinstance(patch, list) and field in MERGE_KEYS:
        return _merged_list(original or [], patch, MERGE_KEYS[field])
    return patch


def _merged_object(original: Json, patch: Json) -> Json:
    merged = {key: value for key, value in original.items() if patch.get(key, value) is not None}
    merged |= {
        key: strategic_merge(original.get(key), value, key)
        for key, value in patch.items()
        if value is not None
    }
    return merged


def _merged_list(original: list[Json], patch: list[Json], key: str) -> list[Json]:
    patches = {entry[key]: entry for entry in patch}
    merged = [_merged_object(entry, patches.pop(entry[key], {})) for entry in original]
    return [*merged, *patches.values()]
