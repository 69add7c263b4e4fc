"""Dialects of Workflows, by who made them: which KFP, or somebody else.

A dialect shows in the structure of the Workflow. Its labels do not tell: admins may change them.
Names of KFP's templates and arguments are kept here alone, since KFP 3 is not released and may
change them.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.argo.keys import KFP_POD_LABEL
from kfp_placement_engine.readers.text.place import Place, mapping_or_empty

CONTAINER_DRIVER = "system-container-driver"
DAG_DRIVER = "system-dag-driver"
CONTAINER_EXECUTOR = "system-container-executor"
IMPORTER = "system-importer"

_OLD_ROOT = "pipelines.kubeflow.org/components-root"
_ROOT = "components-root"
_PARENT_TASK = "parent-dag-task-id"
_DRIVER_CONTAINER = "kfp-driver"


class Dialect(StrEnum):
    """Dialect of a Workflow, as text for people."""

    PLAIN = "not KFP"
    BEFORE_2_3 = "KFP before 2.3"
    KFP_2 = "KFP 2.3 or later"
    KFP_3 = "KFP 3"
    AGENT_DRIVER = "a draft of KFP whose drivers run in one agent pod (kubeflow/pipelines 13171)"
    INIT_DRIVER = "a draft of KFP whose drivers are init containers (kubeflow/pipelines 13258)"
    UNKNOWN = "a KFP that is not known here"

    @property
    def is_kfp(self) -> bool:
        """True for KFP's Workflows, readable or not, but those that are read as plain ones."""
        return self not in (Dialect.PLAIN, Dialect.BEFORE_2_3)


def dialect_of(spec: Mapping[str, Any], metadata: Mapping[str, Any]) -> Dialect:
    """Return the dialect of a Workflow; any part of it may be malformed.

    Args:
        spec: the Workflow's spec.
        metadata: the Workflow's metadata.
    """
    if _OLD_ROOT in mapping_or_empty(metadata.get("annotations")):
        return Dialect.BEFORE_2_3
    driver = next((each for each in _named(spec, "templates") if each["name"] == DAG_DRIVER), None)
    if any(each["name"] == _ROOT for each in _named(spec.get("arguments"), "parameters")):
        if driver is not None and "plugin" in driver:
            return Dialect.AGENT_DRIVER
        containers = (_named(each, "initContainers") for each in _named(spec, "templates"))
        if any(each["name"] == _DRIVER_CONTAINER for listed in containers for each in listed):
            return Dialect.INIT_DRIVER
        return Dialect.KFP_2
    if driver is None:
        labels = mapping_or_empty(mapping_or_empty(spec.get("podMetadata")).get("labels"))
        return Dialect.UNKNOWN if KFP_POD_LABEL in labels else Dialect.PLAIN
    inputs = _named(driver.get("inputs"), "parameters")
    is_3 = any(each["name"] == _PARENT_TASK for each in inputs)
    return Dialect.KFP_3 if is_3 else Dialect.UNKNOWN


def readable_dialect(spec: Mapping[str, Any], metadata: Mapping[str, Any], place: Place) -> Dialect:
    """Return the dialect of a Workflow that can be read.

    Args:
        spec: the Workflow's spec.
        metadata: the Workflow's metadata.
        place: place of the Workflow, for messages.

    Raises:
        InputError: it is of a KFP whose Workflows are not read; as a plain Workflow it would give a
            plan of another run.
    """
    dialect = dialect_of(spec, metadata)
    if dialect in (Dialect.AGENT_DRIVER, Dialect.INIT_DRIVER, Dialect.UNKNOWN):
        raise _unreadable(dialect, place)
    return dialect


def is_executor(template: str) -> bool:
    """Return whether a template executes steps, after their driver."""
    return template.endswith(CONTAINER_EXECUTOR)


def _unreadable(dialect: Dialect, place: Place) -> InputError:
    return place.error(
        f"this Workflow is made by {dialect}, which cannot be read: plan the pipeline package"
        " instead"
    )


def _named(holder: object, key: str) -> Iterator[dict[str, Any]]:
    """Yield the entries of a list that are mappings with a name."""
    entries = mapping_or_empty(holder).get(key)
    if isinstance(entries, list):
        yield from (each for each in entries if isinstance(each, dict) and "name" in each)
