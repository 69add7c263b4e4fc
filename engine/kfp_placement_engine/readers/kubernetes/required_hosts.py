"""The hosts that a pod requires, as a pod with a hard latency limit does once its gate is off."""

from collections.abc import Iterator

from kfp_placement_engine.contract.gates import REQUIRED
from kfp_placement_engine.contract.keys import HOST_LABEL, NO_NODE_WITHIN
from kfp_placement_engine.readers.text.fields import Fields


def requires_hosts(pod: Fields) -> bool:
    """Return whether a required term of a pod's node affinity names hosts.

    Args:
        pod: the pod, as the API server prints it.

    Raises:
        InputError: the pod is malformed.
    """
    return any(True for _ in _host_expressions(pod))


def is_unsatisfiable(pod: Fields) -> bool:
    """Return whether a pod requires a host that does not exist, since no node was within its limit.

    Its requirement cannot be changed once its gate is off, so the pod waits until it is deleted.

    Args:
        pod: the pod, as the API server prints it.

    Raises:
        InputError: the pod is malformed.
    """
    return any(
        isinstance(host, str) and host.startswith(NO_NODE_WITHIN)
        for each in _host_expressions(pod)
        for host in each.entries("values")
    )


def _host_expressions(pod: Fields) -> Iterator[Fields]:
    affinity = pod.flat("spec").flat("affinity")
    if not affinity:
        return
    required = affinity.flat("nodeAffinity").flat(REQUIRED)
    for term in required.each_flat("nodeSelectorTerms"):
        for expression in term.each_flat("matchExpressions"):
            if expression.get("key") == HOST_LABEL:
                yield expression
