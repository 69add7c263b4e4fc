"""The scarcest resource over time, and the speed of nodes."""

import pytest
from hypothesis import given, settings

from kfp_placement_engine.model.objective import ResourceWeights
from kfp_placement_engine.planning.resource_use import MOST_SPANS
from kfp_placement_engine.plans.limits import ResourceUse
from tests.engine.planning.limited_plans import limited_plan
from tests.engine.planning.random_runs import cases
from tests.support.builders import a_cluster, a_node, a_run, a_step, cluster_of

JOINED = a_run(
    a_step("compute", cpu=3, memory=8, seconds=4),
    a_step("join", "compute", cpu=1, memory=48, seconds=2),
)
IN_ZONE_A = a_run(a_step("only", cpu=1, seconds=3, node_selector={"zone": "a"}))


def test_the_resource_of_which_most_is_in_use_changes_over_time():
    """First CPU, then memory, then nothing while a step without requests runs; pods count too."""
    assert limited_plan(JOINED).limits.binding_resources == (
        ResourceUse(0.0, 4.0, "cpu", 0.75),
        ResourceUse(4.0, 6.0, "memory", 0.75),
    )


def test_only_nodes_that_the_run_may_use_and_their_free_room_count():
    """A node that no step may take offers nothing, nor does what others use."""
    cluster = a_cluster(
        a_node("n1", cpu=4, used={"cpu": 2000}, labels={"zone": "a"}), a_node("n2", cpu=64)
    )
    plan = limited_plan(IN_ZONE_A, cluster)
    assert plan.limits.binding_resources == (ResourceUse(0.0, 3.0, "cpu", 0.5),)


def test_many_spans_become_few_that_say_the_same_on_average():
    """200 steps of different ends: the mean over all spans is that of the steps."""
    run = a_run(*(a_step(f"s{number}", seconds=1 + number) for number in range(200)))
    spans = limited_plan(run, cluster_of(100, cpu=4)).limits.binding_resources
    assert 1 < len(spans) <= MOST_SPANS
    work = sum(1 + number for number in range(200)) / 400
    assert sum((u.finish_seconds - u.start_seconds) * u.share for u in spans) == pytest.approx(
        work, rel=1e-4
    )


def test_the_use_is_work_over_room_and_time():
    """3 of 4 CPU are free; the run takes 6 s."""
    cluster = a_cluster(a_node("n1", cpu=4, memory=64, used={"cpu": 1000}))
    plan = limited_plan(JOINED, cluster, weights=ResourceWeights(cpu=3, memory=1))
    cpu, memory = (3 * 4 + 1 * 2) / (3 * 6), (8 * 4 + 48 * 2) / (64 * 6)
    assert plan.figures.use["cpu"] == pytest.approx(cpu)
    assert plan.figures.use["memory"] == pytest.approx(memory)
    assert plan.search.weights.mean_of(plan.figures.use) == pytest.approx((3 * cpu + memory) / 4)


def test_nodes_that_the_run_may_not_use_offer_nothing():
    """Nor is there a use of what no node has."""
    cluster = a_cluster(
        a_node("n1", cpu=2, memory=0, labels={"zone": "a"}), a_node("n2", cpu=64, memory=0)
    )
    plan = limited_plan(IN_ZONE_A, cluster, compare=("kube-default",))
    assert plan.figures.use["cpu"] == pytest.approx(0.5)
    assert "memory" not in plan.figures.use
    assert plan.comparison.baselines["kube-default"].use == plan.figures.use
    assert ResourceWeights().mean_of(plan.figures.use) == pytest.approx(0.5)
    assert ResourceWeights(cpu=0).mean_of(plan.figures.use) is None


@settings(max_examples=60)
@given(case=cases())
def test_the_mean_use_is_that_over_the_spans(case):
    """Of the only resource, where there is one: both say the same of the same time."""
    plan = limited_plan(case.run, case.cluster)
    assert all(0 <= share <= 1 + 1e-9 for share in plan.figures.use.values())
    spans = sum(
        (u.finish_seconds - u.start_seconds) * u.share for u in plan.limits.binding_resources
    )
    most = max(plan.figures.use.values(), default=0.0) * plan.figures.makespan_seconds
    assert most <= spans + 1e-3 or not spans


@settings(max_examples=60)
@given(case=cases())
def test_spans_touch_and_cover_the_run(case):
    """From the submission to the end; no share is more than all there is."""
    plan = limited_plan(case.run, case.cluster)
    spans = plan.limits.binding_resources
    if spans:
        ends = [0.0, *(span.finish_seconds for span in spans)]
        assert [span.start_seconds for span in spans] == ends[:-1]
        assert ends[-1] == pytest.approx(plan.figures.makespan_seconds)
        assert all(
            0 <= span.share <= 1 and (span.share > 0) == bool(span.resource) for span in spans
        )


def test_a_step_says_the_speed_of_its_node():
    """Also for steps whose time does not depend on it."""
    plan = limited_plan(a_run(a_step("lone")), a_cluster(a_node("n1", speed=0.5)))
    assert plan.step("lone").run_time.node_speed == 0.5
