"""What is kept from a node: the engine's noun, and what was odd about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.run_graph import Notice
from kfp_placement_engine.readers.fields import Fields
from kfp_placement_engine.readers.kubernetes.nodes import read_node
from kfp_placement_engine.readers.place import Place

_NODE = Place("node")


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """A node.

    Attributes:
        node: as the planner sees it; nothing runs on it.
        notices: labels that could not be read, and the like.
    """

    node: Node
    notices: tuple[Notice, ...]


def observe_node(raw: Mapping[str, Any]) -> ObservedNode:
    """Keep what matters of a node as the API server prints it.

    Raises:
        InputError: it is malformed, or an amount in it is malformed.
    """
    node, notices = read_node(Fields(raw, _NODE))
    return ObservedNode(node, tuple(notices))
