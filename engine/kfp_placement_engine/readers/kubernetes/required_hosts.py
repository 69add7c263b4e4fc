"""The hosts that a pod requires, as a pod with a hard latency limit does once its gate is off."""

from kfp_placement_engine.contract.gates import REQUIRED
from kfp_placement_engine.contract.keys import HOST_LABEL, NO_NODE_WITHIN
from kfp_placement_engine.readers.text.fields import Fields


def requires_hosts(pod: Fields) -> bool:
    """Return whether a pod's node affinity requires one of some hosts.

    Of several terms one is enough for the scheduler, so each of them must name hosts.

    Args:
        pod: the pod, as the API server prints it.

    Raises:
        InputError: the pod is malformed.
    """
    terms = _required_hosts(pod)
    return bool(terms) and all(terms)


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
        for hosts in _required_hosts(pod)
        for host in hosts
    )


def _required_hosts(pod: Fields) -> list[list[object]]:
    """Return the hosts that each required term names; an empty one matches no node."""
    required = pod.flat("spec").flat("affinity").flat("nodeAffinity").flat(REQUIRED)
    return [
        [
            host
            for expression in term.each_flat("matchExpressions")
            if (expression.get("key"), expression.get("operator")) == (HOST_LABEL, "In")
            for host in expression.entries("values")
        ]
        for term in required.each_flat("nodeSelectorTerms")
        if term
    ]
