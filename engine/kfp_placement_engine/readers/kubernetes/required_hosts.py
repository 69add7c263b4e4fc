"""The hosts that a pod requires, as one under a hard latency limit does once its gate is off."""

from collections.abc import Iterator

from kfp_placement_engine.contract.keys import HOST_LABEL, NO_NODE_WITHIN
from kfp_placement_engine.readers.text.fields import Fields

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def requires_hosts(pod: Fields) -> bool:
    """Whether a required term of its node affinity asks for hosts.

    Args:
        pod: as the API server prints it.

    Raises:
        InputError: it is malformed.
    """
    return any(True for _ in _asked(pod))


def is_unsatisfiable(pod: Fields) -> bool:
    """Whether it requires a host that there is none of: no node was within its limit.

    What a pod requires cannot be changed once its gate is off, so it waits until it is deleted.

    Args:
        pod: as the API server prints it.

    Raises:
        InputError: it is malformed.
    """
    return any(
        isinstance(host, str) and host.startswith(NO_NODE_WITHIN)
        for each in _asked(pod)
        for host in each.entries("values")
    )


def _asked(pod: Fields) -> Iterator[Fields]:
    affinity = pod.flat("spec").flat("affinity")
    if not affinity:
        return
    required = affinity.flat("nodeAffinity").flat(_REQUIRED)
    for term in required.each_flat("nodeSelectorTerms"):
        for expression in term.each_flat("matchExpressions"):
            if expression.get("key") == HOST_LABEL:
                yield expression
