"""Description of a cluster in a few lines of Python.

The fields are those of a Cluster file, and the same reader reads them.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from typing_extensions import override

import kfp_placement_engine.model.cluster as model
from kfp_placement._files import write_whole
from kfp_placement._reading import engine_errors
from kfp_placement.exceptions import MarkValueError, RunError, UsageError
from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.readers import read_cluster
from kfp_placement_engine.readers.cluster_form import KIND
from kfp_placement_engine.readers.text.forms import camel_case, snake_case
from kfp_placement_engine.readers.text.yaml_text import yaml_text
from kfp_placement_engine.views.formatting import counted

_GPU = "nvidia.com/gpu"
_PARTS = ("latencies", "claims", "images", "defaults", "policy", "pipelines")
_MAX_NAMES = 5


@dataclass(frozen=True)
class Node:
    """One node, or several equal ones; the fields are those of a node in a Cluster file.

    Attributes:
        name: name of the node; several equal nodes are `worker-1`, `worker-2` and so on.
        count: number of nodes that are like this.
        cpu: CPU that pods may request: `4`, `"7910m"`.
        memory: memory that pods may request: `"16Gi"`.
        pods: number of pods that may run at a time.
        gpu: number of NVIDIA GPUs: short for `extended={"nvidia.com/gpu": 1}`.
        extended: other resources by name, such as `ephemeral-storage`.
        speed: factor by which run times are divided; 1 is the reference node.
        labels: labels of the node.
        taints: taints: `"gpu=true:NoSchedule"`, or mappings with key, value and effect.
        unschedulable: whether the node is cordoned.
        images: images that the node holds, with their sizes: `{"python:3.12": "350Mi"}`.
        store_bandwidth: bandwidth to and from the object store, in bytes per second: `"250M"`.
        pull_rate: bandwidth of image pulls, in bytes per second.
        used: sum of the requests of pods that run there and stay, `pods` included.
        scored_used: CPU and memory of these pods as kube-scheduler's scores count them.
    """

    name: str
    _: KW_ONLY
    count: int = 1
    cpu: str | float
    memory: str | int
    pods: int = 110
    gpu: int | None = None
    extended: Mapping[str, str | float] = field(default_factory=dict)
    speed: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[str | Mapping[str, str]] = ()
    unschedulable: bool = False
    images: Mapping[str, str | int] = field(default_factory=dict)
    store_bandwidth: str | float | None = None
    pull_rate: str | float | None = None
    used: Mapping[str, str | float] = field(default_factory=dict)
    scored_used: Mapping[str, str | float] | None = None

    def __post_init__(self) -> None:
        """Raise an error for GPUs that are given twice."""
        if self.gpu is not None and isinstance(self.extended, Mapping) and _GPU in self.extended:
            raise MarkValueError(
                f"node {self.name!r:.80}: gpu and extended[{_GPU!r}] are the same; give one of them"
            )

    def document(self) -> dict[str, Any]:
        """Return the node as in a Cluster file; fields with default values are left out."""
        given = dict(vars(self))
        extended = self.extended or {}
        # Another type is refused by the reader, which names the place.
        if given.pop("gpu") is not None and isinstance(extended, Mapping):
            given["extended"] = {**extended, _GPU: self.gpu}
        if isinstance(self.taints, str | Mapping):
            given["taints"] = [self.taints]
        usual = vars(Node("", cpu="", memory=""))
        return {
            camel_case(name): value
            for name, value in given.items()
            # `True` equals 1, and arrays of numpy cannot be compared; their texts differ.
            if repr(value) != repr(usual[name])
        }


@dataclass(frozen=True, repr=False)
class Cluster:
    """A cluster to plan on, described in Python; the fields are those of a Cluster file.

    It is read when it is created, so a mistake fails there.

    Attributes:
        nodes: nodes of the cluster.
        latencies: round trips by location, then by node: `{"HOME-EDGE": {"edge": "9.8ms"}}`; a
            bare number is milliseconds.
        claims: volume claims that exist, each a mapping with the keys of a Cluster file.
        images: sizes of images that no node holds yet: `{"team/train:7": "3Gi"}`.
        defaults: assumptions about what is not stated, by key of a Cluster file:
            `{"image": "1Gi"}`.
        policy: fields of the cluster's PlacementPolicy that matter to plans, by key of a Cluster
            file: `{"actuator": "gates"}`.
        pipelines: namespaces in which all steps of KFP runs count as marked: `{"team-a": "all"}`.
        name: name of the cluster in plans and messages; a Cluster file does not hold it.
        noun: the cluster as the planner sees it.

    Raises:
        UsageError: a node is not a `Node`.
        RunError: a field is wrong; the message names the place.
    """

    nodes: Iterable[Node]
    _: KW_ONLY
    latencies: Mapping[str, Mapping[str, str | float]] = field(default_factory=dict)
    claims: Sequence[Mapping[str, Any]] = ()
    images: Mapping[str, str | int] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)
    pipelines: Mapping[str, str] = field(default_factory=dict)
    name: str = "cluster"
    noun: model.Cluster = field(init=False, compare=False)
    _text: str = field(init=False, compare=False)
    """The description as JSON, which no later change of a node's labels can reach."""

    def __post_init__(self) -> None:
        """Read the description, as a Cluster file is read."""
        nodes = tuple(self.nodes) if isinstance(self.nodes, Iterable) else None
        if nodes is None or not all(isinstance(each, Node) for each in nodes):
            raise UsageError(
                "a Cluster is made of a list of Nodes; write for example"
                " Cluster([Node('worker', count=3, cpu=4, memory='16Gi')])"
            )
        object.__setattr__(self, "nodes", nodes)
        parts = {name: getattr(self, name) for name in _PARTS}
        document = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "nodes": [node.document() for node in nodes],
            **{name: value for name, value in parts.items() if value not in ({}, ())},
        }
        object.__setattr__(self, "_text", _json(document, self.name))
        object.__setattr__(self, "noun", read_document(document, self.name))

    def document(self) -> dict[str, Any]:
        """Return the content of a Cluster file, as plain values."""
        return dict(json.loads(self._text))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the cluster as a Cluster file (YAML), whole or not at all.

        Returns:
            The path written to.

        Raises:
            RunError: the file cannot be written.
        """
        target = Path(path)
        write_whole(target, yaml_text(self.document()))
        return target

    @override
    def __repr__(self) -> str:
        names = [node.name for node in self.noun.nodes]
        return f"<Cluster of {counted(len(names), 'node')}: {listed(names, _MAX_NAMES)}>"


def read_document(document: Mapping[str, Any], name: str) -> model.Cluster:
    """Read the content of a Cluster file, or of what kubectl prints, given as plain values.

    Raises:
        RunError: the document does not describe a cluster.
    """
    with engine_errors():
        return read_cluster(_json(document, name).encode("utf-8"), name=name)


def cluster_from(document: Mapping[str, Any], name: str) -> Cluster:
    """Return the description of a cluster that a Cluster file holds.

    Args:
        document: content of the file, which must be valid.
        name: name of the cluster for messages.
    """
    nodes = [
        Node(**{snake_case(key): value for key, value in each.items()})
        for each in document["nodes"]
    ]
    parts = {part: document[part] for part in _PARTS if part in document}
    return Cluster(nodes, name=name, **parts)


def _json(document: Mapping[str, Any], name: str) -> str:
    try:
        return json.dumps(document)
    except (TypeError, ValueError, RecursionError) as error:
        raise RunError(f"{name}: cannot be written as JSON: {error}") from error
