"""The hosts that a pod requires, as one under a hard latency limit does once its gate is off."""

from collections.abc import Iterator, Mapping
from typing import Any

from kfp_placement_engine.contract.keys import HOST_LABEL, NO_NODE_WITHIN
from kfp_placement_engine.readers.fields import as_list, as_mapping


def requires_hosts(pod: Mapping[str, Any], place: str) -> bool:
    """Whether a required term of its node affinity asks for hosts.

    Args:
        pod: as the API server prints it.
        place: where it is, for errors.

    Raises:
        InputError: it has another form.
    """
    return any(True for _ in _asked(pod, place))


def is_barred(pod: Mapping[str, Any], place: str) -> bool:
    """Whether it requires a host that there is none of: no node was within its limit.

    What a pod requires cannot be changed once its gate is off, so it waits until it is deleted.

    Args:
        pod: as the API server prints it.
        place: where it is, for errors.

    Raises:
        InputError: it has another form.
    """
    return any(
        isinstance(host, str) and host.startswith(NO_NODE_WITHIN)
        for each in _asked(pod, place)
        for host in as_list(each.get("values"), place)
    )


def _asked(pod: Mapping[str, Any], place: str) -> Iterator[Mapping[str, Any]]:
    spec = as_mapping(pod.get("spec"), place)
    affinity = as_mapping(spec.get("affinity"), place)
    nodes = as_mapping(affinity.get("nodeAffinity"), place)
    required = as_mapping(nodes.get("requiredDuringSchedulingIgnoredDuringExecution"), place)
    for term in as_list(required.get("nodeSelectorTerms"), place):
        for item in as_list(as_mapping(term, place).get("matchExpressions"), place):
            expression = as_mapping(item, place)
            if expression.get("key") == HOST_LABEL:
                yield expression
