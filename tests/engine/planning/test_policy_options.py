"""What a policy says reaches the engine."""

from dataclasses import replace

import pytest

from kfp_placement_engine import GeneticParams, PlanOptions
from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.model.node_rules.latency import LatencyTolerance
from kfp_placement_engine.model.objective import MakespanWithin, ResourceWeights
from kfp_placement_engine.model.run_graph import DurationSource
from kfp_placement_engine.planning.policy_options import (
    followed,
    options_on,
    policy_options,
    with_type_defaults,
)
from tests.support.builders import a_cluster, a_policy, a_run, a_step


def test_the_latency_rules_are_those_of_the_policy():
    policy = a_policy(
        latencyRules={"stepTypes": ["Show"], "tolerance": "2ms", "tolerancePercent": 10}
    )
    options = policy_options(policy)
    assert options.latency_ruled_types == ("show",)
    assert options.latency_tolerance == LatencyTolerance(milliseconds=2.0, share=0.1)
    assert options.latency_tolerance.text == "max(2 ms, 10%)"


def test_an_untouched_policy_changes_nothing():
    untouched = options_on(a_cluster(policy=a_policy()), {})
    assert replace(untouched, params=None) == PlanOptions()
    assert untouched.params == GeneticParams()
    assert followed(a_policy(), {}) == ()


def test_the_search_is_the_policy_s():
    assert policy_options(a_policy(engine={"search": "paper"})).params == GeneticParams.paper()
    params = policy_options(a_policy(engine={"populationSize": 4, "islands": 1})).params
    assert params == GeneticParams(population_size=4, islands=1)


@pytest.mark.parametrize(("actuator", "dispatch"), [("gates", "ordered"), ("extender", "auto")])
def test_only_gates_keep_an_order(actuator, dispatch):
    assert policy_options(a_policy(actuator=actuator)).dispatch == dispatch


def test_what_is_asked_for_wins():
    cluster = a_cluster(policy=a_policy(objective="packing", engine={"seed": 3}))
    asked = options_on(cluster, {"objective": "paper"})
    assert (asked.objective, asked.seed) == ("paper", 3)
    assert asked.makespan_within is None
    limited = a_cluster(policy=a_policy(makespanWithin="3%", weights={"cpu": 2}))
    on_limited = options_on(limited, {})
    assert on_limited.makespan_within == MakespanWithin(percent=3)
    assert on_limited.weights == ResourceWeights(cpu=2, memory=1)
    with pytest.raises(PlanningError, match="choose one of"):
        options_on(cluster, {"objective": "speed"})


def test_a_plan_that_follows_assumed_requests_says_them_as_people_write_them():
    requests = [{"name": "cpu", "amount": 2}, {"name": "memory", "amount": "4Gi"}]
    by_type = [{"type": "Fit", "duration": "1h", "requests": requests}]
    assert followed(a_policy(defaults={"requests": requests, "byType": by_type}), {}) == (
        "defaults.requests: cpu 2, memory 4Gi",
        "defaults.byType[Fit]: duration 1h, requests cpu 2, memory 4Gi",
    )


def test_defaults_by_type_fill_what_steps_leave_open():
    policy = a_policy(
        defaults={
            "byType": [
                {"type": "fit", "duration": "1h", "output": "5M", "maxLatency": "9ms"},
                {"type": "Show", "priority": 3},
            ]
        }
    )
    graph = a_run(
        a_step("a", type="Fit", location="HOME", seconds=None),
        a_step("b", type="Fit", seconds=5, duration_source=DurationSource.HINT),
        a_step("c", type="SHOW", reads=(("a", None), ("b", 7))),
        a_step("d"),
    )
    a, b, c, d = with_type_defaults(graph, policy).steps
    assert (a.duration_seconds, a.duration_source) == (3600.0, DurationSource.ASSUMED)
    assert (a.max_latency_ms, b.max_latency_ms) == (9.0, None)
    assert (b.duration_seconds, b.duration_source) == (5.0, DurationSource.HINT)
    assert [each.size_bytes for each in c.inputs] == [5_000_000, 7]
    assert (c.priority, d) == (3, graph.steps[3])
