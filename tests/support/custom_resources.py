"""Custom resource definitions on a real API server, and an object for it."""

import contextlib
import uuid
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from http import HTTPStatus

from kfp_placement_kube.kinds import JsonObject
from tests.controlplane.api import Api
from tests.controlplane.exceptions import ApiError
from tests.controlplane.waiting import wait_until
from tests.support.structural_schemas import MANIFESTS, crds, documents

CRD_VERSION = "apiextensions.k8s.io/v1"
DEFINITION = "CustomResourceDefinition"

_TOUCHED = "test.kfp-placement.dev/touched"


@contextlib.contextmanager
def installed_crds(api: Api, definitions: Iterable[JsonObject] | None = None) -> Iterator[None]:
    """Install definitions; they go again with all their objects, and are gone then.

    Args:
        api: the server, as someone who may do this.
        definitions: definitions to install; by default those of `deploy/crds`.
    """
    wanted = list(crds().values() if definitions is None else definitions)
    for crd in wanted:
        api.create(crd)
    wait_until(lambda: all(is_served(api, crd) for crd in wanted), "kinds to be served")
    try:
        yield
    finally:
        remove_crds(api, wanted)


def a_placement(namespace: str) -> JsonObject:
    """The sample PipelinePlacement in a namespace.

    It has no owner: its Workflow does not exist there, and the garbage collector would remove it.
    """
    (taxi,) = documents(MANIFESTS / "pipelineplacement-taxi.yaml")
    taxi["metadata"]["namespace"] = namespace
    del taxi["metadata"]["ownerReferences"]
    return taxi


def a_history(namespace: str) -> JsonObject:
    """The sample PipelineHistory in a namespace."""
    (taxi,) = documents(MANIFESTS / "pipelinehistory.yaml")
    taxi["metadata"]["namespace"] = namespace
    return taxi


def remove_crds(api: Api, definitions: Sequence[JsonObject]) -> None:
    """Delete definitions with all their objects, and wait until they are gone.

    The server lists the objects first. That fails if nobody has asked for the kind before ("storage
    is (re)initializing"), and the next try may come minutes later: in Kubernetes 1.36 it takes the
    note of the failure for a change by others, and waits for a notification of one. So everything
    is asked for first, and a definition whose objects could not be listed is touched.
    """
    for crd in definitions:
        if _find(api, crd) is not None:
            wait_until(partial(is_served, api, crd), f"{_name(crd)} to be served")
    for crd in definitions:
        api.delete(crd)
    wait_until(
        lambda: not any(_is_left(api, crd) for crd in definitions),
        "kinds to be gone",
        timeout_seconds=90.0,
        state=lambda: [_find(api, crd) for crd in definitions],
    )


def is_served(api: Api, definition: JsonObject) -> bool:
    """Return whether objects can be read; an established definition may lack storage at first."""
    spec = definition["spec"]
    version = f"{spec['group']}/{spec['versions'][0]['name']}"
    try:
        api.list(version, spec["names"]["kind"])
    except ApiError as error:
        if error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.TOO_MANY_REQUESTS):
            return False
        raise
    return True


def _is_left(api: Api, definition: JsonObject) -> bool:
    """Return whether a deleted definition is still there; one that is stuck is touched."""
    left = _find(api, definition)
    if left is None:
        return False
    reasons = {each["reason"] for each in left.get("status", {}).get("conditions") or []}
    if "InstanceDeletionFailed" in reasons:
        with contextlib.suppress(ApiError):  # gone at this moment
            api.patch(left, {"metadata": {"annotations": {_TOUCHED: uuid.uuid4().hex}}})
    return True


def _find(api: Api, definition: JsonObject) -> JsonObject | None:
    return api.find(CRD_VERSION, DEFINITION, _name(definition))


def _name(definition: JsonObject) -> str:
    return str(definition["metadata"]["name"])
