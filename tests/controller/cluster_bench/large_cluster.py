"""A large cluster on the test control plane: nodes, KFP's pods, runs that never start."""

import copy
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from benchmarks.data import data_folder
from kfp_placement_kube.kinds import JsonObject
from tests.controller.cluster_bench.runs import StepShape, workflow
from tests.controlplane import objects
from tests.controlplane.api import Api
from tests.controlplane.argo.state import ANNOTATION_NODE_NAME
from tests.controlplane.housekeeping import is_ready
from tests.controlplane.waiting import wait_until

_CREATORS = 8
_PROGRESS_EVERY = 1000
_WORKFLOW = "workflows.argoproj.io/workflow"
_STEPS_IN_A_ROW = 5
_READY_TIMEOUT_SECONDS = 300.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    """A run that was submitted.

    Attributes:
        name, uid: of the Workflow.
    """

    name: str
    uid: str


def create_all(api: Api, items: Sequence[JsonObject], what: str, say: Say) -> None:
    """Create many objects, several at a time."""
    with ThreadPoolExecutor(_CREATORS) as pool:
        for number, _ in enumerate(pool.map(api.create, items), start=1):
            if number % _PROGRESS_EVERY == 0:
                say(f"{number:,} of {len(items):,} {what}")


def add_nodes(api: Api, count: int, say: Say) -> list[str]:
    """Nodes of 32 cores and 128 GiB, ready; returns their names."""
    room = {"cpu": "32", "memory": "128Gi"}
    names = [f"node-{number:04d}" for number in range(count)]
    create_all(api, [objects.node(name, room) for name in names], "nodes", say)

    def all_ready() -> bool:
        return all(is_ready(node) for node in api.list("v1", "Node"))

    wait_until(all_ready, f"{count} nodes to be ready", _READY_TIMEOUT_SECONDS)
    return names


def recorded_pod() -> JsonObject:
    """A pod as KFP 2.17 and Argo 4.0 make them, 13 kB, without what the server adds."""
    path = data_folder() / "labelled/extender/filter-taxi-predict.json"
    pod: JsonObject = json.loads(path.read_text("utf-8"))["Pod"]
    metadata = pod["metadata"]
    for key in ("uid", "resourceVersion", "generation", "creationTimestamp", "ownerReferences"):
        metadata.pop(key)
    for label in ("OurLocation", "typeOfComponent", _WORKFLOW):
        metadata["labels"].pop(label)
    pod["spec"].pop("priority")
    pod.pop("status")
    return {"apiVersion": "v1", "kind": "Pod", **pod}


def bound_pods(
    pod: Mapping[str, Any], count: int, nodes: Sequence[str], namespace: str
) -> Iterable[JsonObject]:
    """Pods of no run of ours, on nodes at random."""
    rng = random.Random(0)
    for number in range(count):
        made = copy.deepcopy(dict(pod))
        made["metadata"] |= {"name": f"bound-{number}", "namespace": namespace}
        made["spec"]["nodeName"] = rng.choice(nodes)
        yield made


def long_run(steps: int) -> JsonObject:
    """A run of so many steps, five beside each other, each row after the one before."""
    rng = random.Random(0)
    shapes: list[StepShape] = []
    for number in range(steps):
        first = number - number % _STEPS_IN_A_ROW - _STEPS_IN_A_ROW
        after = () if first < 0 else (f"step-{first + number % _STEPS_IN_A_ROW}",)
        seconds, cpu = rng.uniform(60, 600), rng.choice((250, 500))
        shapes.append(StepShape(f"step-{number}", "Training", seconds, cpu, 0, after))
    return workflow("long", shapes)


def pod_of_step(
    pod: Mapping[str, Any], run: Run, step: str, namespace: str, scheduler: str
) -> JsonObject:
    """The executor pod of a step, for a scheduler of that name."""
    made = copy.deepcopy(dict(pod))
    metadata = made["metadata"]
    metadata |= {"name": f"{run.name}-{step}", "namespace": namespace}
    metadata["labels"][_WORKFLOW] = run.name
    node_name = f"{run.name}.root.{step}.executor"
    metadata["annotations"][ANNOTATION_NODE_NAME] = node_name
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "controller": True}
    metadata["ownerReferences"] = [{**owner, "name": run.name, "uid": run.uid}]
    made["spec"]["schedulerName"] = scheduler
    for container in made["spec"]["containers"]:
        if container["name"] == "main":
            container["resources"] = {"requests": {"cpu": "500m", "memory": "256Mi"}}
    return made
