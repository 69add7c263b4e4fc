"""What is kept from a node."""

from collections.abc import Mapping
from typing import Any

from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.readers.kubernetes.nodes import read_node
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place

_NODE = Place("node")


def observe_node(raw: Mapping[str, Any]) -> Node:
    """A node as the planner sees it, with nothing on it; labels that cannot be read do not count.

    Raises:
        InputError: it is malformed, or an amount in it is malformed.
    """
    return read_node(Fields(raw, _NODE))[0]
