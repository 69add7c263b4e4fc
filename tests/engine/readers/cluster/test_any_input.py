"""Whatever the bytes are: a cluster or an input error; and every cluster can be written."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement_engine.contract.keys import HOST_LABEL
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.cluster import Claim, Cluster, Node, Taint
from kfp_placement_engine.model.round_trips import latencies_from_labels
from kfp_placement_engine.model.run_graph import NodeSelectorTerm, Requirement
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
TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
NAME = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
AMOUNT = st.integers(0, 2**40)
POSITIVE = st.integers(1, 2**40)


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
    found = [path] if path else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += places(inner, (*path, index))
    return found


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
    found = cluster_or_message(data)
    if isinstance(found, Cluster):
        assert_round_trip(found)
    else:
        assert found.startswith("file")
        assert len(found) < 2_000


def assert_round_trip(cluster: Cluster) -> None:
    """A node of a Cluster file has the label that every node has."""
    again = read_cluster(write_cluster_file(cluster).encode(), name="again")
    nodes = tuple(
        dataclasses.replace(node, labels={HOST_LABEL: node.name, **node.labels})
        for node in cluster.nodes
    )
    assert again == dataclasses.replace(cluster, nodes=nodes, source="again", notices=again.notices)


@given(st.binary(max_size=200))
def test_any_bytes(data):
    try_reading(data)


@given(TEXT)
def test_any_text(text):
    try_reading(text.encode())


@given(VALUES)
def test_any_document(value):
    try_reading(json.dumps(value).encode())


@settings(max_examples=300)
@given(st.data())
def test_a_dump_with_anything_anywhere(data):
    """One place of a dump that uses every field holds something else."""
    path = data.draw(st.sampled_from(places(rich_dump())))
    document = changed(rich_dump(), path, data.draw(VALUES))
    try_reading(json.dumps(document).encode())


@settings(max_examples=300)
@given(st.data())
def test_a_cluster_file_with_anything_anywhere(data):
    """One place of a Cluster file that uses every field holds something else."""
    path = data.draw(st.sampled_from(places(cluster_document())))
    document = changed(cluster_document(), path, data.draw(VALUES))
    try_reading(json.dumps(document).encode())


def amounts(*names: str) -> st.SearchStrategy[dict[str, int]]:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, POSITIVE))


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    allocatable = {"cpu": draw(AMOUNT), "memory": draw(AMOUNT), "pods": draw(st.integers(0, 500))}
    allocatable |= draw(amounts("nvidia.com/gpu", "ephemeral-storage", "hugepages-2Mi"))
    cordoned = draw(st.booleans())
    taint = st.builds(
        Taint, NAME, TEXT, st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"])
    )
    taints = draw(st.lists(taint, max_size=3))
    if cordoned:
        taints.append(Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"))
    image = NAME.map(lambda text: f"{text}:1")
    return Node(
        name=name,
        allocatable=allocatable,
        used=draw(amounts("cpu", "memory", "pods", "nvidia.com/gpu")),
        scored_used=draw(amounts("cpu", "memory")),
        labels=draw(st.dictionaries(NAME, TEXT, max_size=3)),
        taints=tuple(taints),
        unschedulable=cordoned,
        speed=draw(st.floats(0.001, 1000, exclude_min=True)),
        images=draw(st.dictionaries(image, AMOUNT, max_size=3)),
        store_bytes_per_second=draw(st.none() | POSITIVE.map(float)),
        pull_bytes_per_second=draw(st.none() | POSITIVE.map(float)),
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    names = draw(st.lists(NAME, min_size=1, max_size=3, unique=True))
    members = tuple(draw(nodes(name)) for name in names)
    trips = st.dictionaries(st.sampled_from(names), st.floats(1e-6, 3.6e6), min_size=1)
    latencies = latencies_from_labels(members)
    spelled = {location.lower(): location for location in latencies}
    for location, given_trips in draw(st.dictionaries(NAME, trips, max_size=2)).items():
        place = spelled.setdefault(location.lower(), location)
        latencies.setdefault(place, {}).update(given_trips)
    operators = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
    values = st.lists(TEXT, max_size=2).map(tuple)
    requirement = st.builds(Requirement, NAME, operators, values, st.just(False))
    term = st.lists(requirement, max_size=2).map(lambda found: NodeSelectorTerm(tuple(found)))
    on_node = st.sampled_from(names).map(
        lambda name: (NodeSelectorTerm((Requirement("metadata.name", "In", (name,), True),)),)
    )
    claim = st.builds(
        Claim,
        NAME,
        TEXT,
        st.lists(st.sampled_from(["ReadWriteOnce", "ReadWriteMany"]), max_size=2).map(tuple),
        st.none() | on_node | st.lists(term, max_size=2).map(tuple),
        st.lists(st.sampled_from(names), max_size=2).map(tuple),
    )
    claims = tuple(draw(st.lists(claim, max_size=3)))
    sizes = draw(st.dictionaries(NAME, AMOUNT, max_size=2))
    return Cluster(members, latencies, claims, image_bytes=sizes)


@settings(max_examples=200)
@given(clusters())
def test_every_cluster_can_be_written_and_read(cluster):
    assert_round_trip(cluster)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n \n",
        b"# nothing\n",
        b"---\n---\n",
        b"null",
        b"\x7fELF\x02\x01\x01\x00\x00",
        b"\x1f\x8b\x08\x00rest",
        b"{" * 10_000,
        b"[" * 10_000,
        b"a: &a [x, x]\nb: &b [*a, *a]\n" * 3,
        b"kind: List\nitems: [",
        b'{"kind": "List", "items": [{"kind": "Node"',
        b"kind: Node\nkind: Node\n",
    ],
)
def test_broken_files(data):
    with pytest.raises(InputError) as raised:
        read_cluster(data, name="file")
    assert str(raised.value).startswith("file")


def test_a_bomb_of_aliases():
    """Nine aliases of nine of nine ... would be a billion nodes."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 10)
    ]
    with pytest.raises(InputError):
        read_cluster("\n".join(lines).encode(), name="file")
