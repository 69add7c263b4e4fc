"""The one way to a plan before a run starts: what is asked for, then the policy, then as usual."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kfp_placement._input_file import InputFile
from kfp_placement.clusters.reading import KnownCluster
from kfp_placement.planning import PlanRequest, prepare
from kfp_placement_engine.contract.history.pipeline_history import step_identity
from kfp_placement_engine.history import Past
from kfp_placement_engine.model.history import PastContainer, PastRun, PastStep
from kfp_placement_engine.model.run_graph import DurationSource
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.units.resources import SCORED_DEFAULTS
from tests.support.builders import a_cluster, a_kfp_run, a_policy, a_run, a_step, cluster_of
from tests.support.outlines import outline_of
from tests.support.prepared_runs import prepared

LOOP = b"""{
  "components": {"comp-work": {"executorLabel": "e"}, "comp-loop": {"dag": {"tasks": {
    "work": {"componentRef": {"name": "comp-work"}}}},
    "inputDefinitions": {"parameters": {"item": {"parameterType": "NUMBER_INTEGER"}}}}},
  "deploymentSpec": {"executors": {"e": {"container": {"image": "a/b:1"}}}},
  "pipelineInfo": {"name": "looping"},
  "root": {"inputDefinitions": {"parameters": {"items": {"parameterType": "LIST"}}},
    "dag": {"tasks": {"loop": {"componentRef": {"name": "comp-loop"},
      "inputs": {"parameters": {"item": {"componentInputParameter": "items"}}},
      "parameterIterator": {"itemInput": "item", "items": {"inputParameter": "items"}}}}}},
  "schemaVersion": "2.1.0"
}"""


def test_a_plan_says_what_it_took_from_the_policy():
    strict = a_policy(
        objective="packing",
        engine={"seed": 4},
        latencyRules={"stepTypes": [], "tolerance": "2ms"},
        defaults={"driver": "7s", "byType": [{"type": "Fit", "duration": "1h"}, {"type": "Odd"}]},
        headroom={"cpu": "1"},
    )
    cluster = replace(cluster_of(2), policy=strict)
    run = a_run(a_step("a", type="Fit", seconds=None))
    plan = prepared(run, cluster, options={"generations": 1, "seed": 0}).plan()
    assert plan.grounds.policy == (
        "objective: packing",
        "latencyRules.stepTypes: none",
        "latencyRules.tolerance: 2ms",
        "defaults.driver: 7s",
        "defaults.byType[Fit]: duration 1h",
        "defaults.byType[Odd]: nothing",
    )
    assert plan.step("a").phases.duration_seconds == 3600
    assert plan.grounds.all_durations_assumed
    assert plan.search.objective == "packing"
    assert plan.search.latency_tolerance.text == "max(2 ms, 5%)"


def test_without_a_policy_there_is_nothing_to_say():
    request = prepared(a_run(a_step("a")), a_cluster(), options={"generations": 1})
    assert request.options == PlanOptions(generations=1)
    assert request.plan().grounds.policy == ()


def test_overrides_go_before_what_the_policy_assumes_of_types():
    by_type = [{"type": "Fit", "duration": "1h"}]
    cluster = replace(a_cluster(), policy=a_policy(defaults={"byType": by_type}))
    run = a_run(a_step("a", type="Fit", seconds=None), a_step("b", type="Fit", seconds=None))
    made = prepared(
        run, cluster, durations={"a": "5m"}, assume_cached=["b"], namespace="team-a"
    ).run
    assert made.namespace == "team-a"
    assert [step.duration_seconds for step in made.steps] == [300, 3600]
    assert made.steps[0].duration_source is DurationSource.GIVEN
    assert [step.assumed_cached for step in made.steps] == [False, True]


@pytest.mark.parametrize("namespace", ["team-a", "team-b"])
def test_in_a_namespace_that_plans_all_pipelines_steps_count_as_marked(namespace):
    cluster = replace(cluster_of(2), all_pipelines=frozenset({"team-a"}))
    run = a_kfp_run(a_step("a"), a_step("b", unplanned=True))
    options = {"generations": 1, "marked_only": True}
    plan = prepared(run, cluster, default_namespace=namespace, options=options).plan()
    planned = [
        step.name for step in plan.steps if "no scheduler mark" not in step.explanation.sentence
    ]
    assert planned == (["a"] if namespace == "team-a" else [])
    texts = [each.message for each in plan.notices if each.code == "unmarked-steps"]
    unmarked = ["1 of 2 steps is not marked (a): left to the default scheduler"]
    opted_out = '1 of 2 steps opts out (b) with scheduler="default-scheduler"'
    assert texts == [*([] if planned else unmarked), f"{opted_out}: left to the default scheduler"]


def test_a_loop_of_unknown_width_is_as_wide_as_is_assumed_on_the_cluster():
    def iterations(where=None, **options):
        request = PlanRequest(InputFile("looping", LOOP), where, options=options)
        return len(prepare(request).run.steps)

    policy = a_policy(defaults={"loopWidth": 5})
    where = KnownCluster(replace(a_cluster(), defaults={"loop_width": 2}, policy=policy))
    assert (iterations(), iterations(where)) == (3, 2)
    assert iterations(where, assumptions=Assumptions(loop_width=4)) == 4


def test_where_a_run_goes_is_what_is_asked_then_its_own_then_the_cluster_s_then_the_past_s():
    where = KnownCluster(a_cluster(), "of-cluster")
    request = PlanRequest(InputFile("run", b""), where)
    own = replace(a_run(a_step("a")), namespace="own")
    nowhere = replace(own, namespace="")
    assert replace(request, namespace="asked").namespace_of(own, "past") == "asked"
    assert request.namespace_of(own, "past") == "own"
    assert request.namespace_of(nowhere, "past") == "of-cluster"
    assert replace(request, where=None).namespace_of(nowhere, "past") == "past"


def test_a_preview_of_an_outline_assumes_what_the_cluster_assumes():
    """The last run, then the policy, then what kube-scheduler counts; and it promises no end."""
    run = a_kfp_run(a_step("seen", cpu=2, image="i"), a_step("new", cpu=3))
    seen = PastStep(step_identity(run.name, run.steps[0]), 9.0, container=PastContainer({"cpu": 7}))
    past = Past([PastRun("u", run.name, datetime(2026, 11, 1, tzinfo=UTC), (seen,), 9.0)])
    policy = a_policy(defaults={"requests": [{"name": "cpu", "amount": "5m"}]})
    for cluster, assumed in (
        (a_cluster(policy=policy), {**SCORED_DEFAULTS, "cpu": 5}),
        (a_cluster(), SCORED_DEFAULTS),
    ):
        outline = prepared(outline_of(run), cluster, past=past, options={"generations": 1})
        assert [step.requests for step in outline.run.steps] == [{"cpu": 7}, assumed]
        plan = outline.plan()
        assert plan.run.is_outline
        assert plan.promise is not None
        assert plan.promise.ends is None
        assert plan.promise.unknown == "the run's requests are estimated"
    assert [step.requests for step in prepared(outline_of(run), cluster).run.steps] == [assumed] * 2
    assert prepared(run, cluster, past=past).run.steps[0].requests == {"cpu": 2000}
