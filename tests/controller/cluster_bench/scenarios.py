"""Clusters that the ways to place pods are compared on, with what runs there, by seed."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kfp_placement_engine.contract.keys import HINTS_ANNOTATION, SPEED_LABEL, STORE_BANDWIDTH_LABEL
from kfp_placement_kube.kinds import JsonObject
from tests.controller.cluster_bench.runs import StepShape, fan_out, taxi_like, trainings, workflow
from tests.controlplane import objects
from tests.support.taxi_cluster import CLOUD, taxi_nodes

_LONG_SECONDS = 3600.0


@dataclass(frozen=True)
class ForeignPod:
    """A pod of other people.

    Attributes:
        name: of the pod.
        cpu_milli: requested.
        seconds: how long it runs.
        node: where it is; "" = where the default scheduler puts it.
        at_seconds: when it comes, since the submission of the runs; those with a node are there.
    """

    name: str
    cpu_milli: int
    seconds: float = _LONG_SECONDS
    node: str = ""
    at_seconds: float = 0.0

    def manifest(self, namespace: str) -> JsonObject:
        """As it is created."""
        requests = {"cpu": f"{self.cpu_milli}m", "memory": "256Mi"}
        spec: dict[str, Any] = {"nodeName": self.node} if self.node else {}
        pod = objects.pod(self.name, namespace, requests, **spec)
        hints = json.dumps({"v": 1, "duration": f"{1000 * self.seconds:.0f}ms"})
        pod["metadata"]["annotations"] = {HINTS_ANNOTATION: hints}
        return pod


@dataclass(frozen=True)
class Drawn:
    """What a seed draws.

    Attributes:
        workflows: the runs, all submitted at once.
        foreign: pods of other people.
    """

    workflows: tuple[JsonObject, ...]
    foreign: tuple[ForeignPod, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """A cluster and what happens there.

    Attributes:
        name: in tables.
        about: in a sentence.
        nodes: its nodes.
        draw: what a seed draws.
    """

    name: str
    about: str
    nodes: Callable[[], list[JsonObject]]
    draw: Callable[[int], Drawn]


def _shapes_of(kind: Callable[[random.Random], Iterator[StepShape]], seed: int, *more: int) -> Any:
    return list(kind(random.Random(f"{kind.__name__} {seed} {more}")))


def _node(name: str, cores: int, speed: float) -> JsonObject:
    labels = {SPEED_LABEL: f"{speed:g}", STORE_BANDWIDTH_LABEL: "1T"}
    return objects.node(name, {"cpu": str(cores), "memory": "16Gi"}, labels)


def _thesis_nodes() -> list[JsonObject]:
    """The nodes of the taxi sample; the edge is as far from the store as from the cloud."""
    nodes = taxi_nodes()
    for node in nodes:
        bandwidth = "100M" if node["metadata"]["name"] == CLOUD else "25M"
        node["metadata"]["labels"][STORE_BANDWIDTH_LABEL] = bandwidth
    return nodes


def _draw_thesis(seed: int) -> Drawn:
    return Drawn((workflow("taxi-like", _shapes_of(taxi_like, seed)),))


_EQUAL = tuple(f"equal-{number}" for number in range(3))


def _draw_contended(seed: int) -> Drawn:
    runs = tuple(workflow(f"fan-{each}", _shapes_of(fan_out, seed, each)) for each in range(2))
    rng = random.Random(f"foreign {seed}")
    foreign = [ForeignPod(f"stays-{node}", rng.choice((500, 1000)), node=node) for node in _EQUAL]
    for number in range(6):
        at, seconds = rng.uniform(0.5, 20), rng.uniform(2, 8)
        foreign.append(ForeignPod(f"comes-{number}", rng.choice((500, 1000)), seconds, "", at))
    return Drawn(runs, tuple(foreign))


def _draw_waiting(seed: int) -> Drawn:
    return Drawn((workflow("trainings", _shapes_of(trainings, seed)),))


SCENARIOS = (
    Scenario(
        "thesis",
        "The taxi sample's three nodes: a cloud node of 8 CPU and two edge nodes of 2 CPU, half as"
        " fast and with a quarter of its bandwidth to the store. One run: 2 or 3 tables, and for"
        " each of 2 or 3 places a training and a prediction for the users there.",
        _thesis_nodes,
        _draw_thesis,
    ),
    Scenario(
        "contended",
        "Three equal nodes of 4 CPU. Two runs at once, 6 to 8 steps wide; on every node a pod of"
        " other people, and six more of these come meanwhile by way of the default scheduler.",
        lambda: [_node(name, 4, 1.0) for name in _EQUAL],
        _draw_contended,
    ),
    Scenario(
        "waiting pays",
        "One node of speed 4 that has room for two trainings, and three of speed 0.5. One run:"
        " twice 4 or 5 trainings at a time. Who never waits for the fast node takes a slow one.",
        lambda: [_node("fast", 5, 4.0), *(_node(f"slow-{each}", 5, 0.5) for each in range(3))],
        _draw_waiting,
    ),
)
