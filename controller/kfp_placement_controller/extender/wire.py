"""Messages between kube-scheduler and an extender: `k8s.io/kube-scheduler/extender/v1`.

The structs have no JSON tags: fields have Go's names (`NodeNames`), nothing is left out, empty is
null, and Go reads them in any case. Only node names travel (`nodeCacheCapable: true`).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

from kfp_placement_engine.exceptions import InputError, LimitError
from kfp_placement_kube.kinds import JsonObject

MAX_NODES = 20_000
"""Largest number of nodes in a request; Kubernetes supports 5,000."""

MAX_SCORE = 10
"""Highest score of a node: Go's `MaxExtenderPriority`."""


class ExtenderArgs(NamedTuple):
    """A question of kube-scheduler: which of these nodes may take this pod.

    Attributes:
        pod: the pod as the API server prints it.
        node_names: nodes that take it by kube-scheduler's own filters.
    """

    pod: JsonObject
    node_names: tuple[str, ...]


def read_args(body: bytes) -> ExtenderArgs:
    """Read a question.

    Raises:
        LimitError: more nodes than we look at.
        InputError: it is not a question, or it holds whole nodes instead of names.
    """
    fields = _fields(body)
    pod, names = fields.get("pod"), fields.get("nodenames")
    if not isinstance(pod, dict):
        raise InputError("ExtenderArgs: Pod must be an object")
    if not isinstance(names, list):
        raise InputError(
            "ExtenderArgs: NodeNames must be a list; set nodeCacheCapable: true in the scheduler's "
            "configuration"
        )
    if len(names) > MAX_NODES:
        raise LimitError(f"ExtenderArgs: {len(names)} nodes; at most {MAX_NODES} are looked at")
    if not {*map(type, names)} <= {str}:
        odd = next(name for name in names if not isinstance(name, str))
        raise InputError(f"ExtenderArgs: {odd!r:.80} is not a name of a node")
    return ExtenderArgs(pod, tuple(names))


def unchanged(body: bytes) -> bytes | None:
    """Return the reply to `filter` that keeps every node of a question that could not be read.

    It is None where the body is not a JSON object: there is nothing that could be kept.
    """
    try:
        fields = _fields(body)
    except InputError:
        return None
    return filter_json(fields.get("nodenames"), {}, fields.get("nodes"))


def filter_json(
    node_names: Sequence[str] | None, unresolvable: Mapping[str, str], nodes: object = None
) -> bytes:
    """Return the reply to `filter`.

    Args:
        node_names: nodes that remain of the offered ones.
        unresolvable: objection to every offered node, where none remains; such nodes are not tried
            for preemption.
        nodes: nodes that remain as whole objects, where the question had them.
    """
    return orjson.dumps(
        {
            "Nodes": nodes,
            "NodeNames": node_names,
            "FailedNodes": None,
            "FailedAndUnresolvableNodes": unresolvable or None,
            "Error": "",
        }
    )


def priorities_json(points: Mapping[str, int]) -> bytes:
    """Return the reply to `prioritize`, a bare list with 0 to 10 points for every node."""
    return orjson.dumps([{"Host": name, "Score": score} for name, score in points.items()])


def _fields(body: bytes) -> JsonObject:
    """Return the fields of a question, by their names in lower case."""
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InputError(f"ExtenderArgs must be JSON: {error!s:.120}") from error
    if not isinstance(fields, dict):
        raise InputError("ExtenderArgs must be an object")
    return {name.lower(): value for name, value in fields.items()}
