"""Knowledge of kube-scheduler at a decision: nodes, their pods, start of the next search."""

from collections.abc import Iterable, Mapping

from benchmarks.kube_scheduler.pod import HostPort, Pod
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.units.resources import add_to, free_room, with_pod

# The old name wins where a node has both (`component-helpers/node/topology`).
_ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGION_LABELS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")


class NodeState:
    """A node and what is taken on it.

    Attributes:
        node: the node; its `used` room is taken from the start.
        pods: the pods bound to it since.
        requested: real requests of both, `pods` included.
        scored_cpu: CPU as the resource scores count it, in milli-CPU.
        scored_memory: memory as the resource scores count it, in bytes.
        host_ports: ports taken.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self.pods: list[Pod] = []
        self.requested: dict[str, int] = dict(node.used)
        self.scored_cpu = node.scored_used.get("cpu", 0)
        self.scored_memory = node.scored_used.get("memory", 0)
        self.host_ports: set[HostPort] = set()

    def add(self, pod: Pod) -> None:
        """Take the pod's room."""
        self.pods.append(pod)
        add_to(self.requested, with_pod(pod.requests))
        self.scored_cpu += pod.scored_requests.get("cpu", 0)
        self.scored_memory += pod.scored_requests.get("memory", 0)
        self.host_ports.update(pod.host_ports)

    def free(self) -> dict[str, int]:
        """Room left; negative where more is taken than there is."""
        return free_room(self.node.allocatable, self.requested)


class SchedulerState:
    """Nodes in the order in which kube-scheduler goes through them, with their pods.

    Attributes:
        nodes: the nodes' states.
        start_index: index at which the next search for feasible nodes starts.
        image_scores: score of a node for an image that it holds.
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        bound: Iterable[Pod] = (),
        namespaces: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Put the bound pods on their nodes.

        Args:
            nodes: the cluster's nodes.
            bound: pods with a `node_name`; those on unknown nodes are left out.
            namespaces: labels of namespaces, for affinity terms that select by them.
        """
        given = tuple(nodes)
        self.nodes = [NodeState(node) for node in zone_interleaved(given)]
        self.start_index = 0
        self.image_scores = scaled_sizes(given)
        self._by_name = {state.node.name: state for state in self.nodes}
        self._namespaces = namespaces or {}
        for pod in bound:
            if pod.node_name in self._by_name:
                self.bind(pod, pod.node_name)

    def on(self, name: str) -> NodeState:
        """Return the node of that name.

        Raises:
            KeyError: there is none.
        """
        return self._by_name[name]

    def bind(self, pod: Pod, node_name: str) -> None:
        """Put a pod on a node.

        Raises:
            KeyError: there is no such node.
        """
        self._by_name[node_name].add(pod)

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Labels of a namespace; none where they are not known."""
        return self._namespaces.get(namespace, {})


def scaled_sizes(nodes: Iterable[Node]) -> dict[str, int]:
    """Return a node's score for an image that it holds: size times share of nodes that hold it.

    The size is the one that the first node with that name reports; all nodes count, feasible or not
    (`backend/cache/cache.go`, addNodeImageStates; scaledImageScore).
    """
    sizes: dict[str, int] = {}
    holders: dict[str, int] = {}
    total = 0
    for node in nodes:
        total += 1
        for name, size_bytes in node.images.items():
            sizes.setdefault(name, size_bytes)
            holders[name] = holders.get(name, 0) + 1
    return {
        name: int(float(size_bytes) * (float(holders[name]) / float(total)))
        for name, size_bytes in sizes.items()
    }


def zone_interleaved(nodes: Iterable[Node]) -> list[Node]:
    """Yield a node of each zone in turn, as kube-scheduler does (`backend/cache/node_tree.go`)."""
    zones: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        zones.setdefault((_first(node, _REGION_LABELS), _first(node, _ZONE_LABELS)), []).append(
            node
        )
    longest = max((len(members) for members in zones.values()), default=0)
    return [
        members[index]
        for index in range(longest)
        for members in zones.values()
        if index < len(members)
    ]


def _first(node: Node, keys: tuple[str, ...]) -> str:
    return next((node.labels[key] for key in keys if key in node.labels), "")
