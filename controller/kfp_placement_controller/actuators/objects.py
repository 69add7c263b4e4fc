"""Lists of our objects, and patches of their parts."""

import logging
from collections.abc import Callable
from typing import TypeVar

from kfp_placement_engine.contract.shared_parts import ResourceModel
from kfp_placement_engine.exceptions import InputError
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.kinds import JsonObject, Kind, key_of

T = TypeVar("T")

_LOG = logging.getLogger(__name__)


def listed_objects(
    client: KubeClient, kind: Kind, read: Callable[[JsonObject], T | None]
) -> list[T]:
    """Return all objects of a kind as they are now; one that cannot be read is left out.

    Args:
        client: the API server.
        kind: kind of the objects.
        read: reader of one object; returns None for one of no interest.

    Raises:
        KubernetesError: refused, or no answer.
    """
    objects = []
    for raw in client.list(kind).items:
        try:
            objects.append(read(raw))
        except InputError as error:
            _LOG.warning("%s %s/%s is not read: %.300s", kind.kind, *key_of(raw), error)
    return [each for each in objects if each is not None]


def merge_patch(part: ResourceModel) -> JsonObject:
    """Return a part of an object as a merge patch: a field that is no longer set is removed."""
    unset: JsonObject = {
        field.alias or name: None for name, field in type(part).model_fields.items()
    }
    return unset | part.model_dump(mode="json", by_alias=True, exclude_none=True)
