"""InterPodAffinity: which pods a pod wants near it (`plugins/interpodaffinity`)."""

from collections import Counter
from collections.abc import Sequence

from benchmarks.kube_scheduler.pod import Pod, PodAffinityTerm
from benchmarks.kube_scheduler.state import NodeState, SchedulerState

_HARD_AFFINITY_WEIGHT = 1
"""Weight of an existing pod's required affinity term in scores (hardPodAffinityWeight)."""

_Domain = tuple[str, str]


class InterPodFilter:
    """Required affinity and anti-affinity of one pod against one state (`filtering.go`)."""

    def __init__(self, pod: Pod, state: SchedulerState) -> None:
        self._pod = pod
        self._state = state
        self._attracting: set[_Domain] = set()
        self._repelling: set[_Domain] = set()
        self._refusing: set[_Domain] = set()
        for node in state.nodes:
            for existing in node.pods:
                self._note(node, existing)

    def why_not(self, node: NodeState) -> str | None:
        """Return the reason against a node, or None."""
        if not self._attracted(node):
            return "node(s) didn't match pod affinity rules"
        if self._repelling & {_domain(node, each) for each in self._pod.pod_anti_affinity.required}:
            return "node(s) didn't match pod anti-affinity rules"
        if self._refusing & set(node.node.labels.items()):
            return "node(s) didn't satisfy existing pods anti-affinity rules"
        return None

    def _note(self, node: NodeState, existing: Pod) -> None:
        labels = self._state.namespace_labels
        affinity = self._pod.pod_affinity.required
        if affinity and all(
            each.selects(existing, labels(existing.namespace)) for each in affinity
        ):
            self._attracting |= _domains(node, affinity)
        for term in self._pod.pod_anti_affinity.required:
            if term.selects(existing, labels(existing.namespace)):
                self._repelling |= _domains(node, [term])
        for term in existing.pod_anti_affinity.required:
            if term.selects(self._pod, labels(self._pod.namespace)):
                self._refusing |= _domains(node, [term])

    def _attracted(self, node: NodeState) -> bool:
        terms = self._pod.pod_affinity.required
        domains = _domains(node, terms)
        if len(domains) < len({each.topology_key for each in terms}):
            return False
        if domains <= self._attracting:
            return True
        # The first of a group of pods with affinity to one another may go anywhere.
        labels = self._state.namespace_labels(self._pod.namespace)
        return not self._attracting and all(each.selects(self._pod, labels) for each in terms)


def inter_pod_scores(
    pod: Pod, state: SchedulerState, feasible: Sequence[NodeState]
) -> list[int] | None:
    """Scores 0 to 100 by node; None if no term of any pod matched anything (`scoring.go`)."""
    weights: Counter[_Domain] = Counter()
    touched: set[_Domain] = set()
    for node in state.nodes:
        for existing in node.pods:
            for term, weight in _matching_terms(pod, existing, state):
                for domain in _domains(node, [term]):
                    weights[domain] += weight
                    touched.add(domain)
    if not touched or not feasible:
        return None
    raw = [sum(weights[domain] for domain in node.node.labels.items()) for node in feasible]
    least, spread = min(raw), max(raw) - min(raw)
    if spread == 0:
        return [0 for _ in raw]
    return [int(100.0 * (float(score - least) / float(spread))) for score in raw]


def _matching_terms(
    pod: Pod, existing: Pod, state: SchedulerState
) -> list[tuple[PodAffinityTerm, int]]:
    """Terms by which the incoming and the existing pod attract or repel each other, weighted."""
    existing_labels = state.namespace_labels(existing.namespace)
    own_labels = state.namespace_labels(pod.namespace)
    incoming = [(each.term, each.weight) for each in pod.pod_affinity.preferred]
    incoming += [(each.term, -each.weight) for each in pod.pod_anti_affinity.preferred]
    theirs = [(term, _HARD_AFFINITY_WEIGHT) for term in existing.pod_affinity.required]
    theirs += [(each.term, each.weight) for each in existing.pod_affinity.preferred]
    theirs += [(each.term, -each.weight) for each in existing.pod_anti_affinity.preferred]
    return [each for each in incoming if each[0].selects(existing, existing_labels)] + [
        each for each in theirs if each[0].selects(pod, own_labels)
    ]


def _domain(node: NodeState, term: PodAffinityTerm) -> _Domain | None:
    value = node.node.labels.get(term.topology_key)
    return None if value is None else (term.topology_key, value)


def _domains(node: NodeState, terms: Sequence[PodAffinityTerm]) -> set[_Domain]:
    domains = (_domain(node, term) for term in terms)
    return {domain for domain in domains if domain is not None}
