"""How much longer steps take on a node than elsewhere, learned from how forecasts missed there."""

import math
from collections import deque
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from kfp_placement_engine.history.changes import robust_deviation
from kfp_placement_engine.history.recent import Recent
from kfp_placement_engine.model.cluster import Node

RUNS_KEPT = 50
"""Runs of which a node's misses are kept."""

LEAST_RUNS = 3
"""With fewer runs of its own a namespace believes what others saw of as many, if that is enough."""

LEAST_PODS, LEAST_NAMESPACES = 20, 2
"""A node must have run this many pods of this many namespaces before all share its factor."""

MOST_NODES, MOST_NAMESPACES = 5_000, 100

_MOST_LOG = math.log(20)
"""No node is more than this much faster or slower than its speed says."""

_SHARE_THAT_DIFFERS, _DEVIATION_OF_NODES = 0.5, 0.4
"""How many nodes are not as fast as their speed says, and how far these lie apart (logarithms)."""

_DEVIATION_OF_RUNS, _WEIGHT = 0.2, 4
"""How far apart runs see one node before anything is known, and how many runs it takes to know that
as well. Of few runs a slow one looks like a slow node."""

_LEAST_AGREEING = 2
"""One run alone may have been slow, or had other arguments, wherever it was."""

_MOST_EXPONENT = 700.0

_LEAST_LOG = 0.01
"""What moves no plan is not worth being told."""

_MEDIAN_ERROR = 1.2533
"""Standard error of the median of normal values over that of their mean."""


def as_fast_as_seen(node: Node, log_factor: float) -> Node:
    """A node on which steps take longer than its speed says, by a factor."""
    return replace(node, speed=node.speed * math.exp(-log_factor)) if log_factor else node


@dataclass
class _Witness:
    """What the runs of one namespace saw on a node: their misses, and how many pods there were."""

    misses: deque[float] = field(default_factory=lambda: deque(maxlen=RUNS_KEPT))
    pods: int = 0


class NodeFactors:
    """Factors of all nodes, starting from their speeds; shared by the histories of all namespaces.

    A run says of a node by how much longer steps took there than on the others of its nodes: its
    steps are slow together, so they are one witness. The less the witnesses agree, the less a
    factor counts. A namespace believes its own runs first, then the median of what namespaces saw.

    Attributes:
        version: counts what was learned.
    """

    def __init__(self, speeds: Mapping[str, float] | None = None) -> None:
        """Begin with what is known.

        Args:
            speeds: of nodes, relative to the reference node; those not named have 1.
        """
        self._speeds = dict(speeds or {})
        self._seen: Recent[str, Recent[str, _Witness]] = Recent(MOST_NODES)
        self._only_node: Recent[str, str] = Recent(MOST_NAMESPACES)
        self._learned: dict[str, dict[str, float]] = {}
        self.version = 0

    def log_factor(self, node: str, namespace: str) -> float:
        """Logarithm of the time on the node over that on the reference node."""
        return self.learned(node, namespace) - math.log(self._speeds.get(node, 1.0))

    def learned(self, node: str, namespace: str) -> float:
        """The part of it that the declared speed does not explain, as one namespace may know it."""
        known = self._learned.setdefault(node, {})
        if namespace not in known:
            known[namespace] = self._of_witnesses(node, namespace)
        return known[namespace]

    def know_speed(self, node: str, speed: float) -> None:
        """What a node's speed is said to be now, relative to the reference node."""
        if self._speeds.get(node, 1.0) != speed:
            self._speeds[node] = speed
            self.version += 1

    def without(self, namespace: str) -> "NodeFactors":
        """A copy for the runs of a namespace that are observed again: without what they saw."""
        copy = NodeFactors(self._speeds)
        for node, witnesses in self._seen.items():
            others = copy._seen.used(node, lambda: Recent(MOST_NAMESPACES))
            others.update({name: each for name, each in witnesses.items() if name != namespace})
        nodes = self._only_node.items()
        copy._only_node.update({name: node for name, node in nodes if name != namespace})
        return copy

    def take(self, namespace: str, observed: "NodeFactors") -> None:
        """Replace what the runs of a namespace saw by what they saw when observed again.

        Args:
            namespace: of the runs.
            observed: such a copy.
        """
        for witnesses in self._seen.values():
            witnesses.pop(namespace, None)
        for node, witness in observed.seen_by(namespace):
            self._seen.used(node, lambda: Recent(MOST_NAMESPACES)).put(namespace, witness)
        only = observed.only_node(namespace)
        if only is not None:
            self._only_node.put(namespace, only)
        self._learned.clear()
        self.version += 1

    def only_node(self, namespace: str) -> str | None:
        """The only node that the runs of a namespace have had; "" = several, None = none yet."""
        return self._only_node.get(namespace)

    def seen_by(self, namespace: str) -> Iterator[tuple[str, _Witness]]:
        """What the runs of a namespace saw, by node."""
        for node, witnesses in self._seen.items():
            if namespace in witnesses:
                yield node, witnesses[namespace]

    def learn(self, namespace: str, misses: Mapping[str, Sequence[float]]) -> None:
        """Take what one run saw.

        Args:
            namespace: of the run.
            misses: logarithms of true over forecast time, by node, each as if the node had only its
                declared speed.
        """
        medians = {node: median(each) for node, each in misses.items() if node and each}
        # Of a run on one node alone it is not known whether the run or the node was slow.
        usual = median(medians.values()) if len(medians) > 1 else 0.0
        self._forget_learned(medians.keys())
        self._note_nodes(namespace, medians)
        for node, miss in medians.items():
            witnesses = self._seen.used(node, lambda: Recent(MOST_NAMESPACES))
            witness = witnesses.used(namespace, _Witness)
            witness.misses.append(max(-_MOST_LOG, min(_MOST_LOG, miss - usual)))
            witness.pods += len(misses[node])
        self.version += bool(medians)

    def _note_nodes(self, namespace: str, nodes: Iterable[str]) -> None:
        """Keep the only node of a namespace, or that it has several."""
        for node in nodes:
            only = self._only_node.get(namespace)
            if only is None:
                self._only_node.put(namespace, node)
            elif only not in ("", node):
                self._only_node.put(namespace, "")
                self._learned.clear()

    def _forget_learned(self, nodes: KeysView[str]) -> None:
        """What was learned of nodes that a run saw now."""
        # A new node may drive out another; and nodes may be asked for that no run saw.
        if not nodes <= self._seen.keys() or len(self._learned) > MOST_NODES:
            self._learned.clear()
        for node in nodes:
            self._learned.pop(node, None)

    def _of_witnesses(self, node: str, namespace: str) -> float:
        witnesses = self._seen.get(node)
        if witnesses is None:
            return 0.0
        # Of one node alone there is nothing that it could be compared with.
        compared = {
            name: each for name, each in witnesses.items() if self._only_node.get(name) == ""
        }
        own = compared.get(namespace)
        if own is not None and len(own.misses) >= LEAST_RUNS:
            return _agreed(own.misses)
        pods = sum(each.pods for each in compared.values())
        if pods >= LEAST_PODS and len(compared) >= LEAST_NAMESPACES:
            return median(
                _agreed(each.misses) if len(each.misses) >= LEAST_RUNS else 0.0
                for each in compared.values()
            )
        return 0.0 if own is None else _agreed(own.misses)


def _agreed(misses: Sequence[float]) -> float:
    """What runs agree on, as far as it is not chance: the mean of a spike-and-slab posterior.

    Many nodes are as fast as their speed says, and only those that are not lie apart (Mitchell and
    Beauchamp 1988). So small differences between equal nodes hardly count, and large ones do.
    """
    runs = len(misses)
    if runs < _LEAST_AGREEING:
        return 0.0
    centre = median(misses)
    deviation = robust_deviation([each - centre for each in misses])
    known = _WEIGHT * _DEVIATION_OF_RUNS**2 + (runs - 1) * deviation**2
    error = _MEDIAN_ERROR**2 * known / (_WEIGHT + runs - 1) / runs
    apart = _DEVIATION_OF_NODES**2
    # How much more likely such a median is of a node that differs than of one that does not.
    exponent = centre**2 / 2 * (1 / error - 1 / (error + apart))
    odds = math.sqrt(error / (error + apart)) * math.exp(min(exponent, _MOST_EXPONENT))
    differs = odds / (1 / _SHARE_THAT_DIFFERS - 1 + odds)
    found = centre * differs * apart / (apart + error)
    return found if abs(found) >= _LEAST_LOG else 0.0
