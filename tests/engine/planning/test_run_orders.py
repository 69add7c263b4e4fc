"""Several runs in the order of their work, as a search starts from it."""

from kfp_placement_engine import ActiveRun, LoweringOptions
from kfp_placement_engine.lowering import lower_runs
from kfp_placement_engine.search.genetic import starting_schedules
from tests.support.builders import ROUND_NUMBERS, a_cluster, a_node, a_run, a_step

OPTIONS = LoweringOptions(dispatch="ordered", assumptions=ROUND_NUMBERS)
ONE_AT_A_TIME = a_cluster(a_node("node", cpu=1))


def test_a_search_starts_where_runs_complete_earliest():
    """Smith's rule is optimal on one machine: 10, 30 and 60 s."""
    runs = [
        ActiveRun(f"run-{seconds}", a_run(a_step("only", seconds=seconds)))
        for seconds in (30, 10, 20)
    ]
    problem = lower_runs(runs, ONE_AT_A_TIME, OPTIONS).problem
    assert min(each.end.sum() for each in starting_schedules(problem, 0)) == 100.0
