"""Bytes in, bytes out: whatever is asked, all nodes stay or the rules hold."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_controller.extender.answers import (
    AWAITS_PLAN,
    MAX_SECONDS_WITHOUT_PLANS,
    PLAN_LOOK_SECONDS,
    Answers,
)
from kfp_placement_controller.extender.contention import MAX_PAUSE_SECONDS, MAX_SAVED_SECONDS
from kfp_placement_controller.extender.knowledge import read_plan
from kfp_placement_engine.contract.custom_resources import PlacementPolicy, read_resource
from kfp_placement_kube.change import Change
from tests.controller.admission_cases import ALL_PIPELINES_CASES
from tests.controller.extender.cluster import (
    NAMESPACE,
    Cluster,
    anything,
    plan_object,
    planned_cluster,
    pod_object,
    review,
)
from tests.support.data import data_path
from tests.support.scraping import own_metric


def count(outcome: str) -> float:
    return own_metric("answers_total", verb="filter", outcome=outcome)


@pytest.fixture
def decided():
    return []


@pytest.fixture
def answers(cluster, decided):
    return Answers(lambda: cluster.knowledge, lambda *each: decided.append(each))


def question(**fields) -> bytes:
    return json.dumps(
        {"Pod": pod_object(), "Nodes": None, "NodeNames": ["a", "b"], **fields}
    ).encode()


def test_the_planned_node_and_its_points(answers, decided):
    answer = answers.filter(question())
    assert (answer.status, answer.outcome) == (200, "plan")
    assert json.loads(answer.body)["NodeNames"] == ["a"]
    ((_, pod, decision),) = decided
    assert (pod.name, decision.nodes) == ("pod", ("a",))
    points = json.loads(answers.prioritize(question()).body)
    assert points == [{"Host": "a", "Score": 10}, {"Host": "b", "Score": 9}]


def test_the_recorded_question_goes_to_the_nearest_node():
    """kube-scheduler's own bytes; the step's users are at HOME-EDGE."""
    cluster = Cluster("nitos-cloud-node", "big")
    cluster.node("home-edge-node", {"HOME-EDGE": "0.289"})
    cluster.node("nitlab-edge-node", {"HOME-EDGE": "9.8"})
    answers = Answers(lambda: cluster.knowledge, lambda *_: None)
    body = data_path("labelled/extender/filter-taxi-predict.json").read_bytes()
    answer = answers.filter(body, MAX_PAUSE_SECONDS)
    assert json.loads(answer.body)["NodeNames"] == ["home-edge-node"]


BAD_PODS = [
    {"metadata": []},
    {"metadata": {"labels": {"workflows.argoproj.io/workflow": {}}}},
    {"metadata": {"annotations": {"kfp-placement.dev/hints": []}}},
    {"metadata": {"ownerReferences": "x"}},
    {"spec": {"containers": [{"resources": {"requests": {"cpu": "many"}}}]}},
    {"spec": {"volumes": [{"persistentVolumeClaim": 1}]}},
    {"spec": []},
    {"status": 7},
]


@pytest.mark.parametrize("pod", BAD_PODS, ids=str)
def test_a_pod_that_cannot_be_read_keeps_all_nodes(answers, pod):
    before = count("malformed")
    answer = answers.filter(question(Pod=pod))
    assert (answer.status, answer.outcome) == (200, "malformed")
    assert json.loads(answer.body)["NodeNames"] == ["a", "b"]
    assert count("malformed") == before + 1
    assert json.loads(answers.prioritize(question(Pod=pod)).body) == []


def test_what_is_no_question_at_all_is_refused_so_that_the_scheduler_goes_on_without_us(answers):
    assert answers.filter(b"{").status == 400
    assert answers.mutate(b"{").status == 400


def test_time_is_counted(answers):
    def counted() -> float:
        return own_metric("answer_cpu_seconds_count", verb="filter")

    before = counted()
    answers.filter(question())
    assert counted() == before + 1


def ready(cluster, **spec):
    status = {"schedulerReady": True, "gatesReady": True}
    policy = {"metadata": {"name": "default"}, "spec": spec, "status": status}
    cluster.store.policy_changed(
        Change(("", "default"), None, read_resource(PlacementPolicy, policy))
    )


def test_the_webhook_answers_from_the_same_memory(cluster, answers):
    pod = {**pod_object(), "spec": {"schedulerName": "default-scheduler", "containers": []}}
    assert answers.mutate(review(pod)).outcome == "unchanged"
    ready(cluster)
    answer = answers.mutate(review(pod))
    assert answer.outcome == "changed"
    assert json.loads(answer.body)["response"]["patchType"] == "JSONPatch"


def test_the_webhook_is_told_where_steps_without_mark_count(cluster, answers):
    ready(cluster)
    executor = ALL_PIPELINES_CASES[0].pod("team-a")
    assert answers.mutate(review(executor)).outcome == "unchanged"
    assert answers.mutate(review(executor), all_pipelines=True).outcome == "changed"


@pytest.mark.parametrize("all_pipelines", [False, True])
def test_a_pod_that_the_webhook_cannot_read_is_admitted_as_it_is(cluster, answers, all_pipelines):
    ready(cluster)
    body = review({"metadata": [], "spec": 3})
    answer = answers.mutate(body, all_pipelines=all_pipelines)
    assert answer.outcome == "malformed"
    assert json.loads(answer.body)["response"] == {"uid": "u1", "allowed": True}


texts = ("", "metadata", "labels", "spec", "a", "train", "1", "Workflow")
inner = anything(*texts, plain=st.floats(-1e9, 1e9))
pods = inner | st.fixed_dictionaries(
    {},
    optional={
        "metadata": inner
        | st.fixed_dictionaries(
            {},
            optional={
                "labels": inner,
                "annotations": inner,
                "ownerReferences": st.lists(inner, max_size=1),
                "creationTimestamp": inner,
            },
        ),
        "spec": inner
        | st.fixed_dictionaries(
            {}, optional={"containers": st.lists(inner, max_size=1), "volumes": inner}
        ),
        "status": inner,
    },
)


@given(pods, st.lists(st.sampled_from(["a", "b", "c"]), unique=True))
def test_any_pod_is_answered_within_the_nodes_asked_about(pod, names):
    cluster = planned_cluster()
    answers = Answers(lambda: cluster.knowledge, lambda *_: None)
    answer = answers.filter(question(Pod=pod, NodeNames=names), MAX_PAUSE_SECONDS)
    body = json.loads(answer.body)
    assert set(body["NodeNames"]) <= set(names)
    assert bool(body["NodeNames"]) is bool(names)
    assert isinstance(json.loads(answers.prioritize(question(Pod=pod, NodeNames=names)).body), list)


ONE_CPU = question(Pod=pod_object(cpu="1"), NodeNames=["a"])


def held_back(cluster: Cluster) -> Answers:
    """Another scheduler waits for all the room of the planned node, which has just become free."""
    cluster.seen_to_bind("other")
    cluster.pod(name="left", node="a", cpu="8", phase="Running")
    cluster.pod(name="theirs", cpu="8", scheduler="other", refused="no room")
    cluster.now += 10
    cluster.remove_pod("left")
    return Answers(lambda: cluster.knowledge, lambda *_: None, clock=lambda: cluster.now)


def test_another_scheduler_goes_first_and_takes_the_room(cluster, golden):
    answers = held_back(cluster)
    before = count("yielded")
    answer = answers.filter(ONE_CPU)
    assert 0 < answer.pause_seconds <= MAX_PAUSE_SECONDS
    assert count("yielded") == before + 1
    cluster.now += answer.pause_seconds
    cluster.pod(name="theirs", cpu="8", scheduler="other", node="a")
    answer = answers.filter(ONE_CPU, answer.pause_seconds)
    assert (answer.outcome, answer.pause_seconds) == ("taken", 0)
    failed = json.loads(answer.body)["FailedAndUnresolvableNodes"]
    assert list(failed) == ["a"]
    golden(failed["a"])


def test_room_that_the_other_leaves_is_given_after_a_pause(cluster):
    answers = held_back(cluster)
    pause = answers.filter(ONE_CPU).pause_seconds
    cluster.now += pause
    answer = answers.filter(ONE_CPU, pause)
    assert (answer.outcome, json.loads(answer.body)["NodeNames"]) == ("plan", ["a"])


def test_nobody_waits_longer_than_kube_scheduler_does(cluster):
    answers = held_back(cluster)
    assert answers.filter(ONE_CPU, MAX_PAUSE_SECONDS - 0.01).pause_seconds == pytest.approx(0.01)
    assert answers.filter(ONE_CPU, MAX_PAUSE_SECONDS).outcome == "plan"


def test_where_there_is_a_choice_settled_nodes_are_chosen(cluster):
    """The step is not planned."""
    answers = held_back(cluster)
    cluster.node("c")
    pod = pod_object("unheard-of", cpu="1")
    answer = answers.filter(question(Pod=pod, NodeNames=["a", "c"]))
    assert json.loads(answer.body)["NodeNames"] == ["c"]


def test_the_best_node_is_worth_a_pause_even_where_others_are_settled(cluster):
    """The planned node is not offered; what is next best has just become free, `d` is far worse."""
    cluster.node("c")
    cluster.node("d")
    cluster.plan(["train", 2, 0, 100, [], [[0, 5], [3, 600]]])
    answers = held_back(cluster)
    asked = question(Pod=pod_object(cpu="1"), NodeNames=["a", "d"])
    pause = answers.filter(asked).pause_seconds
    assert pause > 0
    cluster.now += pause
    assert json.loads(answers.filter(asked, pause).body)["NodeNames"] == ["a", "d"]


NEW_RUN = "new-run"
OF_NEW_RUN = question(Pod=pod_object(workflow=NEW_RUN))


def plan_of_new_run(cluster: Cluster, step: str) -> None:
    plan = read_plan(plan_object([step, 1, 0, 100]))
    cluster.store.plan_changed(Change((NAMESPACE, NEW_RUN), None, plan))


@pytest.fixture
def at_a_time(cluster):
    """Answers by the clock of the cluster."""
    return Answers(lambda: cluster.knowledge, lambda *_: None, clock=lambda: cluster.now)


def test_the_plan_of_a_new_run_is_awaited(cluster, at_a_time):
    before = count(AWAITS_PLAN)
    answer = at_a_time.filter(OF_NEW_RUN)
    assert (answer.body, answer.pause_seconds) == (b"", PLAN_LOOK_SECONDS)
    assert count(AWAITS_PLAN) == before + 1
    plan_of_new_run(cluster, "train")
    answer = at_a_time.filter(OF_NEW_RUN, PLAN_LOOK_SECONDS)
    assert (answer.outcome, json.loads(answer.body)["NodeNames"]) == ("plan", ["b"])


def test_a_plan_without_the_step_is_not_awaited_any_more(cluster, at_a_time):
    plan_of_new_run(cluster, "another-step")
    assert at_a_time.filter(OF_NEW_RUN).outcome == "nothing-known"


LAST_LOOK = MAX_PAUSE_SECONDS - PLAN_LOOK_SECONDS / 2
OF_ANOTHER = question(Pod=pod_object(workflow="another-new-run"))


def test_after_a_second_in_which_no_plan_came_nobody_waits_until_one_comes(cluster, at_a_time):
    """The planner may be dead; until it shows that it works no pod waits for it."""
    assert at_a_time.filter(OF_NEW_RUN).outcome == AWAITS_PLAN
    assert at_a_time.filter(OF_NEW_RUN, LAST_LOOK).outcome == "nothing-known"
    assert at_a_time.filter(OF_ANOTHER).outcome == AWAITS_PLAN
    cluster.now += MAX_SECONDS_WITHOUT_PLANS
    assert at_a_time.filter(OF_ANOTHER, PLAN_LOOK_SECONDS).outcome == "nothing-known"
    assert at_a_time.filter(OF_NEW_RUN).outcome == "nothing-known"
    cluster.now += 1000
    assert at_a_time.filter(OF_NEW_RUN).outcome == "nothing-known"
    cluster.plan(["train", 0, 0, 100])
    assert at_a_time.filter(OF_ANOTHER).outcome == AWAITS_PLAN


def test_plans_are_awaited_for_half_of_the_time_at_most(cluster, at_a_time):
    """Many questions at once use up what is saved; then no pod waits, not even for a moment."""
    pauses = [at_a_time.filter(OF_NEW_RUN).pause_seconds for _ in range(200)]
    assert set(pauses) == {PLAN_LOOK_SECONDS, 0}
    assert sum(pauses) == pytest.approx(MAX_SAVED_SECONDS, abs=PLAN_LOOK_SECONDS)
    cluster.now += 0.5
    assert at_a_time.filter(OF_NEW_RUN).outcome == AWAITS_PLAN
