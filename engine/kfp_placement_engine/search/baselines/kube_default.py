"""The default scheduler: non-blocking queue, filters and scores on the state of the moment."""

from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.simulation import Schedule, simulate_policy


def kube_default(problem: PlacementProblem, seed: int = 0) -> Schedule:
    """What kube-scheduler's stock profile would do with the run.

    Pods are offered in order of creation; one that fits nowhere is skipped and tried again when
    something ends. Scores are TaintToleration, NodeAffinity, NodeResourcesFit, BalancedAllocation
    (by `problem.kube_version`) and ImageLocality; PodTopologySpread and InterPodAffinity skip the
    pods of a pipeline. Ties fall as the nodes are listed; `tie_breaks` has other ways. The seed is
    not used.
    """
    return simulate_policy(problem, native.KUBE_DEFAULT)
