"""Kubelets: admission, a pod's life, faults, reports."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.controlplane.kubelet.admission import admit
from tests.controlplane.kubelet.amounts import amount, pod_requests, whole_amount
from tests.controlplane.kubelet.kubelet import Kubelets, Removal, Report, StatusChange
from tests.controlplane.kubelet.workload import Workload, WorkloadSettings
from tests.support.kubernetes import container, node_object, pod_object

START = datetime(2026, 1, 5, 8, 0, 0, tzinfo=UTC)
NODES = {"n1": node_object()}
ALL_CPUS = [container({"cpu": "8"})]
HINTS = '{"v": 1, "duration": "10s", "outputs": {"model": "50M"}}'


def a_pod(name="p1", node="n1", annotations=None, **spec):
    pod = pod_object(name, node, "Pending", **spec)
    pod["metadata"]["annotations"] = annotations or {}
    pod["metadata"]["uid"] = f"uid-{name}"
    return pod


def a_driver(name="d1", **arguments):
    args = [part for key, value in arguments.items() for part in (f"--{key}", value)]
    main = {"name": "main", "image": "kfp-driver:2.17.0", "command": ["driver"], "args": args}
    annotations = {
        "workflows.argoproj.io/node-id": "wf-1",
        "workflows.argoproj.io/node-name": "wf(0).root(0).train-driver(0)",
    }
    labels = {"workflows.argoproj.io/workflow": "wf"}
    return a_pod(name, annotations=annotations, labels=labels, containers=[main])


def after(seconds):
    return START + timedelta(seconds=seconds)


def kubelets(**settings):
    defaults = {"start_seconds": 0.0, "step_seconds": 10.0} | settings
    return Kubelets(Workload(WorkloadSettings(**defaults)))


def statuses(changes):
    return {change.name: change.status for change in changes if isinstance(change, StatusChange)}


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [("1", 1), ("500m", 0.5), ("1Gi", 2**30), ("1.5G", 1.5e9), ("1e3", 1000), (2, 2)],
)
def test_quantities(quantity, expected):
    assert amount(quantity) == expected


def test_cpu_is_counted_in_thousandths_rounded_up():
    assert whole_amount("cpu", "0.0001") == 1
    assert whole_amount("memory", "0.5") == 1


def test_requests_are_the_larger_of_containers_and_each_init_container():
    pod = a_pod(
        containers=[container({"cpu": "1"}), container({"cpu": "1", "memory": "1Gi"}, "wait")],
        initContainers=[container({"cpu": "3"}, "init"), container({"cpu": "500m"}, "launcher")],
    )
    assert pod_requests(pod) == {"cpu": 3000, "memory": 2**30}


def test_an_init_container_that_goes_on_counts_with_the_others():
    sidecar = container({"cpu": "1"}, "side", restartPolicy="Always")
    pod = a_pod(containers=[container({"cpu": "2"})], initContainers=[sidecar])
    assert pod_requests(pod) == {"cpu": 3000}


def test_a_limit_without_a_request_is_one():
    main = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    assert pod_requests(a_pod(containers=[main])) == {"nvidia.com/gpu": 1}


@pytest.mark.parametrize(
    ("requests", "reason"),
    [
        ({"cpu": "8"}, None),
        ({"cpu": "8001m"}, "OutOfcpu"),
        ({"memory": "17Gi"}, "OutOfmemory"),
        ({"nvidia.com/gpu": "1"}, "OutOfnvidia.com/gpu"),
    ],
)
def test_a_pod_that_does_not_fit_an_empty_node(requests, reason):
    failure = admit(node_object(), [], a_pod(containers=[container(requests)]))
    assert (failure.reason if failure else None) == reason


def test_a_pod_that_does_not_fit_beside_others_and_the_kubelets_words():
    other = a_pod("p2", containers=[container({"cpu": "7500m"})])
    failure = admit(node_object(), [other], a_pod(containers=[container({"cpu": "1"})]))
    assert failure is not None
    assert failure.status == {
        "phase": "Failed",
        "reason": "OutOfcpu",
        "message": "Pod was rejected: Node didn't have enough resource: cpu, requested: 1000, "
        "used: 7500, capacity: 8000",
    }


def test_the_number_of_pods_is_limited():
    node = node_object(allocatable={"pods": "1"})
    failure = admit(node, [a_pod("p2")], a_pod())
    assert failure is not None
    assert failure.reason == "OutOfpods"


def test_a_life_from_admission_to_the_end():
    machine = kubelets(start_seconds=1.0)
    pod = a_pod()

    assert statuses(machine.look([pod], NODES, START))["p1"]["phase"] == "Pending"
    assert machine.look([pod], NODES, after(0.5)) == []
    assert machine.next_change(after(0.5)) == after(1)
    assert statuses(machine.look([pod], NODES, after(1)))["p1"]["phase"] == "Running"
    assert machine.next_change(after(1)) == after(11)
    ended = statuses(machine.look([pod], NODES, after(11)))["p1"]
    assert ended["phase"] == "Succeeded"
    assert ended["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    assert machine.next_change(after(11)) is None


def test_unbound_pods_and_pods_of_unknown_nodes_wait():
    machine = kubelets()
    pods = [a_pod("p1", node=None), a_pod("p2", node="elsewhere")]
    assert machine.look(pods, NODES, START) == []


def test_room_is_free_again_when_a_pod_has_ended():
    machine = kubelets()
    first, second = a_pod("p1", containers=ALL_CPUS), a_pod("p2", containers=ALL_CPUS)
    third = a_pod("p3", containers=ALL_CPUS)

    pods = statuses(machine.look([first, second], NODES, START))
    assert pods["p1"]["phase"] == "Running"
    assert pods["p2"]["reason"] == "OutOfcpu"
    assert "p2" not in statuses(machine.look([first, second], NODES, after(1)))
    pods = statuses(machine.look([first, second, third], NODES, after(10)))

    assert pods["p1"]["phase"] == "Succeeded"
    assert pods["p3"]["phase"] == "Running"


def test_speed_and_transfers():
    labels = {"kfp-placement.dev/speed": "2", "kfp-placement.dev/store-bandwidth": "10M"}
    pod = a_pod(annotations={"kfp-placement.dev/hints": HINTS})
    times = Workload().duration(pod, node_object(labels=labels))
    assert (times.read, times.work, times.write) == (0, 5, 5)


def test_a_step_reads_what_its_producers_wrote():
    config = {"podMetadata": {"annotations": {"kfp-placement.dev/hints": HINTS}}}
    produced = {"taskOutputArtifact": {"producerTask": "train", "outputArtifactKey": "model"}}
    names = {"kubernetes_config": json.dumps(config), "task": "{}"}
    producer = a_driver("d1", type="CONTAINER", **names)
    task = json.dumps({"inputs": {"artifacts": {"m": produced}}})
    consumer = a_driver("d2", type="CONTAINER", task=task)
    key = "workflows.argoproj.io/node-name"
    consumer["metadata"]["annotations"][key] = "wf(0).root(0).use-driver(0)"
    labels = {"workflows.argoproj.io/workflow": "wf"}
    executor = a_pod(annotations={key: "wf(0).root(0).use(0).executor(0)"}, labels=labels)
    workload = Workload()
    workload.learn(producer)
    workload.learn(consumer)

    node = node_object(labels={"kfp-placement.dev/store-bandwidth": "10M"})
    assert workload.duration(executor, node).read == 5


def test_a_driver_reports_before_it_ends():
    machine = Kubelets(Workload(WorkloadSettings(start_seconds=0, driver_seconds=1)))
    driver = a_driver(type="CONTAINER", task_name="train", container='{"image": "python:3.12"}')
    machine.look([driver], NODES, START)

    report, change = machine.look([driver], NODES, after(1))

    assert isinstance(report, Report)
    assert isinstance(change, StatusChange)
    assert report.result["metadata"] == {
        "name": "wf-1",
        "namespace": "default",
        "labels": {
            "workflows.argoproj.io/workflow": "wf",
            "workflows.argoproj.io/report-outputs-completed": "true",
        },
    }
    outputs = {entry["name"]: entry["value"] for entry in report.result["outputs"]["parameters"]}
    assert outputs["cached-decision"] == "false"
    assert change.status["phase"] == "Succeeded"


def test_faults_on_demand():
    machine = kubelets()
    machine.exit_codes["*.bad(0)"] = 3
    key = "workflows.argoproj.io/node-name"
    bad = a_pod("bad", annotations={key: "wf.bad(0)"})
    pods = [bad, a_pod("p1")]
    machine.look(pods, NODES, START)
    machine.fail("p1", after(1), exit_code=7)

    early = statuses(machine.look(pods, NODES, after(1)))
    late = machine.look(pods, NODES, after(10))

    assert early["p1"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 7
    assert statuses(late)["bad"]["phase"] == "Failed"
    with pytest.raises(KeyError, match="no kubelet"):
        machine.fail("p9", after(2))


def test_a_pods_own_deadline_ends_it():
    machine = kubelets()
    pod = a_pod(activeDeadlineSeconds=3)
    machine.look([pod], NODES, START)
    assert statuses(machine.look([pod], NODES, after(3)))["p1"]["reason"] == "DeadlineExceeded"


def test_a_deleted_pod_is_removed_and_gives_its_room_back():
    machine = kubelets()
    pod = a_pod("p1", containers=ALL_CPUS)
    machine.look([pod], NODES, START)
    pod["metadata"]["deletionTimestamp"] = "2026-01-05T08:00:01Z"

    assert machine.look([pod], NODES, after(1)) == [Removal("default", "p1")]
    pods = statuses(machine.look([a_pod("p2", containers=ALL_CPUS)], NODES, after(2)))
    assert pods["p2"]["phase"] == "Running"


def test_the_room_of_a_pod_that_is_gone_is_free_at_once():
    """Both are seen in one look: the pod of before is gone, and the scheduler has used its room."""
    machine = kubelets()
    machine.look([a_pod("p1", containers=ALL_CPUS)], NODES, START)

    pods = statuses(machine.look([a_pod("p2", containers=ALL_CPUS)], NODES, after(1)))
    assert pods["p2"]["phase"] == "Running"


def test_nobody_removes_a_deleted_pod_from_a_node_that_is_not_there():
    machine = kubelets()
    pod = a_pod("p1")
    machine.look([pod], NODES, START)
    pod["metadata"]["deletionTimestamp"] = "2026-01-05T08:00:01Z"
    assert machine.look([pod], {}, after(1)) == []
    assert machine.look([pod], NODES, after(2)) == [Removal("default", "p1")]
