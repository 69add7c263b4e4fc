import math
from dataclasses import replace

from kfp_placement_engine.plans.comparison import Figures
from kfp_placement_engine.views.formatting import NONE
from kfp_placement_engine.views.plans.comparison import (
    comparison_table,
    difference_text,
    shows_latency,
    spread,
)
from tests.support.plans import a_plan, a_step, ends_after


def against(makespan, *, mine=100.0, unplaced=0, **changes):
    plan = a_plan(figures=ends_after(mine), **changes)
    return difference_text(plan, ends_after(makespan, unplaced=unplaced))


def test_verdicts():
    assert against(125.0) == "20.0% shorter"
    assert against(80.0) == "25.0% longer"
    assert against(100.0) == "equal"
    assert against(100.01) == "equal"
    assert against(0.0, mine=0.0) == "equal"
    assert against(math.inf) == NONE
    assert against(90.0, unplaced=2) == "places 2 more"


def test_no_percentages_while_all_durations_are_assumed():
    assert against(125.0, all_durations_assumed=True) == "shorter"
    assert against(80.0, all_durations_assumed=True) == "longer"


def test_latency_is_shown_only_where_there_is_a_rule():
    assert not shows_latency(a_plan())
    assert shows_latency(a_plan(a_step(latency_ms=0.8)))
    assert shows_latency(a_plan(baselines={"heft": Figures(0, 0, 3.0, 1.0)}))


def notes(**changes):
    return comparison_table(a_plan(**changes)).notes


def test_a_mean_shows_its_range(golden):
    """Unless it prints as one figure, or the run does not end."""
    tied = Figures(0, 0.0, 0.0, 90.0, 60.0, 120.0, 24)
    golden(notes(baselines={"kube-default": tied}))
    assert spread(replace(tied, slowest_seconds=60.001)) == ""
    assert spread(replace(tied, unplaced=1)) == ""
    assert notes(baselines={"kube-default": ends_after(90.0)}) == []


def test_the_use_of_the_nodes_is_told_of_schedules_that_end():
    """By the weights, then each resource that is requested; pods are not told."""
    mine = {"cpu": 0.5, "memory": 0.1, "nvidia.com/gpu": 0.0, "pods": 0.01}
    baselines = {
        "kube-default": ends_after(90.0, use={"nvidia.com/gpu": 0.3}),
        "heft": ends_after(60.0, unplaced=1, use=mine),
    }
    figures = ends_after(60.0, use=mine)
    assert notes(figures=figures, baselines=baselines) == [
        "use of the nodes: this plan 30% (cpu 50%, memory 10%); kube-default (nvidia.com/gpu 30%)"
    ]


def test_a_shorter_baseline_that_moves_volumes_says_so(golden):
    """Unless the plan does as well, or is not longer."""
    moving = ends_after(50.0, moves_volumes=True)
    still = ends_after(60.0)

    def caveat(figures, mine=still):
        words = notes(figures=mine, baselines={"kube-default": figures})
        return "".join(each for each in words if "but" in each)

    both = replace(moving, latency_excess_ms=5.0)
    golden(caveat(moving), "moves volumes")
    golden(caveat(both), "breaks a rule too")
    assert caveat(replace(moving, makespan_seconds=70.0)) == ""
    assert caveat(moving, replace(moving, makespan_seconds=60.0)) == ""
