"""A Workflow from the API server, any part of which may be malformed."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from kfp_placement_controller.sources.source import RunEnd, RunOwner
from kfp_placement_engine.contract.keys import (
    MAX_RUN_NAME_CHARACTERS,
    RUN_ID_LABEL,
    RUN_NAME_ANNOTATION,
)
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.readers.argo.holds import has_ended
from kfp_placement_engine.readers.argo.keys import WORKFLOW_NAMES
from kfp_placement_engine.readers.argo.kfp_dialect import Dialect, dialect_of
from kfp_placement_engine.readers.text.place import mapping_or_empty, text_or_empty
from kfp_placement_engine.units.times import read_moment
from kfp_placement_kube.kinds import JsonObject, Kind

WORKFLOWS = Kind(*WORKFLOW_NAMES)

_ENDS = {"Succeeded": RunEnd.SUCCEEDED, "Failed": RunEnd.FAILED, "Error": RunEnd.FAILED}


class WorkflowIdentity(NamedTuple):
    """The run that a Workflow is.

    Attributes:
        key: namespace and name.
        owner: the Workflow, as the owner of other objects of the run.
        created_at: creation time.
    """

    key: RunKey
    owner: RunOwner
    created_at: datetime


@dataclass(frozen=True, slots=True)
class WorkflowObject:
    """A Workflow; a malformed part of it counts as empty.

    Attributes:
        raw: the whole object.
        metadata: metadata of the Workflow.
        spec: spec of the Workflow.
        status: status of the Workflow.
    """

    raw: JsonObject
    metadata: JsonObject
    spec: JsonObject
    status: JsonObject

    @classmethod
    def of(cls, raw: JsonObject) -> "WorkflowObject":
        """Split a Workflow into its parts."""
        metadata, spec, status = (
            mapping_or_empty(raw.get(key)) for key in ("metadata", "spec", "status")
        )
        return cls(raw, metadata, spec, status)

    def identity(self) -> WorkflowIdentity:
        """Return the run that the Workflow is.

        Raises:
            InputError: the Workflow has no name, no uid or no creation time.
        """
        namespace, name, uid = (
            text_or_empty(self.metadata.get(key)) for key in ("namespace", "name", "uid")
        )
        created_at = read_moment(self.metadata.get("creationTimestamp"))
        if not name or not uid or created_at is None:
            raise InputError(f"Workflow {name!r:.80} has no name, uid or time of creation")
        key, owner = RunKey(namespace, name), RunOwner(WORKFLOWS, name, uid)
        return WorkflowIdentity(key, owner, created_at)

    def annotation(self, key: str) -> str:
        """Return the text of an annotation; "" = there is none."""
        return text_or_empty(mapping_or_empty(self.metadata.get("annotations")).get(key))

    @property
    def version(self) -> str:
        """Resource version of the object."""
        return text_or_empty(self.metadata.get("resourceVersion"))

    @property
    def display_name(self) -> str:
        """Name that people gave the run; "" = they gave none."""
        return self.annotation(RUN_NAME_ANNOTATION)[:MAX_RUN_NAME_CHARACTERS]

    @property
    def is_pipeline(self) -> bool:
        """Return whether KFP has created the Workflow."""
        return dialect_of(self.spec, self.metadata).is_kfp

    @property
    def package_id(self) -> str | None:
        """Id by which KFP's API has the package of the run; None = it needs none, or has no id."""
        labels = mapping_or_empty(self.metadata.get("labels"))
        if RUN_ID_LABEL not in labels or dialect_of(self.spec, self.metadata) is not Dialect.KFP_3:
            return None
        return text_or_empty(labels[RUN_ID_LABEL])

    @property
    def phase(self) -> str:
        """Phase that Argo has written, such as `Running`; "" = none yet."""
        return text_or_empty(self.status.get("phase"))

    @property
    def end(self) -> RunEnd | None:
        """Outcome of the run; None = it has not ended.

        Argo goes on with a Workflow of any phase until its label calls it completed, and ignores it
        from then on, whoever has written either. Without the phase of an end it counts as failed.
        """
        return _ENDS.get(self.phase, RunEnd.FAILED) if has_ended(self.raw) else None
