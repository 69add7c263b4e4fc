"""RunRequests: the planner writes what runs need; the status is the queue's."""

from kfp_placement_controller.kinds import RUN_REQUESTS
from kfp_placement_controller.planning.actions import DeleteRequest, WriteRequest
from kfp_placement_engine.contract.fields import ObjectMetadata, OwnerReference
from kfp_placement_engine.contract.resources import RunRequest
from kfp_placement_kube.answers import JsonObject
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.exceptions import ConflictError, NotFoundError


def write_request(client: KubeClient, write: WriteRequest) -> None:
    """Write a RunRequest; if somebody has written it since, nothing happens.

    Raises:
        KubernetesError: refused, or no answer.
    """
    namespace, name = write.key
    try:
        if not write.version:
            client.create(RUN_REQUESTS, _new(write))
            return
        spec = write.spec.model_dump(mode="json", by_alias=True)
        patch = {"metadata": {"resourceVersion": write.version}, "spec": spec}
        client.patch(RUN_REQUESTS, name, namespace, patch)
    except (ConflictError, NotFoundError):
        # What there is now comes by the watch, and is compared again.
        return


def delete_request(client: KubeClient, delete: DeleteRequest) -> None:
    """Delete a RunRequest that is not of the run of its name.

    Raises:
        KubernetesError: refused, or no answer.
    """
    namespace, name = delete.key
    client.delete(RUN_REQUESTS, name, namespace, uid=delete.uid)


def _new(write: WriteRequest) -> JsonObject:
    kind = write.owner.kind
    owner = OwnerReference(
        api_version=kind.api_version, kind=kind.kind, name=write.owner.name, uid=write.owner.uid
    )
    metadata = ObjectMetadata(
        name=write.key.name, namespace=write.key.namespace, owner_references=(owner,)
    )
    return RunRequest(metadata=metadata, spec=write.spec).to_object()
