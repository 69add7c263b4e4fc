"""Pod labels and annotations of KFP tasks: the only module that calls `kfp.kubernetes`.

What we wrote on a task is remembered beside it, so that a later `place` may replace our own values
but none that the author wrote with `kfp.kubernetes`. That builds all labels again at every call, so
a label of the author's that says the same as ours is not distinguished from ours.
"""

from weakref import WeakKeyDictionary

from kfp import dsl, kubernetes

_PLATFORM = "kubernetes"
_written: WeakKeyDictionary[dsl.PipelineTask, dict[str, str]] = WeakKeyDictionary()


def labels_of(task: dsl.PipelineTask) -> dict[str, str]:
    """The pod labels of the task as they are."""
    return dict(_metadata(task).get("labels", {}))


def annotations_of(task: dsl.PipelineTask) -> dict[str, str]:
    """The pod annotations of the task as they are."""
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
    """Take a pod label off; `kfp.kubernetes` has no function for it."""
    metadata = _metadata(task)
    labels = metadata.get("labels", {})
    labels.pop(key, None)
    # Nothing may be left behind: a package must look as if the label had never been there.
    if not labels:
        metadata.pop("labels", None)
    config = task.platform_config.get(_PLATFORM, {})
    if not metadata:
        config.pop("podMetadata", None)
    if not config:
        task.platform_config.pop(_PLATFORM, None)


def remember(task: dsl.PipelineTask, key: str, value: str) -> None:
    """Remember what we set `key` (a label, an annotation, the scheduler asked for) to."""
    _written.setdefault(task, {})[key] = value


def remembered(task: dsl.PipelineTask, key: str) -> str | None:
    """What we last set `key` to, or None."""
    return _written.get(task, {}).get(key)


def _metadata(task: dsl.PipelineTask) -> dict[str, dict[str, str]]:
    config: dict[str, dict[str, dict[str, str]]] = task.platform_config.get(_PLATFORM, {})
    return config.get("podMetadata", {})
