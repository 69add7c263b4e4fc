"""Recorded workflow runs: never worse than a baseline, and the baselines as measured before.

The first figures (`benchmarks.wfinstances_origin`) come from other code for the same
model: slots, direct transfers of 125 MB/s, kube-default as a queue of ready tasks that takes the
node with the largest share of free slots.
"""

import random
from dataclasses import replace
from statistics import fmean

import pytest

from benchmarks.wfinstances import CLUSTERS, SlotCluster, slot_problem, slot_run
from benchmarks.wfinstances_origin import ORIGIN
from kfp_placement_engine.search.baselines import BASELINES, schedules_of
from tests.support.data import data_path

NAMES = sorted(ORIGIN["3x2"])
TIE_ORDER_MATTERS = ("airrflow-dirt02-001", "sarek-dirt02-001")
"""Files where the order of tasks that become ready at one instant moves kube-default by a tenth.

Nothing says which order the first figures had. Over 30 random orders: airrflow on 3x2 605 to 654,
mean 629 (first figure 617); on het 4x4 511 to 613, mean 560 (556); sarek there 289 to 349, mean 320
(315).
"""
TASK_ORDERS = 30
SHARE = 0.02
SHARE_OF_MEANS = 0.035
"""Tolerance for a mean over random orders: the figure stands for one order, the mean for all."""


@pytest.fixture(params=[each for each in CLUSTERS if ORIGIN[each.name]], ids=lambda each: each.name)
def measured_cluster(request):
    """Those on which something was measured before."""
    return request.param


def recorded(name: str):
    return slot_run(data_path("wfinstances", f"{name}.json"))


def kube_seconds(run, cluster: SlotCluster) -> float:
    """Mean over all orders of the nodes."""
    schedules = schedules_of("kube-default", slot_problem(run, cluster.cluster()))
    return fmean(schedule.makespan_seconds for schedule in schedules)


@pytest.mark.parametrize("name", NAMES)
def test_heft_is_as_measured_before(name, measured_cluster):
    """Ranks, earliest finish over all slots with insertion; decoded by its own starts."""
    problem = slot_problem(recorded(name), measured_cluster.cluster())
    makespan = BASELINES["heft"](problem, 0).makespan_seconds
    assert makespan == pytest.approx(ORIGIN[measured_cluster.name][name].heft, rel=SHARE)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in TIE_ORDER_MATTERS])
def test_kube_default_is_as_measured_before(name, measured_cluster):
    """Tasks in the order of the file."""
    run = recorded(name)
    assert kube_seconds(run, measured_cluster) == pytest.approx(
        ORIGIN[measured_cluster.name][name].kube, rel=SHARE
    )


@pytest.mark.parametrize("name", TIE_ORDER_MATTERS)
def test_kube_default_is_about_as_measured_before_where_ties_decide(name, measured_cluster):
    """Where the order of tasks ready at one instant decides: see `TIE_ORDER_MATTERS`."""
    run = recorded(name)
    rng, seconds = random.Random(0), []
    for _ in range(TASK_ORDERS):
        steps = list(run.steps)
        rng.shuffle(steps)
        seconds.append(kube_seconds(replace(run, steps=tuple(steps)), measured_cluster))
    first = ORIGIN[measured_cluster.name][name].kube
    assert min(seconds) * (1 - 1e-3) <= first <= max(seconds) * (1 + 1e-3)
    assert fmean(seconds) == pytest.approx(first, rel=SHARE_OF_MEANS)
