"""How much longer steps take on a node than elsewhere, learned from how forecasts missed there."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

RUNS_KEPT = 50
"""Runs of which a node's misses are kept."""

LEAST_RUNS = 3
"""Before, a node's misses are not told from those of the runs that were on it."""

LEAST_PODS, LEAST_NAMESPACES = 20, 2
"""A node must have run this many pods of this many namespaces before all share its factor."""

MOST_NODES = 5_000

_SHRINKAGE = 5
"""A factor of n runs counts by n / (n + 5)."""

_DEVIATION = 1.4826
"""Standard deviation of normal values over their median absolute deviation."""

_MEDIAN_ERROR = 1.2533
"""Standard error of the median of normal values over that of their mean."""


@dataclass(frozen=True)
class _Seen:
    """What one run saw on a node."""

    namespace: str
    miss: float
    pods: int


class NodeFactors:
    """Factors of all nodes, starting from their speeds; shared by the histories of all namespaces.

    A run says of a node the median by which forecasts missed there: many steps of one run miss
    together, so they are one witness. Factors that the witnesses do not agree on are not used.

    Attributes:
        version: counts what was learned.
    """

    def __init__(self, speeds: Mapping[str, float] | None = None) -> None:
        """Begin with what is known.

        Args:
            speeds: of nodes, relative to the reference node; those not named have 1.
        """
        self._speeds = dict(speeds or {})
        self._seen: dict[str, deque[_Seen]] = {}
        self._learned: dict[tuple[str, str], float] = {}
        self.version = 0

    def log_factor(self, node: str, namespace: str) -> float:
        """Logarithm of the time on the node over that on the reference node."""
        return self.learned(node, namespace) - math.log(self._speeds.get(node, 1.0))

    def learned(self, node: str, namespace: str) -> float:
        """The part of it that the declared speed does not explain, as one namespace may know it."""
        if (node, namespace) not in self._learned:
            self._learned[node, namespace] = self._of_witnesses(node, namespace)
        return self._learned[node, namespace]

    def learn(self, namespace: str, misses: Mapping[str, Sequence[float]]) -> None:
        """Take what one run saw.

        Args:
            namespace: of the run.
            misses: logarithms of true over forecast time, by node, each as if the node had only its
                declared speed.
        """
        for node, found in misses.items():
            if not node or not found:
                continue
            seen = self._seen.pop(node, deque(maxlen=RUNS_KEPT))
            seen.append(_Seen(namespace, median(found), len(found)))
            self._seen[node] = seen
        while len(self._seen) > MOST_NODES:
            del self._seen[next(iter(self._seen))]
        self._learned.clear()
        self.version += 1

    def _of_witnesses(self, node: str, namespace: str) -> float:
        seen = self._seen.get(node, ())
        pods, namespaces = sum(each.pods for each in seen), {each.namespace for each in seen}
        is_shared = pods >= LEAST_PODS and len(namespaces) >= LEAST_NAMESPACES
        misses = [each.miss for each in seen if is_shared or each.namespace == namespace]
        runs = len(misses)
        if runs < LEAST_RUNS:
            return 0.0
        centre = median(misses)
        deviation = _DEVIATION * median(abs(each - centre) for each in misses)
        error = _MEDIAN_ERROR * deviation / math.sqrt(runs)
        shrunk = abs(centre) * runs / (runs + _SHRINKAGE)
        return math.copysign(max(0.0, shrunk - error), centre)
