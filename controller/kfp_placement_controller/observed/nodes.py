"""Nodes as the planner sees them: slim values made from the API server's objects."""

from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.readers.kubernetes.nodes import read_node
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_kube.kinds import JsonObject

_NODE = Place("node")


def observe_node(raw: JsonObject) -> Node:
    """Slim a node to the planner's view, without pods; malformed labels do not count.

    Raises:
        InputError: the node, or an amount in it, is malformed.
    """
    return read_node(Fields(raw, _NODE))[0]
