"""A Workflow as the API server prints it, whoever has written it: its parts, which run it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kfp_placement_controller.sources.source import RunEnd, RunOwner
from kfp_placement_engine.contract.keys import MAX_RUN_NAME_CHARACTERS, RUN_NAME_ANNOTATION
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.readers.argo.keys import WORKFLOW_NAMES
from kfp_placement_engine.readers.argo.kfp_workflow import is_kfp_workflow
from kfp_placement_engine.units.times import read_moment
from kfp_placement_kube.kinds import Kind

WORKFLOWS = Kind(*WORKFLOW_NAMES)

_ENDS = {"Succeeded": RunEnd.SUCCEEDED, "Failed": RunEnd.FAILED, "Error": RunEnd.FAILED}


@dataclass(frozen=True, slots=True)
class WorkflowObject:
    """A Workflow; a part of it that is not what it should be counts as empty.

    Attributes:
        raw: all of it.
        metadata, spec, status: its parts.
    """

    raw: Mapping[str, Any]
    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    status: Mapping[str, Any]

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> "WorkflowObject":
        """Find its parts."""
        metadata, spec, status = (_mapping(raw.get(key)) for key in ("metadata", "spec", "status"))
        return cls(raw, metadata, spec, status)

    def identity(self) -> tuple[RunKey, RunOwner, datetime]:
        """Which run it is: its key, the Workflow itself, and when that was created.

        Raises:
            InputError: it has no name, no uid or no time of creation.
        """
        namespace, name, uid = (
            _text(self.metadata.get(key)) for key in ("namespace", "name", "uid")
        )
        created_at = read_moment(self.metadata.get("creationTimestamp"))
        if not name or not uid or created_at is None:
            raise InputError(f"Workflow {name!r:.80} has no name, uid or time of creation")
        return RunKey(namespace, name), RunOwner(WORKFLOWS, name, uid), created_at

    def annotation(self, key: str) -> str:
        """The text of one of its annotations, or ""."""
        return _text(_mapping(self.metadata.get("annotations")).get(key))

    @property
    def version(self) -> str:
        """Which version of the object this is."""
        return _text(self.metadata.get("resourceVersion"))

    @property
    def display_name(self) -> str:
        """What people call the run; "" = by its key."""
        return self.annotation(RUN_NAME_ANNOTATION)[:MAX_RUN_NAME_CHARACTERS]

    @property
    def is_pipeline(self) -> bool:
        """Whether KFP has made it."""
        return is_kfp_workflow(self.spec)

    @property
    def phase(self) -> str:
        """What Argo says of its life; "" = nothing yet."""
        return _text(self.status.get("phase"))

    @property
    def end(self) -> RunEnd | None:
        """How it has ended by its phase; None = it goes on."""
        return _ENDS.get(self.phase)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
