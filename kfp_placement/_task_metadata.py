"""Pod labels and annotations of KFP tasks: the only module that calls `kfp.kubernetes`.

We remember what we wrote to a task, so that a later `place` replaces our own values and none that
the author wrote with `kfp.kubernetes`. A label of the author with the same value as ours counts as
ours: `kfp.kubernetes` writes all labels again at every call, so nothing tells them apart.
"""

from weakref import WeakKeyDictionary

from kfp import dsl, kubernetes

_Entries = dict[str, str]
"""Labels or annotations."""

_PLATFORM = "kubernetes"
_written: WeakKeyDictionary[dsl.PipelineTask, _Entries] = WeakKeyDictionary()


def labels_of(task: dsl.PipelineTask) -> _Entries:
    """Return the pod labels of a task."""
    return dict(_metadata(task).get("labels", {}))


def annotations_of(task: dsl.PipelineTask) -> _Entries:
    """Return the pod annotations of a task."""
    return dict(_metadata(task).get("annotations", {}))


def set_label(task: dsl.PipelineTask, key: str, value: str) -> None:
    """Write a pod label and remember that it is ours."""
    kubernetes.add_pod_label(task, key, value)
    remember(task, key, value)


def set_annotation(task: dsl.PipelineTask, key: str, value: str) -> None:
    """Write a pod annotation and remember that it is ours."""
    kubernetes.add_pod_annotation(task, key, value)
    remember(task, key, value)


def remove_label(task: dsl.PipelineTask, key: str) -> None:
    """Remove a pod label; `kfp.kubernetes` has no function for it."""
    metadata = _metadata(task)
    labels = metadata.get("labels", {})
    labels.pop(key, None)
    # No empty mapping may stay: the package must look as if the label had never been there.
    if not labels:
        metadata.pop("labels", None)
    config = task.platform_config.get(_PLATFORM, {})
    if not metadata:
        config.pop("podMetadata", None)
    if not config:
        task.platform_config.pop(_PLATFORM, None)


def remember(task: dsl.PipelineTask, key: str, value: str) -> None:
    """Remember a value that we wrote: of a label, an annotation, or the scheduler."""
    _written.setdefault(task, {})[key] = value


def remembered(task: dsl.PipelineTask, key: str) -> str | None:
    """Return the value that we last wrote for a key, or None if we wrote none."""
    return _written.get(task, {}).get(key)


def _metadata(task: dsl.PipelineTask) -> dict[str, _Entries]:
    config: dict[str, dict[str, _Entries]] = task.platform_config.get(_PLATFORM, {})
    return config.get("podMetadata", {})
