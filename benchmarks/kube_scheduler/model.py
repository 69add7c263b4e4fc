"""One decision of kube-scheduler's stock profile, from state to node (`schedule_one.go`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from benchmarks.kube_scheduler.filters import PodFilter, named_nodes
from benchmarks.kube_scheduler.pod import Pod
from benchmarks.kube_scheduler.scores import weighted_scores
from benchmarks.kube_scheduler.state import NodeState, SchedulerState

TIES = ("heap", "first", "random")

_ALL_BELOW_NODES = 100
_LEAST_PERCENTAGE = 5


@dataclass(frozen=True)
class Decision:
    """Decision of the scheduler for one pod, and its reasons.

    Attributes:
        node: the chosen node's name; None if the pod is unschedulable.
        feasible: names of the nodes found to fit, in the order found.
        scores: node -> plugin -> weighted score; empty with at most one feasible node.
        totals: node -> sum of its scores.
        best: the feasible nodes of the highest total, in the order found.
        refused: node -> why not, for the nodes looked at.
        next_start_index: index at which the next search starts.
    """

    node: str | None
    feasible: tuple[str, ...] = ()
    scores: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    totals: Mapping[str, int] = field(default_factory=dict)
    best: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    next_start_index: int = 0


@dataclass(frozen=True)
class KubeScheduler:
    """kube-scheduler with its default profile, without extenders.

    Attributes:
        version: (major, minor) whose formulas hold; they changed with 1.36.
        ties: rule for several best nodes: `heap` as since 1.35, `first` in the list, or `random`.
        percentage_of_nodes_to_score: 0 = adaptive, the default; matters from 100 nodes on.
    """

    version: tuple[int, int] = (1, 36)
    ties: str = "heap"
    percentage_of_nodes_to_score: int = 0

    def __post_init__(self) -> None:
        """Refuse an unknown tie-break."""
        if self.ties not in TIES:
            raise ValueError(f"ties = {self.ties!r}; it must be one of {', '.join(TIES)}")

    def decide(self, pod: Pod, state: SchedulerState, rng: Random | None = None) -> Decision:
        """Choose a node for the pod; changes nothing.

        Args:
            pod: the pod.
            state: the nodes and what runs on them.
            rng: needed for `random` ties.
        """
        feasible_nodes, refused, next_start = self._find(pod, state)
        names = tuple(node.node.name for node in feasible_nodes)
        if len(feasible_nodes) < 2:
            return Decision(
                names[0] if names else None,
                feasible=names,
                best=names,
                refused=refused,
                next_start_index=next_start,
            )
        scores = self.scores(pod, state, names)
        totals = {name: sum(row.values()) for name, row in scores.items()}
        best = tuple(name for name in names if totals[name] == max(totals.values()))
        return Decision(
            self.choose(names, totals, rng),
            feasible=names,
            scores=scores,
            totals=totals,
            best=best,
            refused=refused,
            next_start_index=next_start,
        )

    def schedule(self, pod: Pod, state: SchedulerState, rng: Random | None = None) -> Decision:
        """Decide, then put the pod on the chosen node and move the search's start."""
        decision = self.decide(pod, state, rng)
        state.start_index = decision.next_start_index
        if decision.node is not None:
            state.bind(pod, decision.node)
        return decision

    def fitting(self, pod: Pod, state: SchedulerState) -> tuple[str, ...]:
        """Names of all nodes that can take the pod, in the state's order, none left out."""
        checks = PodFilter(pod, state)
        return tuple(node.node.name for node in state.nodes if checks.why_not(node) is None)

    def scores(
        self, pod: Pod, state: SchedulerState, names: Sequence[str]
    ) -> dict[str, dict[str, int]]:
        """Weighted scores of the named nodes as the feasible ones: node -> plugin -> score."""
        rows = weighted_scores(pod, state, [state.on(name) for name in names], self.version)
        return dict(zip(names, rows, strict=True))

    def choose(
        self, names: Sequence[str], totals: Mapping[str, int], rng: Random | None = None
    ) -> str:
        """One of the nodes with the highest total, by the rule of `ties`.

        Args:
            names: the feasible nodes, at least one, in the order found.
            totals: total scores of the nodes.
            rng: needed for `random` ties.
        """
        if self.ties == "heap":
            return names[heap_top([totals[name] for name in names])]
        most = max(totals[name] for name in names)
        best = [name for name in names if totals[name] == most]
        if self.ties == "first":
            return best[0]
        if rng is None:
            raise ValueError("ties = 'random' needs a random generator")
        return rng.choice(best)

    def nodes_to_find(self, nodes: int) -> int:
        """Return the number of feasible nodes that ends the search (numFeasibleNodesToFind)."""
        if nodes < _ALL_BELOW_NODES:
            return nodes
        percentage = self.percentage_of_nodes_to_score
        if percentage == 0:
            percentage = max(_LEAST_PERCENTAGE, 50 - nodes // 125)
        return max(_ALL_BELOW_NODES, nodes * percentage // 100)

    def _find(self, pod: Pod, state: SchedulerState) -> tuple[list[NodeState], dict[str, str], int]:
        candidates = state.nodes
        named = named_nodes(pod)
        if named is not None:
            if not named:
                reason = "pod affinity terms conflict"
                refused = {node.node.name: reason for node in candidates}
                return [], refused, state.start_index
            candidates = [node for node in candidates if node.node.name in named]
        checks = PodFilter(pod, state)
        wanted = self.nodes_to_find(len(candidates))
        feasible_nodes: list[NodeState] = []
        refused = {}
        for offset in range(len(candidates)):
            if len(feasible_nodes) == wanted:
                break
            node = candidates[(state.start_index + offset) % len(candidates)]
            reason_against = checks.why_not(node)
            if reason_against is None:
                feasible_nodes.append(node)
            else:
                refused[node.node.name] = reason_against
        examined = len(feasible_nodes) + len(refused)
        return feasible_nodes, refused, (state.start_index + examined) % max(1, len(state.nodes))


def heap_top(totals: Sequence[int]) -> int:
    """Index that Go's `heap.Init` brings to the top when a node is less if its total is greater.

    Since 1.35 this is what decides among equal totals (schedule_one.go, newSortedNodeScores).
    """
    order = list(range(len(totals)))
    for start in reversed(range(len(order) // 2)):
        parent = start
        while (child := 2 * parent + 1) < len(order):
            if child + 1 < len(order) and totals[order[child + 1]] > totals[order[child]]:
                child += 1
            if totals[order[child]] <= totals[order[parent]]:
                break
            order[parent], order[child] = order[child], order[parent]
            parent = child
    return order[0]
