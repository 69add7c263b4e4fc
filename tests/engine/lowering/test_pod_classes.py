"""Classes of pods: steps of one class look alike to every node, whatever else they differ in."""

from dataclasses import replace

from hypothesis import given

from kfp_placement_engine.contract.keys import LATENCY_RULED_TYPES
from kfp_placement_engine.lowering.pods import step_shape
from kfp_placement_engine.model.node_rules.latency import latency_rule
from tests.engine.planning.random_runs import cases
from tests.support.builders import a_cluster, a_node, a_run, a_step, lowered

CLUSTER = a_cluster(a_node(), latencies={"HOME-EDGE": {"n1": 9.0}})
NEAR = a_step(
    "near", image="tool:1", type="Predict", location="HOME-EDGE", max_latency_ms=20.0, memory=1
)


def classes_of(low):
    """The class of each step, by name."""
    return {
        step.name: int(low.problem.arrays.class_of[low.step_activities[run][step.name]])
        for run, active in enumerate(low.runs)
        for step in active.graph.steps
    }


def test_what_no_node_can_tell_apart_is_of_one_class():
    """Names, times and data differ; requests come in another order."""
    requests = dict(reversed(list(NEAR.requests.items())))
    other = replace(NEAR, name="other", task="other", duration_seconds=7, requests=requests)
    reader = replace(other, name="reader", depends_on=("near",), output_bytes={"out": 5})
    low = lowered(a_run(NEAR, other, reader), CLUSTER)
    assert set(classes_of(low).values()) == {0}


@given(case=cases())
def test_every_step_has_the_shape_that_is_made_for_it_alone(case):
    """Steps that look alike are judged once, and no step as another that does not."""
    low = case.lowered()
    of_step = classes_of(low)
    for step in case.run.steps:
        rule, _ = latency_rule(step, case.cluster, LATENCY_RULED_TYPES)
        assert low.shapes[of_step[step.name]] == step_shape(case.run, step, rule, step.claims)
