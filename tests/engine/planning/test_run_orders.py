"""Several runs in the order of their work, as a search starts from it."""

from kfp_placement_engine import ActiveRun, LoweringOptions, PlacementProblem
from kfp_placement_engine.lowering import lower_runs
from kfp_placement_engine.search.genetic import seeds_of
from tests.support.builders import ROUND_NUMBERS, a_cluster, a_node, a_run, a_step

OPTIONS = LoweringOptions(dispatch="ordered", assumptions=ROUND_NUMBERS)
ONE_AT_A_TIME = a_cluster(a_node("node", cpu=1))


def runs_of(seconds: list[float], weights: list[float]) -> PlacementProblem:
    """A run of one step for each time; the node has room for one at a time."""
    runs = [
        ActiveRun(f"run-{number}", a_run(a_step("only", seconds=each)), weight=weight)
        for number, (each, weight) in enumerate(zip(seconds, weights, strict=True))
    ]
    return lower_runs(runs, ONE_AT_A_TIME, OPTIONS).problem


def test_a_search_starts_where_runs_complete_earliest():
    """Smith's rule is optimal on one machine: 10, 30 and 60 s."""
    problem = runs_of([30.0, 10.0, 20.0], [1.0, 1.0, 1.0])
    starts = [each.schedule for some in seeds_of(problem) for each in some]
    assert min(each.end.sum() for each in starts) == 100.0
