"""What the planner writes of runs that wait in queues, simulated in memory."""

from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest

from kfp_placement_controller.kinds import LOCATIONS, RUN_QUEUES, RUN_REQUESTS
from kfp_placement_controller.observed.claims import ObservedClaim, ObservedVolume
from kfp_placement_controller.observed.namespaces import ObservedNamespace
from kfp_placement_controller.observed.run_queues import observe_queue
from kfp_placement_controller.observed.run_requests import ObservedRequest, observe_request
from kfp_placement_controller.planning.actions import Action, DeleteRequest, WriteRequest
from kfp_placement_controller.runs.planner_parameters import PLANS_PER_EVALUATION
from kfp_placement_controller.sources.argo.source import ArgoSource
from kfp_placement_controller.sources.argo.workflow_object import WORKFLOWS
from kfp_placement_controller.sources.argo.workflows import (
    MAX_DOCUMENT_BYTES,
    WorkflowContent,
    observe_workflow,
)
from kfp_placement_engine.contract.custom_resources import RunRequest
from kfp_placement_engine.contract.keys import (
    HINTS_ANNOTATION,
    LOCATION_LABEL,
    QUEUE_INSTANCE,
    RUN_NAME_ANNOTATION,
    SCHEDULER_LABEL,
)
from kfp_placement_engine.contract.run_request import RunRequestSpec
from kfp_placement_engine.model.cluster import Claim
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.node_rules.round_trips import LabelRoundTrip, StatedPlace
from kfp_placement_engine.readers.argo.keys import INSTANCE_LABEL
from kfp_placement_engine.units.durations import MAX_DURATION_SECONDS
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import CLAIMS, NAMESPACES, VOLUMES
from tests.controller.planning.builders import observed
from tests.controller.planning.test_scenarios import a_chain, a_cluster, a_step, submit
from tests.controlplane.argo.small_workflows import dag, step, task, workflow
from tests.support.kubernetes import node_object, workflow_object

HELD = {INSTANCE_LABEL: QUEUE_INSTANCE}


class QueuedCluster:
    """A simulated cluster with queues installed; RunRequests are stored as an API server does."""

    def __init__(self, *nodes, simulated=None, **options):
        self.simulated = simulated or a_cluster(*nodes, **options)
        self.simulated.coordinator.queues = True
        self.simulated.read[WORKFLOWS] = partial(observe_workflow, unplanned=True)
        self.carry_out_others = self.simulated.carry_out
        self.simulated.carry_out = self.carry_out
        self.requests: dict[RunKey, ObservedRequest] = {}
        self.writes: list[WriteRequest] = []
        self.deleted: list[str] = []
        self.version = 0
        self.queue()

    @property
    def coordinator(self):
        return self.simulated.coordinator

    def queue(self, name="default", *, gone=False):
        metadata = {"name": name, "namespace": "team", "resourceVersion": "1"}
        queue = None if gone else observe_queue({"metadata": metadata})
        self.feed(RUN_QUEUES, ("team", name), queue)

    def feed(self, kind, key, new):
        """What the watch of a kind reports."""
        self.coordinator.handle(kind, Change(key, None, new), self.simulated.now)

    def submit(self, manifest=None, *, held=True):
        manifest = manifest or a_chain()
        if held:
            manifest["metadata"]["labels"] = dict(HELD)
        submit(self.simulated, manifest)
        name = manifest["metadata"]["name"]
        if held:
            self.simulated.postpone(name, "Pending")

    def submit_and_settle(self, manifest=None, *, held=True):
        self.submit(manifest, held=held)
        self.settle()

    def release(self, name="wf"):
        del self.simulated.workflows[name].workflow["metadata"]["labels"]
        self.simulated.begin(name)

    def settle(self, times=1):
        """What is due now and in the next seconds, so many times."""
        for _ in range(times):
            self.simulated.tell()
            self.simulated.pass_time(4)

    def carry_out(self, action):
        match action:
            case WriteRequest(key, owner, spec, version):
                stored = self.requests.get(key)
                assert version == ("" if stored is None else stored.version)
                self.writes.append(action)
                self.store(key, spec, owner.uid)
            case DeleteRequest(key, uid):
                self.deleted.append(uid)
                del self.requests[key]
                self.tell(key, None)
            case _:
                self.carry_out_others(action)

    def store(self, key, spec, owner):
        """As the API server does, through JSON."""
        self.version += 1
        written = RunRequest(spec=spec).to_object()
        written["metadata"] = {
            "namespace": key.namespace,
            "name": key.name,
            "uid": "request",
            "resourceVersion": str(self.version),
            "ownerReferences": [{"apiVersion": "v1", "kind": "W", "name": key.name, "uid": owner}],
        }
        self.requests[key] = observe_request(written)
        self.tell(key, self.requests[key])

    def tell(self, key, request):
        self.feed(RUN_REQUESTS, key, request)

    def spec(self, name="wf"):
        return self.requests[RunKey("team", name)].spec

    def peak(self):
        return dict(self.spec().demand.to_demand().peak)


@pytest.fixture
def cluster():
    return QueuedCluster()


def wide():
    """`first`, then two steps at the same time."""
    graph = dag(
        "main", task("first"), task("left", depends="first"), task("right", depends="first")
    )
    made = workflow(graph, a_step())
    made["metadata"]["name"] = "wf"
    return made


def test_a_held_run_says_what_it_needs(cluster):
    manifest = wide()
    manifest["metadata"]["annotations"] = {RUN_NAME_ANNOTATION: "nightly"}
    cluster.submit_and_settle(manifest)
    assert cluster.peak() == {"cpu": 2000, "pods": 2}
    spec = cluster.spec()
    assert (spec.queue, spec.priority, spec.display_name) == ("default", 0, "nightly")
    assert spec.makespan_seconds == pytest.approx(120, abs=30)
    assert spec.finishes_at is None
    assert spec.submitted_at == cluster.simulated.workflows["wf"].now
    assert len(cluster.writes) == 1


def test_what_a_run_needs_does_not_depend_on_the_runs_beside_it():
    """On one node with room for one step, that two others fill: alone it would take both steps."""
    cluster = QueuedCluster(node_object("n", allocatable={"cpu": "2", "memory": "8Gi"}))
    submit(cluster.simulated, a_chain("busy", a_step(cpu="2")))
    cluster.settle()
    cluster.submit_and_settle(wide())
    assert cluster.peak()["cpu"] == 2000


def test_steps_that_have_ended_count_no_more(cluster):
    first = a_step("large", cpu="4")
    cluster.submit_and_settle(a_two_shapes(first, a_step("small", cpu="1")))
    assert cluster.peak()["cpu"] == 4000
    cluster.release()
    cluster.simulated.run(lambda: cluster.peak()["cpu"] < 4000)
    assert cluster.peak()["cpu"] == 1000
    assert cluster.spec().finishes_at is not None
    cluster.simulated.run()
    cluster.settle()
    assert cluster.peak() == {}
    assert (cluster.spec().end, cluster.spec().finishes_at) == ("Succeeded", None)


def a_two_shapes(first: Any, second: Any) -> Any:
    graph = dag(
        "main",
        task("first", template=first["name"]),
        task("second", template=second["name"], depends="first"),
    )
    made = workflow(graph, first, second)
    made["metadata"]["name"] = "wf"
    return made


def test_an_unmarked_run_is_planned_for_its_need_alone(cluster):
    plain = workflow(dag("main", task("first"), task("second", depends="first")), step("work"))
    plain["metadata"]["name"] = "wf"
    assert SCHEDULER_LABEL not in str(plain)
    cluster.submit_and_settle(plain)
    assert cluster.peak()["pods"] == 1
    assert cluster.simulated.placements == {}
    cluster.release()
    cluster.simulated.run()
    cluster.settle()
    assert cluster.spec().end == "Succeeded"


def test_without_a_queue_nothing_is_said_and_with_one_of_runs_that_go_on_too(cluster):
    cluster.queue(gone=True)
    cluster.submit_and_settle(held=False)
    assert cluster.requests == {}
    cluster.queue()
    cluster.settle()
    assert cluster.peak()["pods"] >= 1


@pytest.mark.parametrize("label", ["false", None])
def test_a_namespace_that_refuses_takes_no_part(label):
    cluster = QueuedCluster(opt_in=label is None)
    cluster.feed(NAMESPACES, ("", "team"), ObservedNamespace(label or ""))
    cluster.submit_and_settle()
    assert cluster.requests == {}


def test_what_others_have_written_is_put_right(cluster):
    cluster.submit_and_settle()
    right, key = cluster.spec(), RunKey("team", "wf")
    uid = cluster.simulated.workflows["wf"].workflow["metadata"]["uid"]
    cluster.store(key, right.model_copy(update={"priority": 9, "demand": None}), uid)
    cluster.settle()
    assert cluster.spec() == right
    del cluster.requests[key]
    cluster.tell(key, None)
    cluster.settle()
    assert cluster.spec() == right


def test_a_request_of_an_earlier_run_is_removed_first(cluster):
    cluster.store(RunKey("team", "wf"), RunRequestSpec.model_validate(MINIMAL), "another")
    cluster.submit_and_settle()
    assert cluster.deleted == ["request"]
    assert cluster.spec().workflow_uid == "workflow-0"


MINIMAL = {"workflowUID": "another", "submittedAt": "2026-01-05T08:00:00Z"}


def named(queue: str, name: str, priority: int = 0) -> Any:
    template = a_step(name)
    hints = f'{{"v": 1, "queue": "{queue}", "priority": {priority}}}'
    template["metadata"]["annotations"] = {HINTS_ANNOTATION: hints}
    return template


def test_the_queue_and_the_priority_that_its_steps_name(cluster):
    cluster.submit_and_settle(a_two_shapes(named("gpu", "a", 3), named("gpu", "b", 5)))
    assert (cluster.spec().queue, cluster.spec().priority) == ("gpu", 5)


def test_several_queues_are_none(cluster):
    cluster.submit_and_settle(a_two_shapes(named("gpu", "a"), named("cpu", "b")))
    assert cluster.spec().queue == "default"
    assert cluster.spec().notes == (
        "its steps name several RunQueues (cpu, gpu): it waits in default",
    )


def test_a_step_that_fits_no_node_is_said_and_what_has_changed_when_one_comes(cluster):
    cluster.submit_and_settle(a_chain("wf", a_step(cpu="9")))
    assert cluster.spec().unschedulable.startswith("step first: ")
    assert cluster.spec().unschedulable.endswith(" (and 1 more)")
    cluster.simulated.set_node(node_object("large", allocatable={"cpu": "16", "memory": "64Gi"}))
    cluster.settle()
    assert cluster.spec().unschedulable == ""
    assert cluster.peak()["cpu"] == 9000


def test_a_location_that_comes_is_taken_in(cluster):
    near = a_step()
    near["metadata"]["labels"][LOCATION_LABEL] = "edge"
    near["metadata"]["annotations"][HINTS_ANNOTATION] = '{"v": 1, "maxLatency": "5ms"}'
    cluster.submit_and_settle(a_chain("wf", near))
    place = StatedPlace("edge", "edge", (LabelRoundTrip("kubernetes.io/hostname", "n0", 9),))
    cluster.feed(LOCATIONS, ("", "edge"), place)
    cluster.settle()
    assert "edge" in cluster.spec().unschedulable


def test_a_claim_that_comes_is_taken_in(cluster):
    mounts = a_step()
    mounts["container"]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    cluster.submit_and_settle(a_chain("wf", mounts, volumes=[volume]))
    cluster.feed(CLAIMS, ("team", "data"), ObservedClaim(Claim("data", "team"), "v"))
    cluster.feed(VOLUMES, ("", "v"), ObservedVolume("v", ()))
    cluster.settle()
    assert "its volume is elsewhere" in cluster.spec().unschedulable


def test_a_run_of_more_than_ten_years_is_written(cluster):
    cluster.submit_and_settle(a_chain("wf", a_step(seconds=6 * 366 * 86400)))
    assert cluster.spec().makespan_seconds == MAX_DURATION_SECONDS


@pytest.mark.parametrize("held", [True, False])
def test_without_nodes_it_waits_and_says_so(cluster, held):
    for name in ("n0", "n1"):
        cluster.simulated.remove_node(name)
    cluster.submit_and_settle(held=held)
    assert cluster.spec().unschedulable == "the cluster has no nodes"
    cluster.simulated.set_node(node_object("n2"))
    cluster.settle()
    assert cluster.spec().unschedulable == ""


def test_a_run_that_cannot_be_read_says_why(cluster):
    broken = a_chain()
    broken["spec"]["entrypoint"] = "nothing"
    cluster.submit_and_settle(broken)
    assert cluster.spec().demand is None
    assert "nothing" in cluster.spec().problem


def test_many_runs_are_planned_a_few_at_a_time(cluster):
    for number in range(3 * PLANS_PER_EVALUATION):
        cluster.submit(a_chain(f"wf-{number}"))
    cluster.simulated.tell()
    made = [each for each in cluster.coordinator.tick(cluster.simulated.now) if is_write(each)]
    assert len(made) == PLANS_PER_EVALUATION
    assert cluster.coordinator.next_at(cluster.simulated.now) == cluster.simulated.now
    cluster.settle()
    assert len(cluster.requests) == 3 * PLANS_PER_EVALUATION


def is_write(action: Action) -> bool:
    return isinstance(action, WriteRequest)


def test_a_write_that_came_to_nothing_is_tried_again(cluster, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(cluster, "store", lambda *_: None)
        cluster.submit_and_settle()
    tries = len(cluster.writes)
    assert 1 < tries < 6
    cluster.settle()
    assert cluster.peak()["pods"] == 1
    assert len(cluster.writes) == tries + 1


def test_a_new_leader_finds_nothing_to_change(cluster):
    cluster.submit_and_settle()
    successor = a_cluster().coordinator
    successor.follow()
    successor.queues = True
    for key, request in cluster.requests.items():
        successor.handle(RUN_REQUESTS, Change(key, None, request), cluster.simulated.now)
    before = len(cluster.writes)
    cluster.simulated.hand_over(successor)
    cluster.queue()
    cluster.settle()
    assert len(cluster.writes) == before


def test_a_follower_writes_nothing(cluster):
    cluster.coordinator.follow()
    cluster.submit_and_settle()
    assert cluster.writes == []


def test_an_unmarked_run_that_is_over_keeps_nothing_of_its_steps():
    raw = workflow_object(spec=workflow(step("work"))["spec"])
    going_on = observed(raw, unplanned=True)
    assert not going_on.is_marked
    ended = observed(workflow_object(**raw | {"status": {"phase": "Succeeded"}}), unplanned=True)
    assert isinstance(ended.content, WorkflowContent)
    assert ended.content.kept_bytes == 0


def test_a_run_that_cannot_be_read_says_so_and_waits_for_nobody(cluster):
    manifest = wide()
    manifest["metadata"]["annotations"] = {"note": "x" * MAX_DOCUMENT_BYTES}
    cluster.submit_and_settle(manifest)
    spec = cluster.spec()
    assert spec.demand is None
    assert "it cannot be planned" in spec.problem


@pytest.mark.parametrize("priority", [-1, -2, -1_000_000])
def test_a_run_of_a_negative_priority_is_planned_like_any_other(cluster, priority):
    """Its completion counts for less beside others', and never for nothing."""
    cluster.submit(a_two_shapes(*(named("default", name, priority) for name in "ab")))
    cluster.settle()
    (run,) = cluster.coordinator.registry.planned()
    assert 0 < run.weight < 1
    assert run.tracked.problem == ""
    assert cluster.spec().priority == priority


def test_a_held_run_needs_what_the_templates_of_others_need(cluster):
    """Argo has not begun it, and so has stored nothing in it."""
    reference = {"name": "library", "template": "work"}
    manifest = workflow(dag("main", {"name": "a", "templateRef": reference}))
    manifest["metadata"]["name"] = "wf"
    cluster.submit_and_settle(manifest)
    assert cluster.peak().get("cpu", 0) == 0
    assert cluster.spec().problem.endswith("features/workflow-templates is installed")
    feed_library(cluster)
    cluster.settle()
    assert cluster.peak()["cpu"] > 0


def feed_library(cluster: QueuedCluster) -> None:
    """Tell of a WorkflowTemplate `library` with a template `work`."""
    spec = {"entrypoint": "work", "templates": [{**a_step(), "name": "work"}]}
    raw = {"metadata": {"namespace": "team", "name": "library"}, "spec": spec}
    for kind, read in ArgoSource.template_kinds.items():
        if kind.namespaced:
            cluster.feed(kind, ("team", "library"), read(raw))


@pytest.mark.parametrize("has_ended", [False, True])
@pytest.mark.parametrize("is_known", [False, True])
def test_a_run_is_planned_with_a_template_that_it_was_once_read_without(
    cluster, has_ended, is_known
):
    """Of a run that has ended no templates are read; then somebody begins it again."""
    marks = {"labels": a_step()["metadata"]["labels"]}
    metadata = {"name": "wf", "namespace": "team", "uid": "u", "labels": dict(HELD)}
    metadata["creationTimestamp"] = "2026-01-05T08:00:00Z"
    spec = {"workflowTemplateRef": {"name": "library"}, "podMetadata": marks}
    run = {**workflow(), "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
    ended = {"phase": "Failed", "finishedAt": "2026-01-05T08:00:05Z"}
    if is_known:
        feed_library(cluster)
    read = cluster.simulated.read[WORKFLOWS]
    for status in (ended, run["status"])[not has_ended :]:
        cluster.feed(WORKFLOWS, ("team", "wf"), read({**run, "status": status}))
        cluster.simulated.pass_time(4)
    if not is_known:
        feed_library(cluster)
        cluster.simulated.pass_time(4)
    (tracked,) = cluster.coordinator.registry.runs.values()
    assert tracked.refusal == ""
    assert [step.name for step in tracked.reading.graph.steps] == ["work"]
    assert cluster.peak()["cpu"] > 0


def rewrite(cluster: QueuedCluster, name: str = "wf") -> Any:
    """The spec of a run, to be rewritten; what has been done before is told."""
    cluster.settle()
    return cluster.simulated.workflows[name].workflow["spec"]


def test_a_demand_follows_the_spec_of_a_held_run_and_of_one_that_goes_on(cluster):
    cluster.submit_and_settle(wide())
    for cpu, peak in (("3", 6000), ("2", 4000)):
        spec = rewrite(cluster)
        spec["templates"][1]["container"]["resources"] = {"requests": {"cpu": cpu}}
        cluster.settle()
        assert cluster.peak()["cpu"] == peak
        cluster.release() if cpu == "3" else None


def test_a_spec_in_the_form_of_argo_is_planned_once(cluster, monkeypatch):
    cluster.submit_and_settle(wide())
    builder = cluster.coordinator.requests.builder
    planned = Mock(wraps=builder.plan_alone)
    monkeypatch.setattr(builder, "plan_alone", planned)
    for template in rewrite(cluster)["templates"]:
        template |= {"inputs": {}, "outputs": {}, "metadata": template.get("metadata") or {}}
    cluster.settle()
    planned.assert_not_called()
    assert cluster.peak() == {"cpu": 2000, "pods": 2}


def test_a_run_that_can_no_longer_be_read_gives_nothing_back(cluster):
    cluster.submit_and_settle(wide())
    rewrite(cluster)["entrypoint"] = "nothing"
    cluster.settle()
    assert "nothing" in cluster.spec().problem
    assert cluster.peak() == {"cpu": 2000, "pods": 2}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hooks": {"running": {"template": "step", "expression": "true"}}}, "hook running"),
        ({"podSpecPatch": "{{workflow.labels.patch}}"}, "podSpecPatch is known only at run time"),
    ],
    ids=["hook", "patch"],
)
def test_what_cannot_be_known_of_a_run_is_a_problem_beside_its_demand(cluster, change, words):
    manifest = wide()
    manifest["spec"] |= change
    cluster.submit_and_settle(manifest)
    assert cluster.peak() == {"cpu": 2000, "pods": 2}
    assert words in cluster.spec().problem
