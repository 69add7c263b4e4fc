import math
from dataclasses import replace

import pytest

from kfp_placement.report import summary, values
from kfp_placement_engine.model.plan import Figures
from kfp_placement_engine.model.run_graph import DurationSource
from tests.support.plans import a_plan, a_step, unplaced_step


def against(makespan, *, mine=100.0, unplaced=0, **changes):
    plan = a_plan(figures=Figures(0, 0.0, 0.0, mine), **changes)
    return summary.verdict(plan, Figures(unplaced, 0.0, 0.0, makespan))


def test_verdicts():
    assert against(125.0) == "20.0% shorter"
    assert against(80.0) == "25.0% longer"
    assert against(100.0) == "equal"
    assert against(100.01) == "equal"
    assert against(0.0, mine=0.0) == "equal"
    assert against(math.inf) == values.NONE
    assert against(90.0, unplaced=2) == "places 2 more"


def test_no_percentages_while_all_durations_are_assumed():
    assert against(125.0, all_durations_assumed=True) == "shorter"
    assert against(80.0, all_durations_assumed=True) == "longer"


def test_assumptions_are_never_hidden(golden):
    assumed = a_step("a", duration_source=DurationSource.ASSUMED, assumed=True, conditional=True)
    lines = summary.assumption_lines(a_plan(a_step(), assumed))
    golden(lines)
    assert len(lines) == 3
    assumed_plan = a_plan(assumed, assumptions=("a duration of 60 s",))
    assert summary.assumption_lines(assumed_plan)[0] == "a duration of 60 s"
    assert summary.assumption_lines(a_plan()) == []


def test_words_of_a_step():
    step = a_step(type="Predict", type_guessed=True, duration_source=DurationSource.ASSUMED)
    assert summary.type_text(step) == "Predict (guessed)"
    assert summary.run_time(step) == "~1m"
    assert [summary.where(s) for s in (step, unplaced_step(), unplaced_step(cached=True))] == [
        "node-0",
        "no node",
        "from cache",
    ]
    assert summary.remark(a_step(assumed=True, conditional=True)) == "conditional, assumed"


def test_a_location_without_a_rule_is_left_out():
    plain = {"type": "Transform", "location": "BERLIN"}
    assert summary.location(a_step(**plain)) == ""
    assert summary.location(a_step(**plain, latency_ms=40.0)) == "BERLIN"
    assert summary.location(a_step(type="Predict", location="BERLIN")) == "BERLIN"
    assert summary.location(unplaced_step(**plain)) == "BERLIN"
    assert summary.location(a_step()) == ""


def test_counts():
    plan = a_plan(a_step("a"), a_step("b", node="x"), unplaced_step())
    assert summary.placed(plan) == 2
    assert summary.placed(a_plan(unplaced_step(cached=True))) == 1
    assert summary.steps_by_node(plan) == {"node-0": 1, "x": 1}
    assert values.counted(1, "node") == "1 node"
    assert values.counted(1000, "node") == "1,000 nodes"


def test_latency_is_shown_only_where_there_is_a_rule():
    assert not summary.shows_latency(a_plan())
    assert summary.shows_latency(a_plan(a_step(latency_ms=0.8)))
    assert summary.shows_latency(a_plan(baselines={"heft": Figures(0, 0, 3.0, 1.0)}))
    assert values.latency(None) == values.NONE


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (45, "45s"),
        (1500.4, "25m"),
        (3599.6, "1h"),
        (3661, "1h1m1s"),
        (36_605, "10h10m5s"),
        (7200, "2h"),
        (7205, "2h5s"),
        (90_061, "1d1h1m"),
        (86_400 * 3 + 30, "3d"),
    ],
)
def test_seconds_stay_so_that_times_add_up(seconds, text):
    assert values.duration(seconds) == text


def test_figures_that_do_not_exist():
    assert values.duration(0.0839) == "84ms"
    assert values.duration(0.00722) == "7.2ms"
    assert values.duration(0.0) == values.duration(4e-16) == "0s"
    assert values.duration(None) == values.duration(math.inf) == values.NONE


def test_a_mean_shows_its_range(golden):
    """Unless it prints as one figure, or the run does not end."""
    tied = Figures(0, 0.0, 0.0, 90.0, 60.0, 120.0, 24)
    golden(summary.spread(tied))
    assert "24 tie-breaks" in summary.spread(tied)
    assert summary.spread(replace(tied, slowest_seconds=60.001)) == ""
    assert summary.spread(replace(tied, unplaced=1)) == ""
    assert summary.spread(Figures(0, 0.0, 0.0, 90.0)) == ""
    rows = summary.schedules(a_plan(baselines={"kube-default": tied}))
    assert [row.spread for row in rows] == ["", summary.spread(tied)]
    assert rows[1].verdict == "33.3% shorter"


def test_the_use_of_the_nodes_is_told_of_schedules_that_end():
    """By the weights, then each resource that is requested; pods are not told."""
    mine = {"cpu": 0.5, "memory": 0.1, "nvidia.com/gpu": 0.0, "pods": 0.01}
    plan = a_plan(
        figures=Figures(0, 0.0, 0.0, 60.0, use=mine),
        baselines={
            "kube-default": Figures(0, 0.0, 0.0, 90.0, use={"nvidia.com/gpu": 0.3}),
            "heft": Figures(1, 0.0, 0.0, 60.0, use=mine),
        },
    )
    assert summary.use_lines(plan) == [
        "this plan 30% (cpu 50%, memory 10%)",
        "kube-default (nvidia.com/gpu 30%)",
    ]
    assert summary.use_lines(a_plan()) == []


def test_a_shorter_baseline_that_moves_volumes_says_so(golden):
    """Unless the plan does as well, or is not longer."""
    moving = Figures(0, 0.0, 0.0, 50.0, moves_volumes=True)

    still = Figures(0, 0.0, 0.0, 60.0)

    def caveat(figures, mine=still):
        plan = a_plan(figures=mine, baselines={"kube-default": figures})
        return summary.schedules(plan)[1].caveat

    both = replace(moving, latency_excess_ms=5.0)
    golden(caveat(moving), "moves volumes")
    golden(caveat(both), "breaks a rule too")
    assert ["latency rule" in caveat(figures) for figures in (moving, both)] == [False, True]
    assert all("moves a volume" in caveat(figures) for figures in (moving, both))
    assert caveat(replace(moving, makespan_seconds=70.0)) == ""
    assert caveat(moving, replace(moving, makespan_seconds=60.0)) == ""
