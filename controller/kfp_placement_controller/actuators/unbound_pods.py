"""Deletes pods that wait for a dead scheduler: they cannot change it, and Argo makes them anew."""

from kfp_placement_engine.readers.fields import as_mapping
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.exceptions import ConflictError
from kfp_placement_kube.kinds import PODS

MAX_TRIES = 5
"""Writes that others may come before."""


def delete_unbound(client: KubeClient, namespace: str, name: str, uid: str) -> bool:
    """Delete a pod unless it has been bound to a node, also at the last moment.

    Args:
        client: the API server.
        namespace: of the pod.
        name: of the pod.
        uid: of the pod; a later one of the same name is left alone.

    Returns:
        Whether it was deleted by this.

    Raises:
        InputError: the pod has another form.
        KubernetesError: refused, or no answer.
    """
    for tries_left in reversed(range(MAX_TRIES)):
        pod = client.get(PODS, name, namespace)
        if pod is None:
            return False
        metadata = as_mapping(pod.get("metadata"), "pod: metadata")
        bound = as_mapping(pod.get("spec"), "pod: spec").get("nodeName")
        if bound or metadata.get("uid") != uid or metadata.get("deletionTimestamp") is not None:
            return False
        version = metadata.get("resourceVersion", "")
        try:
            return client.delete(PODS, name, namespace, uid=uid, resource_version=version)
        except ConflictError:
            if not tries_left:
                raise
    return False
