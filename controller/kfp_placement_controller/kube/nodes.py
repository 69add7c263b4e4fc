"""What is kept of a node: the engine's noun, and what was odd about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kfp_placement_engine.cluster import Node
from kfp_placement_engine.readers.node_objects import read_node
from kfp_placement_engine.run_graph import Notice


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
        InputError: it has another form, or an amount in it is malformed.
    """
    node, notices = read_node(raw, "node")
    return ObservedNode(node, tuple(notices))
