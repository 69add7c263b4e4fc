"""A reader of the pods that objects such as an MPIJob or a SparkApplication make.

Counts and defaults are those of the controller of each kind. All pods of an object count at once,
in the number with which it starts; controllers that add or remove pods later are not followed.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.model.demand import PodGroup
from kfp_placement_engine.readers.kubernetes.constraints import (
    read_node_affinity,
    read_tolerations,
)
from kfp_placement_engine.readers.kubernetes.pods import read_requests
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.units.quantities import parse_cpu, parse_resource
from kfp_placement_engine.units.resources import Amounts, without_zeros

_MAX_PODS = 100_000
"""Largest number of pods in one field; more would be no pods of a run."""

_COUNTS = {
    *("replicas", "parallelism", "completions", "instances", "initialExecutors", "quantity"),
    *("numNodes", "resourcesPerNode", "numOfHosts", "minReplicas", "maxReplicas", "minExecutors"),
    *("cores", "coreRequest", "memory", "memoryOverhead", "memoryOverheadFactor"),
    *("spec", "template", "containers", "resources"),
}
"""Fields on which the number of pods, or what they request, depends."""

_OPEN_RULES: dict[str, Any] = {"affinity": {}, "tolerations": [{"operator": "Exists"}]}
"""Rules that count where a part of them is known only at run time: any node may do."""

_Groups = Iterator[PodGroup]


class MadePods(NamedTuple):
    """The pods that an object makes.

    Attributes:
        groups: pods by what they request; None = a kind that is not known here.
        unknown: fields on which they depend and that are known only at run time.
    """

    groups: tuple[PodGroup, ...] | None
    unknown: tuple[str, ...] = ()


def made_pods(manifest: Fields, unknown: object) -> MadePods:
    """Return the pods that an object makes.

    Args:
        manifest: the object.
        unknown: stand-in for values that are known only at run time; such fields count as if
            they were not there.

    Raises:
        InputError: the object is malformed.
    """
    gaps: list[str] = []
    manifest = Fields(_without(manifest.raw, unknown, "", gaps), manifest.place)
    groups = _groups(manifest)
    return MadePods(groups, () if groups is None else tuple(filter(_matters, gaps)))


def _groups(manifest: Fields) -> tuple[PodGroup, ...] | None:
    """Return the pods of an object, or of all objects of a List; None = a kind is not known."""
    group, _, _ = manifest.text("apiVersion").rpartition("/")
    kind = manifest.text("kind")
    if (group, kind) == ("", "List"):
        parts = [_groups(item) for item in manifest.each("items")]
        read = [part for part in parts if part is not None]
        return tuple(pods for part in read for pods in part) if len(read) == len(parts) else None
    reader = _READERS.get((group, kind))
    if reader is None or (reader is _train_job and not _states_nodes(manifest)):
        return () if _is_podless(group, kind) else None
    return tuple(each for each in reader(manifest) if each.count)


def _without(value: Any, unknown: object, path: str, gaps: list[str]) -> Any:
    """Return a value without the parts that are known only at run time, whose paths are added."""
    if isinstance(value, dict):
        entries = {}
        for key, each in value.items():
            before = len(gaps)
            entries[key] = _without(each, unknown, f"{path}.{key}", gaps)
            if len(gaps) > before and key in _OPEN_RULES:
                entries[key] = _OPEN_RULES[key]
        return {key: each for key, each in entries.items() if each is not unknown}
    if isinstance(value, list):
        items = [_without(each, unknown, f"{path}[{i}]", gaps) for i, each in enumerate(value)]
        return [each for each in items if each is not unknown]
    if value is unknown:
        gaps.append(path.removeprefix("."))
    return value


def _matters(path: str) -> bool:
    return path.rpartition(".")[2] in _COUNTS or ".resources." in path


def _is_podless(group: str, kind: str) -> bool:
    """Return whether objects of a kind make no pods."""
    return (not group and kind != "ReplicationController") or group in _PODLESS_GROUPS


def _group(count: int, template: Fields) -> PodGroup:
    """Return the pods of a template."""
    spec = template.fields("spec")
    pod = Fields({"spec": spec.raw}, template.place)
    return PodGroup(
        count,
        without_zeros(read_requests(pod).real),
        spec.text_mapping("nodeSelector"),
        read_node_affinity(spec.fields("affinity").fields("nodeAffinity")),
        read_tolerations(spec.entries("tolerations"), spec.where("tolerations")),
    )


def _replicas(holder: Fields, default: int = 1) -> int:
    is_given = holder.get("replicas") is not None
    return holder.count("replicas", maximum=_MAX_PODS) if is_given else default


def _one_pod(pod: Fields) -> _Groups:
    yield _group(1, pod)


def _replicated(kind: Fields) -> _Groups:
    """Yield the pods of a Deployment and its like."""
    spec = kind.fields("spec")
    yield _group(_replicas(spec), spec.fields("template"))


def _replica_types(key: str, job: Fields) -> _Groups:
    """Yield the pods of a job of Kubeflow's training operator; `key` is that of its replicas."""
    for name, replicas in job.fields("spec").each_named(key):
        # An MPIJob without a number of workers has none.
        default = 0 if (key, name) == ("mpiReplicaSpecs", "Worker") else 1
        yield _group(_replicas(replicas, default), replicas.fields("template"))


def _states_nodes(job: Fields) -> bool:
    """Return whether a TrainJob states its nodes itself, and not only in its runtime."""
    return {"numNodes", "resourcesPerNode"} <= job.fields("spec").fields("trainer").raw.keys()


def _train_job(job: Fields) -> _Groups:
    """Yield the nodes of a job of Kubeflow's Trainer 2."""
    trainer = job.fields("spec").fields("trainer")
    container = {"resources": trainer.mapping("resourcesPerNode")}
    pod = Fields({"spec": {"containers": [container]}}, trainer.place)
    yield _group(trainer.count("numNodes", maximum=_MAX_PODS), pod)


def _tasks(job: Fields) -> _Groups:
    """Yield the pods of a job of Volcano."""
    for task in job.fields("spec").each("tasks"):
        yield _group(_replicas(task), task.fields("template"))


def _job(job: Fields, times: int = 1) -> _Groups:
    spec = job.fields("spec")
    pods = spec.count("parallelism", maximum=_MAX_PODS) if "parallelism" in spec else 1
    if spec.get("completions") is not None:
        pods = min(pods, spec.count("completions"))
    yield _group(times * pods, spec.fields("template"))


def _job_set(jobs: Fields) -> _Groups:
    for each in jobs.fields("spec").each("replicatedJobs"):
        yield from _job(each.fields("template"), _replicas(each))


def _ray_cluster(spec: Fields) -> _Groups:
    yield _group(1, spec.fields("headGroupSpec").fields("template"))
    for group in spec.each("workerGroupSpecs"):
        if group.get("suspend") is True:
            continue
        replicas = max(_replicas(group, 0), group.count("minReplicas", maximum=_MAX_PODS))
        if group.get("maxReplicas") is not None:
            replicas = min(replicas, group.count("maxReplicas"))
        hosts = group.count("numOfHosts", maximum=_MAX_PODS) if "numOfHosts" in group else 1
        yield _group(replicas * hosts, group.fields("template"))


def _ray_job(job: Fields) -> _Groups:
    """Yield the pods of a RayJob: its cluster, and the pod that submits the job to it."""
    spec = job.fields("spec")
    if spec.get("submissionMode", "K8sJobMode") == "K8sJobMode":
        if spec.get("submitterPodTemplate") is not None:
            yield _group(1, spec.fields("submitterPodTemplate"))
        else:
            yield PodGroup(1, {"cpu": 500, "memory": 200 * 2**20})
    if not spec.get("clusterSelector"):
        yield from _ray_cluster(spec.fields("rayClusterSpec"))


def _spark(application: Fields) -> _Groups:
    """Yield the driver and the executors of a SparkApplication."""
    spec = application.fields("spec")
    yield PodGroup(1, _spark_requests(spec, spec.fields("driver")))
    executor, dynamic = spec.fields("executor"), spec.fields("dynamicAllocation")
    # Spark's own default.
    instances = executor.count("instances", maximum=_MAX_PODS) if "instances" in executor else 2
    if dynamic.get("enabled") is True:
        stated = [(executor, "instances"), (dynamic, "initialExecutors"), (dynamic, "minExecutors")]
        instances = max(fields.count(key, maximum=_MAX_PODS) for fields, key in stated)
    yield PodGroup(instances, _spark_requests(spec, executor))


def _spark_requests(spec: Fields, pod: Fields) -> Amounts:
    """Return what a pod of Spark requests, by the rules of Spark's own Kubernetes scheduler."""
    memory = _java_memory(pod, "memory", "1g")
    # Python and R use memory beside that of Java.
    usual = 400 if spec.text("type") in ("Python", "R") else 100
    factor = _thousandths(spec, "memoryOverheadFactor", usual)
    # Spark counts in whole mebibytes.
    overhead = max((memory >> 20) * factor // 1000, 384) << 20
    if pod.get("memoryOverhead") is not None:
        overhead = _java_memory(pod, "memoryOverhead", "")
    cores = "coreRequest" if pod.get("coreRequest") is not None else "cores"
    requests = {"cpu": _thousandths(pod, cores, 1000), "memory": memory + overhead}
    gpu = pod.fields("gpu")
    if gpu:
        requests[gpu.name("name")] = gpu.count("quantity")
    return without_zeros(requests)


def _thousandths(holder: Fields, key: str, default: int) -> int:
    """Return a decimal number in thousandths; text is accepted."""
    if holder.get(key) is None:
        return default
    try:
        return parse_cpu(holder.get(key))
    except QuantityError as error:
        raise holder.where(key).error(f"{error}", QuantityError) from error


_JAVA_MEMORY = re.compile(r"([0-9]{1,15})([kmgtp]?)b?", re.IGNORECASE)
_JAVA_UNITS = {"k": 2**10, "": 2**20, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}


def _java_memory(pod: Fields, key: str, default: str) -> int:
    """Return an amount as Spark reads it: `512m`, `4g`, and mebibytes where no unit is given."""
    text = pod.text(key) or default
    match = _JAVA_MEMORY.fullmatch(text.strip())
    if match is not None:
        return int(match[1]) * _JAVA_UNITS[match[2].lower()]
    try:
        return parse_resource("memory", text)
    except QuantityError as error:
        raise pod.where(key).error(f"{error}", QuantityError) from error


_PODLESS_GROUPS = frozenset(
    {
        *("networking.k8s.io", "rbac.authorization.k8s.io", "storage.k8s.io", "policy"),
        *("snapshot.storage.k8s.io", "scheduling.k8s.io", "coordination.k8s.io"),
        *("gateway.networking.k8s.io", "apiextensions.k8s.io", "autoscaling"),
    }
)
"""API groups of which no kind makes pods."""

_REPLICA_TYPES = {
    **{f"{name}Job": f"{name.lower()}ReplicaSpecs" for name in ("MPI", "TF", "MX", "JAX")},
    "PyTorchJob": "pytorchReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
}
"""Jobs of Kubeflow's training operator, with the key of their replicas."""

_READERS: dict[tuple[str, str], Callable[[Fields], _Groups]] = {
    ("", "Pod"): _one_pod,
    ("apps", "Deployment"): _replicated,
    ("apps", "StatefulSet"): _replicated,
    ("apps", "ReplicaSet"): _replicated,
    ("batch", "Job"): _job,
    ("jobset.x-k8s.io", "JobSet"): _job_set,
    ("batch.volcano.sh", "Job"): _tasks,
    ("ray.io", "RayCluster"): lambda cluster: _ray_cluster(cluster.fields("spec")),
    ("ray.io", "RayJob"): _ray_job,
    ("trainer.kubeflow.org", "TrainJob"): _train_job,
    ("sparkoperator.k8s.io", "SparkApplication"): _spark,
    **{
        ("kubeflow.org", kind): partial(_replica_types, key) for kind, key in _REPLICA_TYPES.items()
    },
}
"""Readers of the kinds that are known, by API group and kind."""
