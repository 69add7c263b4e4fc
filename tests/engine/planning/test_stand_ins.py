"""What stands for requests and images that the file of a run does not say."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kfp_placement_engine.contract.history.pipeline_history import step_identity
from kfp_placement_engine.history import Past
from kfp_placement_engine.model.history import PastContainer, PastRun, PastStep
from kfp_placement_engine.model.policy import PlanningPolicy
from kfp_placement_engine.model.run_graph import StepKind
from kfp_placement_engine.planning.demand_profile import DemandProfile
from kfp_placement_engine.planning.past_runs.learned_times import with_history
from kfp_placement_engine.planning.stand_ins import past_containers, with_stand_ins
from kfp_placement_engine.units.resources import SCORED_DEFAULTS
from tests.engine.readers.argo.test_kfp3_workflows import names, pair, read
from tests.support.builders import a_cluster, a_kfp_run, a_node, a_policy, a_step, plan_of
from tests.support.outlines import outline_of

GIB = 2**30
START = datetime(2026, 11, 1, tzinfo=UTC)
GRAPH = a_kfp_run(
    a_step("train", cpu=4, memory=8, type="Training", image="trainer", component="c1"),
    a_step("show", "train", cpu=0, image="viewer", component="c2"),
)
OUTLINE = outline_of(GRAPH)
POLICY = a_policy(
    defaults={
        "requests": [{"name": "cpu", "amount": "2"}],
        "byType": [
            {"type": "training", "requests": [{"name": "memory", "amount": "3Gi"}]},
            {"type": "other", "duration": "1m"},
        ],
    }
)
NOTHING = PlanningPolicy()


def a_past(graph=GRAPH, *, container=None, runs=1, before=None):
    """The past after runs of a graph, which say its requests, or others."""
    past = before or Past()
    for number in range(runs):
        steps = tuple(
            PastStep(
                step_identity(graph.name, step),
                100.0,
                container=container or PastContainer(step.requests, step.image),
            )
            for step in graph.steps
        )
        past.observe(PastRun(f"uid-{number}", graph.name, START + timedelta(days=number), steps))
    return past


def stood_in(outline=OUTLINE, policy=NOTHING, past=None):
    return with_stand_ins(outline, policy, past_containers(outline, past or Past()))


def requests_of(graph):
    return [(step.requests, step.image) for step in graph.steps]


def test_a_run_that_says_its_requests_is_left_as_it_is():
    past = a_past(container=PastContainer({"cpu": 1}, "other"))
    assert stood_in(GRAPH, POLICY, past) is GRAPH


def test_the_last_run_of_a_step_comes_first():
    assert requests_of(stood_in(past=a_past(), policy=POLICY)) == requests_of(GRAPH)
    raised = PastContainer({"cpu": 6000}, "newer")
    past = a_past(container=raised, before=a_past(runs=3))
    assert requests_of(stood_in(past=past)) == [({"cpu": 6000}, "newer")] * 2


def test_a_run_that_says_nothing_hides_no_earlier_one():
    past = a_past()
    identity = step_identity(OUTLINE.name, OUTLINE.steps[0])
    past.observe(PastRun("u", GRAPH.name, START + timedelta(days=9), (PastStep(identity, 9.0),)))
    assert requests_of(stood_in(past=past)) == requests_of(GRAPH)


def test_then_the_type_then_the_policy_then_what_kube_scheduler_counts():
    train, show = requests_of(stood_in(policy=POLICY))
    assert train == ({"cpu": 2000, "memory": 3 * GIB}, "")
    assert show == ({"cpu": 2000, "memory": SCORED_DEFAULTS["memory"]}, "")
    of_types = a_policy(defaults={"byType": [{"type": "TRAINING", "duration": "1h"}]})
    for policy in (NOTHING, of_types):
        assert requests_of(stood_in(policy=policy)) == [(SCORED_DEFAULTS, "")] * 2
    assert SCORED_DEFAULTS == {"cpu": 100, "memory": 200 * 2**20}


def test_of_an_object_of_an_older_version_the_memory_counts():
    past = a_past(container=PastContainer({"memory": 9 * GIB}, is_complete=False))
    train, show = requests_of(stood_in(policy=POLICY, past=past))
    assert train == show == ({"cpu": 2000, "memory": 9 * GIB}, "")


def test_what_an_outline_knows_stays():
    """A driver may have said what the pod of its step requests."""
    partly = a_kfp_run(a_step("train", cpu=3), a_step("claim", kind=StepKind.CREATE_PVC, cpu=0))
    outline = a_kfp_run(*partly.steps, is_outline=True)
    assert requests_of(stood_in(outline, past=a_past(partly))) == requests_of(partly)


@pytest.mark.parametrize("past", [Past(), a_past()], ids=["unseen", "seen"])
def test_a_queue_never_counts_an_unknown_need_as_nothing(past):
    """With past runs it is the need of the run itself, and without at least what is assumed."""
    run = stood_in(past=past)
    cluster = a_cluster(a_node(cpu=16, memory=64))
    peak = DemandProfile(plan_of(run, cluster), run).left().peak
    assert peak["cpu"] >= SCORED_DEFAULTS["cpu"]
    assert peak["memory"] >= SCORED_DEFAULTS["memory"]
    if past.steps.container(GRAPH.name, "train"):
        assert peak == DemandProfile(plan_of(GRAPH, cluster), GRAPH).left().peak


def test_a_pipeline_that_was_learned_with_components_is_known_without():
    """As before an upgrade of KFP and after it: the same run times, requests and images."""
    past = a_past(runs=3)
    before, after = (with_history(each, past).graph for each in (GRAPH, stood_in(past=past)))
    stated = zip(after.steps, before.steps, strict=True)
    assert all(replace(each, component=other.component) == other for each, other in stated)


@pytest.mark.parametrize("name", names())
def test_a_run_of_kfp_3_is_planned_with_what_its_pipeline_requested_before(name):
    workflow, package = pair(name)
    before, outline = read(workflow, package), read(workflow)
    after = stood_in(outline, past=a_past(before))
    requested = {step.task: (step.requests, step.image) for step in before.steps}
    shown = {step.task: (step.requests, step.image) for step in after.steps}
    assert {task: shown[task] for task in requested} == requested
