"""What is kept of a pod, on pods as Argo made them and as a kubelet reports on them."""

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_controller.observed.limited_fields import MAX_TEXT_CHARACTERS
from kfp_placement_controller.observed.pods import ReasonAndMessage
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_engine.contract.keys import HINTS_ANNOTATION, PLAN_GATE
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.argo.keys import NODE_NAME_ANNOTATION, WORKFLOW_LABEL
from kfp_placement_engine.units.quantities import parse_quantity
from tests.support.data import data_json
from tests.support.kubernetes import pod_object

OWNER = {"kind": "Workflow", "name": "run", "uid": "w", "controller": True}


def recorded_pods(name):
    """The pods of a labelled pipeline in the order in which Argo made them."""
    pods = data_json("labelled", "recordings", f"{name}.json")["pods"]
    for pod in pods:
        for owner in pod["metadata"]["ownerReferences"]:
            owner["uid"] = "w"  # Recordings are kept without uids.
    return [DEFAULT_SOURCES.observe_pod(pod) for pod in pods]


def a_pod(status=None, metadata=None, **spec):
    pod = pod_object(**spec)
    pod["metadata"] |= metadata or {}
    pod["status"] |= status or {}
    return DEFAULT_SOURCES.observe_pod(pod)


def run_of(pod):
    """Name and uid of the Workflow that a pod is of."""
    pod_run = DEFAULT_SOURCES.run_of(pod)
    return ("", "") if pod_run is None else (pod_run.key[1], pod_run.uid)


def node_name(pod):
    return pod.annotations[NODE_NAME_ANNOTATION]


def state(name="main", **kinds):
    return {"name": name, "state": kinds}


def test_executors_of_a_labelled_run_bear_the_marks_and_drivers_do_not():
    pods = recorded_pods("taxi")
    marked = [pod for pod in pods if pod.scheduler_mark]
    assert {pod.step_type for pod in marked} >= {"Training", "Predict"}
    assert {pod.scheduler_mark for pod in marked} == {"kfp-placement"}
    assert "HOME-EDGE" in {pod.location for pod in marked}
    assert all("driver" in node_name(pod) for pod in pods if not pod.scheduler_mark)


def test_an_executor_without_our_mark_is_told_from_drivers():
    recording = data_json("argo-4.0.5", "two_step_pipeline.json")
    pods = [DEFAULT_SOURCES.observe_pod(pod) for pod in recording["pods"]]
    steps = [node_name(pod) for pod in pods if pod.unmarked_step]
    assert len(steps) == 2
    assert all(".executor" in name for name in steps)
    assert not any(pod.unmarked_step for pod in recorded_pods("taxi") if pod.scheduler_mark)


def test_a_recorded_pod_knows_its_workflow_and_its_place_in_it():
    pods = recorded_pods("taxi")
    (workflow,) = {run_of(pod)[0] for pod in pods}
    assert workflow
    assert all(node_name(pod).startswith(workflow) for pod in pods)
    assert len({node_name(pod) for pod in pods}) == len(pods)


def test_recorded_requests_are_those_of_the_largest_phase():
    (train,) = (pod for pod in recorded_pods("taxi") if pod.step_type == "Training")
    assert train.requests["cpu"] > 0
    assert train.requests["memory"] >= parse_quantity("64Mi")
    assert set(train.scored_requests) == {"cpu", "memory"}


@pytest.mark.parametrize(
    ("image", "kept"), [("python:3.12", "python:3.12"), ("i" * 512, "i" * 512), ("i" * 513, "")]
)
def test_the_image_of_the_container_that_runs_the_step_is_kept_unless_it_is_too_long(image, kept):
    containers = [{"name": "wait", "image": "argoexec"}, {"name": "main", "image": image}]
    labels = {"workflows.argoproj.io/workflow": "w"}
    assert a_pod(metadata={"labels": labels}, containers=containers).image == kept
    assert a_pod(metadata={"labels": labels}, containers=containers[:1]).image == ""


def test_a_pod_that_is_not_of_a_workflow_is_kept_for_its_room():
    pod = a_pod(node="n1")
    assert (*run_of(pod), pod.scheduler_mark) == ("", "", "")
    assert pod.holds_room


@pytest.mark.parametrize(
    ("node", "phase", "holds"),
    [
        (None, "Pending", False),
        ("n1", "Pending", True),
        ("n1", "Running", True),
        ("n1", "Succeeded", False),
        ("n1", "Failed", False),
        ("n1", "Unknown", True),
    ],
)
def test_a_bound_pod_takes_room_until_it_has_ended(node, phase, holds):
    assert a_pod(node=node, phase=phase).holds_room is holds


@pytest.mark.parametrize(
    ("hints", "limit_ms"),
    [
        ('{"maxLatency":"2.5ms","v":1}', 2.5),
        (r'{"max\u004catency":"2.5ms","v":1}', 2.5),
        ('{"duration":"1m","v":1}', None),
        ('{"maxLatency":"soon","v":1}', None),
        ("maxLatency", None),
        ("", None),
    ],
)
def test_the_limit_of_the_round_trip_is_that_of_the_hints(hints, limit_ms):
    pod = a_pod(metadata={"annotations": {HINTS_ANNOTATION: hints}})
    assert pod.max_latency_ms == limit_ms


@pytest.mark.parametrize(
    ("host", "unsatisfiable"),
    [("no-node-within-5ms", True), ("n1", False), (7, False), (None, False)],
)
def test_a_pod_that_requires_a_host_that_there_is_none_of_is_barred(host, unsatisfiable):
    by_host = {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}
    terms = [{"matchExpressions": [{"key": "zone", "values": ["no-node-within-1ms"]}]}]
    if host is not None:
        terms.append({"matchExpressions": [by_host]})
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    assert a_pod(affinity={"nodeAffinity": required}).unsatisfiable is unsatisfiable


def test_a_pod_being_deleted_says_so():
    assert a_pod(metadata={"deletionTimestamp": "2026-11-21T10:00:00Z"}).deleting


def test_the_workflow_that_owns_a_pod_is_told_from_other_owners():
    owners = [{"kind": "Job", "name": "run", "uid": "j"}, OWNER]
    labels = {WORKFLOW_LABEL: "run"}
    assert run_of(a_pod(metadata={"labels": labels, "ownerReferences": owners})) == ("run", "w")
    assert run_of(a_pod(metadata={"labels": labels, "ownerReferences": owners[:1]})) == ("", "")


@pytest.mark.parametrize(
    ("label", "owner"),
    [
        ("run", {}),
        ("run", {**OWNER, "controller": False}),
        ("run", {**OWNER, "kind": "Job"}),
        ("run", {**OWNER, "name": "other"}),
        ("", OWNER),
    ],
)
def test_a_pod_is_of_no_run_unless_its_workflow_controls_it(label, owner):
    metadata = {"labels": {WORKFLOW_LABEL: label}, "ownerReferences": [owner]}
    assert run_of(a_pod(metadata=metadata)) == ("", "")


@pytest.mark.parametrize("owner", ["w", None, {"kind": {}, "uid": "w"}, {"kind": "Job"}])
def test_an_owner_of_another_form_is_passed_over(owner):
    """The pod is kept, and its run found by the other owner."""
    metadata = {"labels": {WORKFLOW_LABEL: "run"}}
    owners = [owner, OWNER]
    assert run_of(a_pod(metadata={**metadata, "ownerReferences": owners})) == ("run", "w")


def test_times_are_those_of_the_main_container():
    times = {"startedAt": "2026-11-21T10:00:05Z", "finishedAt": "2026-11-21T10:01:00Z"}
    others = {"startedAt": "2026-11-21T10:00:01Z"}
    pod = a_pod(
        {
            "startTime": "2026-11-21T10:00:00Z",
            "containerStatuses": [state("wait", running=others), state(terminated=times)],
        }
    )
    assert pod.started_at == datetime(2026, 11, 21, 10, tzinfo=UTC)
    assert pod.running_at == datetime(2026, 11, 21, 10, 0, 5, tzinfo=UTC)
    assert pod.finished_at == datetime(2026, 11, 21, 10, 1, tzinfo=UTC)


def test_a_step_that_still_runs_has_no_end():
    running = {"startedAt": "2026-11-21T10:00:05Z"}
    pod = a_pod({"containerStatuses": [state(running=running)]})
    assert pod.running_at is not None
    assert pod.finished_at is None


def test_a_pod_is_prepared_when_its_containers_may_begin():
    ready = {"type": "PodReadyToStartContainers", "status": "True"}
    assert a_pod({"conditions": [ready]}).prepared
    assert not a_pod({"conditions": [ready | {"status": "False"}]}).prepared
    waiting = state(waiting={"reason": "PodInitializing"})
    assert not a_pod({"containerStatuses": [waiting]}).prepared
    # Kubelets before 1.29 do not say it.
    began = state("init", terminated={"startedAt": "2026-11-21T10:00:05Z"})
    assert a_pod({"initContainerStatuses": [began], "containerStatuses": [waiting]}).prepared


def test_the_scheduler_s_words_are_kept_and_cut():
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod = a_pod({"conditions": [condition | {"message": "x" * 5000}]})
    assert pod.unscheduled == ReasonAndMessage("Unschedulable", "x" * MAX_TEXT_CHARACTERS)
    assert a_pod({"conditions": [condition | {"status": "True"}]}).unscheduled is None


def test_the_reason_that_says_most_is_kept():
    waits = [
        state("init", waiting={"reason": "PodInitializing"}),
        state(waiting={"reason": "ImagePullBackOff"}),
    ]
    assert a_pod({"containerStatuses": waits}).waiting_reason == "ImagePullBackOff"
    assert a_pod({"containerStatuses": waits[:1]}).waiting_reason == "PodInitializing"
    assert a_pod().waiting_reason == ""


def test_a_pod_the_kubelet_rejected_says_why():
    rejected = {"reason": "OutOfcpu", "message": "Node didn't have enough resource: cpu"}
    pod = a_pod(rejected, phase="Failed")
    assert pod.failure == ReasonAndMessage("OutOfcpu", "Node didn't have enough resource: cpu")
    assert a_pod(phase="Failed").failure is None


def test_gates_of_others_are_seen_too():
    gates = [{"name": "kueue.x-k8s.io/admission"}, {"name": "kfp-placement.dev/plan"}]
    pod = a_pod(schedulingGates=gates)
    assert pod.gates == ("kueue.x-k8s.io/admission", "kfp-placement.dev/plan")


def test_claims_are_named_those_made_for_the_pod_too():
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "shared"}},
        {"name": "scratch", "ephemeral": {}},
        {"name": "tmp", "emptyDir": {}},
    ]
    assert a_pod(volumes=volumes).claims == ("shared", "p1-scratch")


def test_what_is_kept_of_a_pod_has_no_place_for_more():
    with pytest.raises(AttributeError):
        a_pod().status  # noqa: B018


@pytest.mark.parametrize(
    ("part", "field", "text"),
    [
        ("metadata", "annotations", {NODE_NAME_ANNOTATION: "x" * 240_000}),
        ("metadata", "ownerReferences", [OWNER | {"kind": "x" * 240_000, "uid": "u" * 240_000}]),
        ("spec", "schedulerName", "x" * 240_000),
        ("spec", "schedulingGates", [{"name": f"g{number}"} for number in range(9_000)]),
        (
            "spec",
            "volumes",
            [
                {"name": f"v{number}", "persistentVolumeClaim": {"claimName": f"c{number}"}}
                for number in range(9_000)
            ],
        ),
        ("status", "reason", "x" * 240_000),
        ("status", "message", "x" * 240_000),
        ("status", "containerStatuses", [state(waiting={"reason": "x" * 240_000})]),
    ],
)
def test_little_is_kept_of_a_pod_that_says_much(part, field, text):
    pod = pod_object()
    pod.setdefault(part, {})[field] = text
    pod["status"]["phase"] = "Failed"
    kept = DEFAULT_SOURCES.observe_pod(pod)
    assert len(repr(kept)) < 6_000


def test_our_gate_is_kept_among_thousands():
    gates = [{"name": name} for name in (*(f"g{number}" for number in range(900)), PLAN_GATE)]
    assert PLAN_GATE in a_pod(schedulingGates=gates).gates


def test_of_thousands_of_resources_those_that_a_node_may_have_are_kept():
    absurd = {f"a.example/{number}": "0" for number in range(9_000)}
    real = {"nvidia.com/gpu": "2", "cpu": "3", "memory": "5"}
    kept = a_pod(containers=[{"name": "main", "resources": {"requests": absurd | real}}]).requests
    assert kept == {"cpu": 3000, "memory": 5, "nvidia.com/gpu": 2}
    many = dict.fromkeys(absurd, "1") | real
    kept = a_pod(containers=[{"name": "main", "resources": {"requests": many}}]).requests
    assert len(kept) == 64
    assert kept["cpu"] == 3000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
FIELDS = (
    "creationTimestamp", "ownerReferences", "labels", "annotations", "conditions", "startTime",
    "containerStatuses", "initContainerStatuses", "schedulingGates", "volumes", "containers",
)  # fmt: skip


@given(st.sampled_from(["metadata", "spec", "status"]), st.sampled_from(FIELDS), JSON)
def test_whatever_a_field_holds_nothing_but_our_own_error_comes_of_it(part, field, value):
    pod = pod_object()
    pod[part][field] = value
    with contextlib.suppress(InputError):
        assert DEFAULT_SOURCES.observe_pod(pod).name == "p1"
