"""Steps of Argo that make an object: the pods of an MPIJob and its like count as workers."""

from typing import Any

import pytest

from kfp_placement_engine import RunGraph, read_run
from kfp_placement_engine.model.cluster import Taint
from kfp_placement_engine.model.demand import PodGroup
from kfp_placement_engine.planning.demand_profile import DemandProfile
from tests.controlplane.argo.small_workflows import arguments, task
from tests.engine.readers.argo.test_plain_workflows import dag, read
from tests.support.builders import a_cluster, a_node, plan_of
from tests.support.data import data_path
from tests.support.packages import Fields, notice_codes

GPU = "nvidia.com/gpu"

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {generateName: "{{workflow.name}}-"}
spec:
  parallelism: {{inputs.parameters.width}}
  template:
    spec:
      containers:
      - name: main
        image: work:1
        args: ["{{inputs.parameters.text}}"]
        resources: {requests: {cpu: "{{inputs.parameters.cpu}}m"}}
"""


def resource(manifest: str | None = JOB, action: str = "create", **fields: Any) -> Fields:
    given = {} if manifest is None else {"manifest": manifest}
    inputs = [{"name": "width"}, {"name": "cpu", "value": "500"}, {"name": "text", "value": "a"}]
    return {
        "name": "work",
        "inputs": {"parameters": inputs},
        "resource": {
            "action": action,
            "successCondition": "status.succeeded > 0",
            **given,
            **fields,
        },
    }


def made(template: Fields, width: str = "3") -> RunGraph:
    return read([dag(task("A", arguments=arguments(width=width))), template])


def messages(graph: RunGraph) -> list[str]:
    return [f"{notice}" for notice in graph.notices]


def test_the_pods_of_a_job_are_workers_of_its_step():
    graph = made(resource())
    assert graph.step("A").workers == (PodGroup(3, {"cpu": 500}),)
    assert messages(graph) == [
        "A: it makes a Job: its 3 pods (cpu=1500m) are not in the plan; queues count them from its"
        " start to its end"
    ]


def test_each_iteration_makes_its_own():
    loop = task("A", arguments=arguments(width="{{item}}"), withItems=[1, 2])
    steps = read([dag(loop), resource()]).steps
    assert [step.workers for step in steps] == [(PodGroup(n, {"cpu": 500}),) for n in (1, 2)]


def test_a_number_that_is_known_only_at_run_time_is_named():
    late = task("A", arguments=arguments(width="{{tasks.B.outputs.result}}"))
    script = {"name": "b", "script": {"image": "b:1"}}
    graph = read([dag(task("B", template="b"), late), resource(), script])
    assert graph.step("A").workers == (PodGroup(1, {"cpu": 500}),)
    assert messages(graph)[0] == (
        "A: spec.parallelism of what it makes is known only at run time and counts as if it were"
        " not there"
    )


def test_a_step_without_a_condition_does_not_wait_for_the_pods():
    graph = made(resource(successCondition=None))
    assert "it ends without waiting for them" in messages(graph)[0]
    assert graph.step("A").workers
    assert "waiting" not in messages(made(resource(successCondition=None, failureCondition="x")))[0]


@pytest.mark.parametrize("action", ["get", "delete", "patch"])
def test_other_actions_make_nothing(action: str):
    graph = made(resource(action=action))
    assert (graph.step("A").workers, graph.notices) == ((), ())


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (
            "{apiVersion: a.b/v1, kind: Thing}",
            "A: it makes a Thing: pods of it are not in the plan",
        ),
        ("{apiVersion: a.b/v1}", "A: it makes an object: pods of it are not in the plan"),
        (None, "A: what it makes is known only at run time: pods of that are not in the plan"),
        ("{{inputs.parameters.text}}", "A: what it makes is known only at run time: pods of that"),
        ("a: [", "A: what it makes is known only at run time: pods of that are not in the plan"),
    ],
)
def test_what_is_not_known_is_named(manifest: str | None, message: str):
    graph = made(resource(manifest))
    assert messages(graph)[0].startswith(message)
    assert graph.step("A").workers == ()


def test_an_object_without_pods_is_not_named():
    assert made(resource("{apiVersion: v1, kind: ConfigMap}")).notices == ()


def test_what_the_author_says_comes_first():
    hints = '{"v":1,"workers":{"count":7}}'
    template = {**resource(), "metadata": {"annotations": {"kfp-placement.dev/hints": hints}}}
    graph = made(template)
    assert graph.step("A").workers == (PodGroup(7, {}),)
    assert "made-pods" not in notice_codes(graph)


def test_text_like_a_mark_of_ours_is_left_as_it_is():
    manifest = JOB.replace("work:1", "tag-of-argo-9.").replace("name: main", "name: tag-of-argo-1.")
    assert made(resource(manifest)).step("A").workers == (PodGroup(3, {"cpu": 500}),)


def workers_step() -> RunGraph:
    path = data_path("user-cases", "24-workers-in-manifest", "mpi.yaml")
    return read_run(path.read_bytes(), name="mpi.yaml")


def test_the_file_of_a_user():
    graph = workers_step()
    assert graph.steps[0].workers == (PodGroup(1, {}), PodGroup(8, {GPU: 8}))
    assert "its 9 pods (nvidia.com/gpu=64) are not in the plan" in messages(graph)[0]


@pytest.mark.parametrize(
    ("gpus", "message"),
    [
        (4, "no node has room for one of the 8 pods that it makes (nvidia.com/gpu=8 each)"),
        (
            24,
            "no more than 6 of the 8 pods that it makes (nvidia.com/gpu=8 each) have room at once",
        ),
        (32, ""),
    ],
)
def test_a_plan_says_which_pods_never_have_room(gpus: int, message: str):
    nodes = [a_node(name, extended={GPU: gpus}) for name in ("one", "two")]
    plan = plan_of(workers_step(), a_cluster(*nodes))
    messages = [each.message for each in plan.notices if each.code == "made-pods-without-room"]
    assert messages == ([f"{message}, even if nothing else runs"] if message else [])


def test_a_queue_asks_for_the_room_of_all_pods_at_once():
    graph = workers_step()
    plan = plan_of(graph, a_cluster(a_node("one", extended={GPU: 64})))
    demand = DemandProfile(plan, graph).left()
    assert demand.peak[GPU] == 64
    assert demand.peak["pods"] == 10
    assert PodGroup(8, {GPU: 8}) in demand.gangs


def test_a_tag_of_a_manifest_stands_for_a_mapping():
    manifest = JOB.replace('{requests: {cpu: "{{inputs.parameters.cpu}}m"}}', "{{item}}")
    loop = task(
        "A", arguments=arguments(width="2", cpu="{{item}}"), withItems=['{"requests": {"cpu": 2}}']
    )
    graph = read([dag(loop), resource(manifest.replace("{{item}}", "{{inputs.parameters.cpu}}"))])
    assert graph.steps[0].workers == (PodGroup(2, {"cpu": 2000}),)


def test_a_mapping_of_a_manifest_that_only_the_run_makes_is_named():
    late = JOB.replace('{requests: {cpu: "{{inputs.parameters.cpu}}m"}}', "{{workflow.uid}}")
    graph = made(resource(late))
    assert graph.step("A").workers == (PodGroup(3, {}),)
    assert "spec.template.spec.containers[0].resources of what it makes" in messages(graph)[0]


@pytest.mark.parametrize("join", ["documents", "list"])
def test_all_objects_of_a_manifest_count(join: str):
    job = "{apiVersion: batch/v1, kind: Job, spec: {parallelism: %d, template: {}}}"
    objects = [job % 2, "{apiVersion: v1, kind: Service}", job % 5]
    listed = f"{{apiVersion: v1, kind: List, items: [{', '.join(objects)}]}}"
    manifest = listed if join == "list" else "\n---\n".join(objects)
    assert made(resource(manifest)).step("A").workers == (PodGroup(2, {}), PodGroup(5, {}))


def test_a_list_with_a_kind_that_is_not_known_is_named():
    graph = made(resource("{apiVersion: v1, kind: List, items: [{apiVersion: a/v1, kind: B}]}"))
    assert messages(graph) == ["A: it makes a List: pods of it are not in the plan"]


RULES = """
      nodeSelector: {pool: a}
      tolerations: [{key: gpu, operator: Exists}]
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [ZONE]}]}]
      containers:"""


def without_room(cluster: Any, zone: str = "x", **fields: Any) -> list[str]:
    """What a plan says of a job whose pods select nodes."""
    manifest = JOB.replace("\n      containers:", RULES.replace("ZONE", zone))
    plan = plan_of(made(resource(manifest, **fields)), cluster)
    return [each.message for each in plan.notices if each.code == "made-pods-without-room"]


@pytest.mark.parametrize("condition", ["status.succeeded > 0", None])
@pytest.mark.parametrize(
    ("labels", "taint", "problem"),
    [
        ({"pool": "a", "zone": "x"}, "gpu", ""),
        ({"pool": "b", "zone": "x"}, "gpu", "keep them off 1 node"),
        ({"pool": "a", "zone": "y"}, "gpu", "keep them off 1 node"),
        ({"pool": "a", "zone": "x"}, "other", "keep them off 1 node"),
    ],
)
def test_made_pods_need_room_on_the_nodes_that_their_template_allows(
    labels: dict[str, str], taint: str, problem: str, condition: str | None
):
    node = a_node("one", labels=labels, taints=(Taint(taint, "", "NoSchedule"),))
    messages = without_room(a_cluster(node), successCondition=condition)
    assert [problem in each for each in messages] == [True] * bool(problem)


def test_rules_that_are_known_only_at_run_time_keep_made_pods_off_no_node():
    node = a_node("one", labels={"pool": "a"}, taints=(Taint("x", "", "NoSchedule"),))
    late = "{{tasks.ask.outputs.result}}"
    manifest = JOB.replace("\n      containers:", RULES.replace("ZONE", f"'{late}'"))
    manifest = manifest.replace("key: gpu", f"key: '{late}'")
    plan = plan_of(made(resource(manifest)), a_cluster(node))
    assert "made-pods-without-room" not in {each.code for each in plan.notices}
