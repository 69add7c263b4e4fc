"""Kubernetes' strategic merge: mappings key by key, some lists entry by entry.

Whatever else is replaced (`apimachinery`, `util/strategicpatch`).
"""

from collections.abc import Mapping
from typing import Any

_NO_LISTS: Mapping[str, str] = {}
POD_LISTS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "resourceClaims": "name",
}
"""Lists of a pod's spec that a patch is merged into, with the key of their entries."""


def merge(low: Any, high: Any, lists: Mapping[str, str] = _NO_LISTS, name: str = "") -> Any:
    """Merge two values as Kubernetes does (strategic merge); what is not merged is that of `high`.

    Args:
        low: value that is replaced where the other one says something.
        high: value that wins.
        lists: fields that hold lists whose entries are merged, with the key by which two entries
            are the same. Other lists are replaced as a whole.
        name: field that holds the values.
    """
    if isinstance(low, dict) and isinstance(high, dict):
        return {
            **low,
            **{key: merge(low.get(key), value, lists, key) for key, value in high.items()},
        }
    if isinstance(low, list) and isinstance(high, list) and name in lists:
        return _merged_lists(low, high, lists, name)
    return low if high is None else high


def _merged_lists(
    low: list[Any], high: list[Any], lists: Mapping[str, str], name: str
) -> list[Any]:
    merged = [*low]
    places = {_identity(entry, lists[name]): index for index, entry in enumerate(low)}
    for entry in high:
        index = places.get(_identity(entry, lists[name]))
        if index is None:
            merged.append(entry)
        else:
            merged[index] = merge(merged[index], entry, lists)
    return merged


def _identity(entry: Any, key: str) -> str:
    return str(entry.get(key)) if isinstance(entry, dict) else ""
