"""Writes of PipelinePlacements: by the leading planner alone, and never over a later planner's.

This is safe whoever leads: every write names the version that it is based on, whose epoch has been
checked. The API server refuses lower epochs again.
"""

import logging
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

from kfp_placement_controller.actuators.objects import merge_patch
from kfp_placement_controller.exceptions import SupersededError
from kfp_placement_controller.kinds import PLACEMENTS
from kfp_placement_engine.contract.custom_resources import PipelinePlacement
from kfp_placement_engine.contract.placement import PipelinePlacementStatus
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_kube.client import KubeClient, modify
from kfp_placement_kube.exceptions import KubernetesError, NotFoundError, WriteConflictError
from kfp_placement_kube.kinds import JsonObject

_LOG = logging.getLogger(__name__)

MOST_EPOCH = 1_000_000
"""Leaders do not change that often: a higher epoch was made up, and must not stop any leader.

Far below 2**31, to which a Lease counts: it never ends, whatever epoch somebody makes up.
"""


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """Version of a stored placement that the next write is based on.

    Attributes:
        uid: identifier of the object.
        resource_version: version of the object.
        workflow_uid: identifier of the run that the object describes.
        epoch: epoch of the planner that wrote the object.
        is_going: whether the object has been deleted, and only its finalizers keep it.
    """

    uid: str
    resource_version: str
    workflow_uid: str
    epoch: int
    is_going: bool = False


def stored_version(raw: JsonObject) -> StoredVersion:
    """Read a placement's version, whatever else it holds.

    Raises:
        InputError: it is malformed.
    """
    placement = Fields(raw, Place("placement"))
    metadata, spec = placement.flat("metadata"), placement.flat("spec")
    return StoredVersion(
        metadata.text("uid"),
        metadata.text("resourceVersion"),
        spec.text("workflowUID"),
        spec.count("epoch", maximum=2**53),
        metadata.get("deletionTimestamp") is not None,
    )


@dataclass
class PlacementWriter:
    """Writes the placements of the leading planner."""

    client: KubeClient

    def write_plan(
        self, placement: PipelinePlacement, version: StoredVersion | None
    ) -> StoredVersion:
        """Write the plan; the status stays as it is.

        Args:
            placement: placement to write; its name, namespace and owner count when it is new.
            version: version that was last seen; None = no version.

        Raises:
            SupersededError: a planner of a higher epoch has written.
            KubernetesError: refused, or no answer.
        """
        try:
            return self._write(placement, version, {"spec": merge_patch(placement.spec)})
        except KubernetesError as error:
            # What the server's rules forbid, even if only because of what is stored already.
            if error.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
            return self._made_anew(placement)

    def write_status(self, placement: PipelinePlacement, version: StoredVersion) -> StoredVersion:
        """Write what happened to the run; the plan stays as it is.

        Args:
            placement: placement to write, with its status.
            version: version that was last seen.

        Raises:
            NotFoundError: there is none: write the plan first.
            SupersededError: a planner of a higher epoch has written.
            KubernetesError: refused, or no answer.
        """
        status = placement.status or PipelinePlacementStatus()
        return self._write(placement, version, {"status": merge_patch(status)}, "status")

    def _write(
        self,
        placement: PipelinePlacement,
        version: StoredVersion | None,
        patch: JsonObject,
        part: str = "",
    ) -> StoredVersion:
        """Write the plan, or a part of the object that must be there: `status`."""
        name, namespace = _name_of(placement)
        if version is not None and not _goes_on_from(placement, version):
            version = self._current(placement)

        def write(version: StoredVersion | None) -> StoredVersion:
            if version is None:
                if part:
                    raise NotFoundError(404, "NotFound", f"no placement {namespace}/{name}")
                return self._create(placement)
            _check_epoch(placement, version)
            versioned = {"metadata": {"resourceVersion": version.resource_version}, **patch}
            return stored_version(
                self.client.patch(PLACEMENTS, name, namespace, versioned, subresource=part)
            )

        # Without a plan there is nothing that a status could be written into.
        retry_on = (WriteConflictError,) if part else (WriteConflictError, NotFoundError)
        return modify(version, write, partial(self._current, placement), retry_on=retry_on)

    def _current(self, placement: PipelinePlacement) -> StoredVersion | None:
        """Return the version that is stored now; one that no write can go on from is removed."""
        name, namespace = _name_of(placement)
        raw = self.client.get(PLACEMENTS, name, namespace)
        if raw is None:
            return None
        try:
            current = stored_version(raw)
        except InputError as error:
            _LOG.warning("placement %s/%s is removed: %s", namespace, name, error)
        else:
            if _goes_on_from(placement, current):
                return current
            _LOG.info("placement %s/%s is of an earlier run, or of no run", namespace, name)
        self.client.delete(PLACEMENTS, name, namespace, uid=raw["metadata"]["uid"])
        return None

    def _made_anew(self, placement: PipelinePlacement) -> StoredVersion:
        """Put a plan into the place of one that the server holds against it.

        A new object is refused for what it says before it is refused for its name; so the existing
        object is removed only if the plan itself is valid.
        """
        try:
            return self._create(placement)
        except WriteConflictError:
            current = self._current(placement)
        if current is not None:
            _check_epoch(placement, current)
            name, namespace = _name_of(placement)
            if current.is_going:
                why = f"placement {namespace}/{name} is deleted, but a finalizer keeps it"
                raise WriteConflictError(HTTPStatus.CONFLICT, "Conflict", why)
            _LOG.warning("placement %s/%s cannot be changed into ours: made again", namespace, name)
            self.client.delete(PLACEMENTS, name, namespace, uid=current.uid)
        return self._create(placement)

    def _create(self, placement: PipelinePlacement) -> StoredVersion:
        body = {key: value for key, value in placement.to_object().items() if key != "status"}
        return stored_version(self.client.create(PLACEMENTS, body))


def _name_of(placement: PipelinePlacement) -> tuple[str, str]:
    return placement.metadata.name or "", placement.metadata.namespace or ""


def _goes_on_from(placement: PipelinePlacement, stored: StoredVersion) -> bool:
    """Return whether both are of one run, and a planner may have written the stored one.

    Up to our own epoch nothing is in the way of a write, however high ours has become.
    """
    most = max(MOST_EPOCH, placement.spec.epoch)
    return stored.workflow_uid == placement.spec.workflow_uid and stored.epoch <= most


def _check_epoch(placement: PipelinePlacement, stored: StoredVersion) -> None:
    if stored.epoch > placement.spec.epoch:
        name, namespace = _name_of(placement)
        raise SupersededError(
            409,
            "Superseded",
            f"placement {namespace}/{name} was written in epoch {stored.epoch}, ours is"
            f" {placement.spec.epoch}: another planner leads",
        )
