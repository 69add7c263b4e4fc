"""Whatever the bytes are: a cluster or an input error; and every cluster can be written."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement_engine import Cluster
from kfp_placement_engine.contract.keys import HOST_LABEL
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.node_rules.constraints import usual_platform
from kfp_placement_engine.readers.cluster_file import read_cluster
from kfp_placement_engine.readers.cluster_writer import write_cluster_file
from tests.support.kubernetes import a_list, container, node_object, pod_object

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["1", "-1", "2Gi", "500m", "1e3", "NoSchedule", "v1", "In", "Always", "9.8ms"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)


def rich_dump() -> dict[str, Any]:
    """An object of every kind with every field that is looked at."""
    node = node_object(
        "n1",
        labels={"HOME": "1ms", "kfp-placement.dev/speed": "2"},
        spec={
            "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
            "unschedulable": True,
        },
        images=[{"names": ["a:1"], "sizeBytes": 5}],
    )
    pod = pod_object(
        "p1",
        "n1",
        containers=[container({"cpu": "1"})],
        initContainers=[container({"cpu": "1"}, "i", restartPolicy="Always")],
        overhead={"cpu": "1m"},
        resources={"requests": {"cpu": "2"}},
        volumes=[
            {"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "w", "ephemeral": {}},
        ],
    )
    pod["status"]["containerStatuses"] = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    pod["status"]["conditions"] = [{"type": "PodResizePending", "reason": "Infeasible"}]
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "pv"},
    }
    expression = {"key": "zone", "operator": "In", "values": ["a"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {"nodeAffinity": {"required": terms}},
    }
    return a_list(node, pod, claim, volume)


def cluster_document() -> dict[str, Any]:
    return {
        "apiVersion": "kfp-placement.dev/v1alpha1",
        "kind": "Cluster",
        "nodes": [
            {
                "name": "n1",
                "count": 2,
                "cpu": 2,
                "memory": "4Gi",
                "extended": {"gpu": 1},
                "speed": 2,
                "labels": {"a": "b"},
                "taints": ["a:NoSchedule"],
                "images": {"a": 1},
                "used": {"cpu": 1},
            }
        ],
        "latencies": {"HOME": {"n1": "1ms"}},
        "claims": [{"name": "c", "node": "n1-1", "accessModes": ["ReadWriteOnce"]}],
        "images": {"b:1": "1Gi"},
        "defaults": {"duration": "1m", "loopWidth": 3},
    }


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    paths = [path] if path else []
    if isinstance(value, dict):
        for key, inner in value.items():
            paths += places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            paths += places(inner, (*path, index))
    return paths


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return document


def cluster_or_message(data: bytes) -> Cluster | str:
    try:
        return read_cluster(data, name="file")
    except InputError as error:
        return str(error)


def try_reading(data: bytes) -> None:
    """Read; what can be read can be written and read again."""
    outcome = cluster_or_message(data)
    if isinstance(outcome, Cluster):
        assert_round_trip(outcome)
    else:
        assert outcome.startswith("file")
        assert len(outcome) < 2_000


def assert_round_trip(cluster: Cluster) -> None:
    """A node of a Cluster file has the labels that every kubelet sets."""
    again = read_cluster(write_cluster_file(cluster).encode(), name="again")
    nodes = tuple(
        dataclasses.replace(
            node,
            labels={
                **{HOST_LABEL: node.name, **usual_platform(node.labels)},
                **{**node.platform, **node.labels},
            },
            platform={},
        )
        for node in cluster.nodes
    )
    assert again == dataclasses.replace(cluster, nodes=nodes, source="again", notices=again.notices)


@given(VALUES)
def test_any_document(value):
    try_reading(json.dumps(value).encode())


@pytest.mark.parametrize("make", [rich_dump, cluster_document])
@settings(max_examples=300)
@given(st.data())
def test_a_file_with_anything_anywhere(make, data):
    """One place of a dump or a Cluster file that uses every field holds something else."""
    path = data.draw(st.sampled_from(places(make())))
    document = changed(make(), path, data.draw(VALUES))
    try_reading(json.dumps(document).encode())
