"""Pods that objects such as an MPIJob make: how many, and what each of them requests."""

from typing import Any

import pytest

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.demand import PodGroup
from kfp_placement_engine.readers.kubernetes.workloads import MadePods, made_pods
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place

UNKNOWN = object()
GPU = "nvidia.com/gpu"
MEBIBYTE = 2**20


def pods(api: str, kind: str, spec: Any) -> MadePods:
    return made_pods(Fields({"apiVersion": api, "kind": kind, "spec": spec}, Place("x")), UNKNOWN)


def template(cpu: Any = 1, **more: Any) -> Any:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    return {"template": {"spec": {"containers": containers, **more}}}


def groups(*counts_and_cpu: tuple[int, int]) -> tuple[PodGroup, ...]:
    return tuple(PodGroup(count, {"cpu": 1000 * cpu}) for count, cpu in counts_and_cpu)


@pytest.mark.parametrize(
    ("api", "kind", "spec", "expected"),
    [
        (
            "kubeflow.org/v1",
            "PyTorchJob",
            {
                "pytorchReplicaSpecs": {
                    "Master": template(2),
                    "Worker": {"replicas": 3, **template()},
                }
            },
            groups((1, 2), (3, 1)),
        ),
        (
            "kubeflow.org/v2beta1",
            "MPIJob",
            {"mpiReplicaSpecs": {"Launcher": template(2), "Worker": template()}},
            groups((1, 2)),
        ),
        (
            "kubeflow.org/v1",
            "TFJob",
            {"tfReplicaSpecs": {"PS": {"replicas": 0, **template()}, "Chief": template()}},
            groups((1, 1)),
        ),
        (
            "kubeflow.org/v1",
            "XGBoostJob",
            {"xgbReplicaSpecs": {"Master": template()}},
            groups((1, 1)),
        ),
        ("batch/v1", "Job", template(), groups((1, 1))),
        ("batch/v1", "Job", {"parallelism": 4, **template()}, groups((4, 1))),
        ("batch/v1", "Job", {"parallelism": 4, "completions": 3, **template()}, groups((3, 1))),
        ("batch/v1", "Job", {"completions": 9, **template()}, groups((1, 1))),
        (
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            {
                "replicatedJobs": [
                    {"name": "a", "template": {"spec": template(2)}},
                    {"replicas": 2, "template": {"spec": {"parallelism": 3, **template()}}},
                ]
            },
            groups((1, 2), (6, 1)),
        ),
        ("apps/v1", "Deployment", {"replicas": 2, **template()}, groups((2, 1))),
        ("v1", "Pod", template()["template"]["spec"], groups((1, 1))),
        (
            "batch.volcano.sh/v1alpha1",
            "Job",
            {"tasks": [{"replicas": 2, **template()}]},
            groups((2, 1)),
        ),
        (
            "ray.io/v1",
            "RayCluster",
            {
                "headGroupSpec": template(2),
                "workerGroupSpecs": [
                    {"replicas": 2, "numOfHosts": 4, **template()},
                    {"replicas": 1, "minReplicas": 3, "maxReplicas": 5, **template(3)},
                    {"replicas": 9, "suspend": True, **template()},
                ],
            },
            groups((1, 2), (8, 1), (3, 3)),
        ),
        (
            "ray.io/v1",
            "RayJob",
            {"submissionMode": "HTTPMode", "rayClusterSpec": {"headGroupSpec": template(2)}},
            groups((1, 2)),
        ),
        ("v1", "ConfigMap", None, ()),
        ("networking.k8s.io/v1", "Ingress", {}, ()),
        ("example.com/v1", "Job", template(), None),
        ("kubeflow.org/v1beta1", "Experiment", {}, None),
    ],
)
def test_the_number_of_pods_is_that_of_the_controller(api, kind, spec, expected):
    assert pods(api, kind, spec) == MadePods(expected)


def test_the_nodes_of_a_train_job_count_if_it_states_them_itself():
    each = {"requests": {"cpu": 2}, "limits": {GPU: 1}}

    def made(**trainer: Any) -> MadePods:
        return pods("trainer.kubeflow.org/v1alpha1", "TrainJob", {"trainer": trainer})

    stated = made(numNodes=4, resourcesPerNode=each)
    assert stated == MadePods((PodGroup(4, {"cpu": 2000, GPU: 1}),))
    for partly in ({"numNodes": 4}, {"resourcesPerNode": each}, {}):
        assert made(**partly) == MadePods(None)
    assert made(numNodes=UNKNOWN, resourcesPerNode=each) == MadePods(None)
    assert pods("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", {}) == MadePods(None)


def test_a_ray_job_is_submitted_by_a_pod_of_its_own():
    cluster = {"headGroupSpec": template(2)}
    made = pods("ray.io/v1", "RayJob", {"rayClusterSpec": cluster})
    submitter = PodGroup(1, {"cpu": 500, "memory": 200 * MEBIBYTE})
    assert made.groups == (submitter, *groups((1, 2)))
    own = {"submitterPodTemplate": template(3)["template"], "clusterSelector": {"a": "b"}}
    assert pods("ray.io/v1", "RayJob", own).groups == groups((1, 3))


@pytest.mark.parametrize(
    ("driver", "executor", "more", "expected"),
    [
        ({}, {}, {}, [(1, 1000, 1024 + 384), (2, 1000, 1024 + 384)]),
        (
            {"cores": 2, "coreRequest": "500m", "memory": "512m"},
            {"cores": 4, "instances": 3, "memory": "10g"},
            {},
            [(1, 500, 512 + 384), (3, 4000, 10240 + 1024)],
        ),
        (
            {"memory": "2g", "memoryOverhead": "100m"},
            {"instances": 1, "memory": "2048"},
            {"type": "Python"},
            [(1, 1000, 2148), (1, 1000, 2048 + 819)],
        ),
        (
            {},
            {"instances": 1, "memory": "8g"},
            {
                "memoryOverheadFactor": "0.5",
                "dynamicAllocation": {"enabled": True, "minExecutors": 4, "initialExecutors": 2},
            },
            [(1, 1000, 1024 + 512), (4, 1000, 8192 + 4096)],
        ),
    ],
)
def test_pods_of_spark_request_memory_and_overhead(driver, executor, more, expected):
    spec = {"driver": driver, "executor": executor, **more}
    made = pods("sparkoperator.k8s.io/v1beta2", "SparkApplication", spec)
    wanted = [PodGroup(n, {"cpu": cpu, "memory": int(mib * MEBIBYTE)}) for n, cpu, mib in expected]
    assert list(made.groups or ()) == wanted


def test_executors_of_spark_have_gpus():
    spec = {"executor": {"gpu": {"name": GPU, "quantity": 2}}}
    made = pods("sparkoperator.k8s.io/v1beta2", "SparkApplication", spec)
    assert made.groups is not None
    assert [group.requests.get(GPU, 0) for group in made.groups] == [0, 2]


def test_pods_request_what_pods_of_kubernetes_do():
    init = [{"name": "a", "resources": {"limits": {"cpu": 5, GPU: 1}}}]
    made = pods("batch/v1", "Job", template(2, initContainers=init, overhead={"cpu": "250m"}))
    assert made.groups == (PodGroup(1, {"cpu": 5250, GPU: 1}),)


def test_what_is_known_only_at_run_time_is_named_if_it_matters():
    containers = [{"name": UNKNOWN, "resources": {"limits": {GPU: UNKNOWN, "cpu": 1}}}]
    spec = {"parallelism": UNKNOWN, "template": {"spec": {"containers": containers}}}
    path = f"spec.template.spec.containers[0].resources.limits.{GPU}"
    assert pods("batch/v1", "Job", spec) == MadePods(groups((1, 1)), ("spec.parallelism", path))


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Job", 3),
        ("Job", {"parallelism": -1}),
        ("Job", {"parallelism": 10**9}),
        ("Job", {"template": {"spec": {"containers": {}}}}),
        ("Job", template("much")),
        ("Job", template(overhead="x")),
    ],
)
def test_a_malformed_object_is_refused(kind, spec):
    with pytest.raises(InputError):
        pods("batch/v1", kind, spec)


@pytest.mark.parametrize(
    "driver", [{"memory": "much"}, {"cores": "-1"}, {"gpu": {"quantity": 1}}, {"memory": [1]}]
)
def test_a_malformed_driver_of_spark_is_refused(driver):
    with pytest.raises(InputError):
        pods("sparkoperator.k8s.io/v1beta2", "SparkApplication", {"driver": driver})
