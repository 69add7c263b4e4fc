"""Deletes pods that wait for a dead scheduler: they cannot change it; their runs make others."""

from functools import partial

from kfp_placement_engine.readers.fields import Fields, Place
from kfp_placement_kube.answers import JsonObject
from kfp_placement_kube.client import KubeClient, modify
from kfp_placement_kube.kinds import PODS

_POD = Place("pod")


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

    def write(pod: JsonObject | None) -> bool:
        if pod is None:
            return False
        raw = Fields(pod, _POD)
        metadata = raw.mapping("metadata")
        bound = raw.mapping("spec").get("nodeName")
        if bound or metadata.get("uid") != uid or metadata.get("deletionTimestamp") is not None:
            return False
        version = metadata.get("resourceVersion", "")
        return client.delete(PODS, name, namespace, uid=uid, resource_version=version)

    read = partial(client.get, PODS, name, namespace)
    return modify(read(), write, read)
