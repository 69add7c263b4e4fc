"""Takes our scheduling gate off pods, whatever others write into them in the meantime."""

import logging
from functools import partial
from http import HTTPStatus

from kfp_placement_engine.contract.gates import Pin
from kfp_placement_engine.readers.kubernetes.gates import opening_patch
from kfp_placement_kube.client import KubeClient, modify
from kfp_placement_kube.exceptions import KubernetesError, NotFoundError
from kfp_placement_kube.kinds import PODS, JsonObject

_LOG = logging.getLogger(__name__)


def open_gate(
    client: KubeClient, namespace: str, name: str, uid: str, pin: Pin | None = None
) -> bool:
    """Take our gate off a pod; returns False if there was nothing to do any more.

    A pin that the API server refuses is left out, and the log says so: a pod that goes anywhere
    is better than one that waits for us.

    Args:
        client: the API server.
        namespace: namespace of the pod.
        name: name of the pod.
        uid: identifier of the pod; a later one of the same name is left alone.
        pin: nodes that the pod may go to; None = anywhere.

    Raises:
        InputError: the pod is malformed.
        KubernetesError: refused, or no answer.
    """

    def write(pod: JsonObject | None, pin: Pin | None) -> bool:
        patch = opening_patch(pod, uid, pin)
        if patch is None:
            return False
        client.patch(PODS, name, namespace, patch)
        return True

    read = partial(client.get, PODS, name, namespace)
    try:
        return modify(read(), partial(write, pin=pin), read)
    except NotFoundError:
        return False
    except KubernetesError as error:
        if pin is None or error.status != HTTPStatus.UNPROCESSABLE_ENTITY:
            raise
        _LOG.warning("pod %s/%s is let go without its pin: %s", namespace, name, error)
    return open_gate(client, namespace, name, uid)
