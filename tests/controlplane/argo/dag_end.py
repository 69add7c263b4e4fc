"""State of a DAG: still running, or ended, and how."""

from collections import deque

from tests.controlplane.argo.dag_graph import DagGraph
from tests.controlplane.argo.state import COMPLETED, UNSUCCESSFUL, Json, is_finished


def dag_phase(graph: DagGraph) -> str:
    """`Running`, or the phase a DAG ends in.

    A target that was omitted counts as ended in the way the branch before it did.
    """
    ends = {graph.node_id(name): "" for name in graph.targets}
    if not _walk(graph, ends):
        return "Running"
    result = "Succeeded"
    for name in graph.targets:
        end = ends[graph.node_id(name)]
        if not end:
            result = "Running"
        elif end in UNSUCCESSFUL:
            return end
    return result


def _walk(graph: DagGraph, ends: dict[str, str]) -> bool:
    """Note the phases of the targets; False when something is still to come."""
    nodes = graph.run.nodes
    waiting = deque((key, "Succeeded") for key in graph.node.get("children", []))
    seen = set(waiting)
    while waiting:
        key, branch = waiting.popleft()
        node = nodes.get(key)
        if node is None or not is_finished(node):
            return False
        if node["phase"] in COMPLETED:
            branch = node["phase"]
        if key in ends and ends[key] not in UNSUCCESSFUL:
            ends[key] = branch
        for child in _successors(nodes, node):
            if (child, branch) not in seen:
                seen.add((child, branch))
                waiting.append((child, branch))
    return True


def _successors(nodes: dict[str, Json], node: Json) -> list[str]:
    """The children of a node; of a Retry node, what comes after its attempts, and hooks."""
    if node["type"] != "Retry":
        return list(node.get("children", []))
    keys: list[str] = []
    for key in reversed(node.get("children", [])):
        child = nodes.get(key)
        if child is None or child.get("nodeFlag", {}).get("hooked"):
            keys.append(key)
        else:
            keys.extend(child.get("children", []))
    return keys
