"""Workflows that KFP has no part in: pauses, exit hooks, limits and templates of other objects."""

import json

import pytest

from kfp_placement_engine.contract.keys import DEFAULT_SCHEDULER, SCHEDULER_LABEL
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.history import step_of_pod
from tests.controller.end_to_end.placements import state_of
from tests.controller.end_to_end.queues import request, set_queue
from tests.controller.end_to_end.teams import Team, tidy_team
from tests.controlplane.argo.crds import VERSION
from tests.controlplane.argo.small_workflows import dag, step, task, workflow
from tests.controlplane.kubelet.workload import HINTS
from tests.controlplane.objects import an_object
from tests.controlplane.times import read_time
from tests.controlplane.waiting import wait_until
from tests.support.installation import EXTEND
from tests.support.placements import planned_nodes
from tests.support.taxi_cluster import CLOUD


@pytest.fixture(scope="module")
def plain(at_work):
    """An installation that holds runs and pods, and reads WorkflowTemplates."""
    with at_work("gates", "queue", "workflow-templates") as running:
        yield running


@pytest.fixture
def team(plain):
    """A namespace whose pods are gated; no gate comes off late."""
    late = plain.metric(EXTEND, "gates_overdue_total")
    yield from tidy_team(plain)
    assert plain.metric(EXTEND, "gates_overdue_total") == late


def work(name: str = "work", cpu: str = "500m", seconds: float = 1.0) -> JsonObject:
    """A template whose pods are placed by plan."""
    made: JsonObject = step(name)
    made["container"]["resources"] = {"requests": {"cpu": cpu}}
    hints = json.dumps({"duration": f"{seconds}s"})
    labels = {SCHEDULER_LABEL: DEFAULT_SCHEDULER}
    return {**made, "metadata": {"labels": labels, "annotations": {HINTS: hints}}}


def template(name: str, *templates: JsonObject, **spec: str) -> JsonObject:
    return an_object(VERSION, "WorkflowTemplate", name, spec={"templates": [*templates], **spec})


def planned_starts(team: Team, run: str) -> dict[str, float]:
    """When the steps of a run start by its first plan."""
    placement = wait_until(lambda: team.placement(run), "the plan")
    assert placement is not None
    rows = placement.planned_rows().rows
    return {row.name: row.start_seconds or 0.0 for row in rows if row is not None}


def pods_as_planned(team: Team, run: str) -> dict[str, JsonObject]:
    """The pods of steps, all of which had a gate and are where they were planned at last."""
    placement = team.placement(run)
    assert placement is not None
    pods = {step_of_pod(pod, placement): pod for pod in team.pods()}
    assert None not in pods
    nodes = planned_nodes(placement)
    assert {name: pod["spec"]["nodeName"] for name, pod in pods.items()} == {
        name: nodes[name] for name in pods if name
    }
    assert all("nodeAffinity" in pod["spec"]["affinity"] for pod in pods.values())
    return {name: pod for name, pod in pods.items() if name}


def test_pauses_and_exit_hooks_take_their_time(team):
    hook = {"exit": {"template": "work"}}
    pause = {"name": "pause", "suspend": {"duration": "4"}}
    tasks = (
        task("a", hooks=hook),
        task("pause", "pause", depends="a"),
        task("b", depends="pause"),
    )
    run = team.submit(workflow(dag("main", *tasks), work(), pause, onExit="work"))
    starts = planned_starts(team, run)
    order = ["a", "a.onExit", "pause", "b", "onExit"]
    assert sorted(starts, key=starts.__getitem__) == order
    assert starts["b"] - starts["pause"] > 3.9
    team.wait_for_success(run)
    pods = pods_as_planned(team, run)
    assert sorted(pods) == sorted({*order} - {"pause"})
    wait_until(lambda: (row := state_of(team, run, "pause")) and row.state == "succeeded", "pause")


def test_no_more_pods_are_released_than_argo_lets_run(team):
    tasks = task("w", withItems=["1", "2", "3", "4", "5"])
    run = team.submit(workflow(dag("main", tasks), work(seconds=2), parallelism=2))
    starts = planned_starts(team, run)
    assert [sum(each >= wave for each in starts.values()) for wave in (0, 2, 4)] == [5, 3, 1]
    team.wait_for_success(run)
    spans = [span(pod) for pod in pods_as_planned(team, run).values()]
    assert max(sum(start <= at < end for start, end in spans) for at, _ in spans) == 2


def span(pod: JsonObject) -> tuple[float, float]:
    """When a pod started, and when its container ended."""
    ended = pod["status"]["containerStatuses"][-1]["state"]["terminated"]["finishedAt"]
    return read_time(pod["status"]["startTime"]).timestamp(), read_time(ended).timestamp()


def test_of_branches_that_exclude_each_other_one_is_released(plain, team):
    tasks = (
        task("try"),
        task("good", depends="try.Succeeded"),
        task("repair", depends="try.Failed"),
    )
    plain.options.exit_codes["*.try*"] = 1
    try:
        run = team.submit(workflow(dag("main", *tasks), work()))
        team.wait_for_end(run)
    finally:
        del plain.options.exit_codes["*.try*"]
    assert sorted(pods_as_planned(team, run)) == ["repair", "try"]


def test_a_waiting_run_follows_the_templates_that_it_refers_to(team):
    set_queue(team, quota={"runs": 0})
    steps = dag("main", task("check", templateRef={"name": "library", "template": "check"}))
    del steps["dag"]["tasks"][0]["template"]
    for each in (template("library", work("check")), template("whole", steps, entrypoint="main")):
        team.api.create({**each, "metadata": {**each["metadata"], "namespace": team.name}})
    bare = workflow()
    bare["spec"] = {"workflowTemplateRef": {"name": "whole"}}
    run = team.submit(bare)

    def wait_for_demand(cpu: str) -> None:
        def peak() -> dict[str, str]:
            demand = request(team, run).get("spec", {}).get("demand") or {}
            return {each["name"]: each["amount"] for each in demand.get("peak", ())}

        wait_until(lambda: peak().get("cpu") == cpu, f"a demand of {cpu}", 60, peak)

    wait_for_demand("500m")
    library = an_object(VERSION, "WorkflowTemplate", "library", team.name)
    team.api.patch(library, {"spec": {"templates": [work("check", "5")]}})
    wait_for_demand("5")
    set_queue(team, quota={})
    ended = team.wait_for_success(run)
    (pod,) = pods_as_planned(team, run).values()
    assert pod["spec"]["nodeName"] == CLOUD
    # Argo runs what it has stored; the plan is of that.
    assert ended["status"]["storedTemplates"]["namespaced/library/check"]
