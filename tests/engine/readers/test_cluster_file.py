"""The short Cluster file: what people write, what they are told, and writing it."""

import dataclasses
import json

import pytest

from kfp_placement_engine import Claim, Cluster, Taint
from kfp_placement_engine.contract.keys import HOST_LABEL
from kfp_placement_engine.exceptions import InputError, InputNotFoundError, LimitError
from kfp_placement_engine.model.node_rules.constraints import architecture, usual_platform
from kfp_placement_engine.model.pod_constraints import NodeSelectorTerm, Requirement
from kfp_placement_engine.readers.cluster_file import read_cluster, read_cluster_file
from kfp_placement_engine.readers.cluster_form import CLAIM, CLUSTER, DEFAULTS, NODE
from kfp_placement_engine.readers.cluster_writer import write_cluster_file
from kfp_placement_engine.readers.kubernetes.dumps import read_dump
from tests.support.builders import in_zone
from tests.support.kubernetes import GIBIBYTE, a_node, container, node_object, pod_object
from tests.support.samples import SAMPLES

HEAD = "apiVersion: kfp-placement.dev/v1alpha1\nkind: Cluster\n"


def read(body):
    return read_cluster((HEAD + body).encode(), name="cluster.yaml")


def plain(cluster):
    return dataclasses.replace(cluster, source="", notices=())


def assert_comes_back(cluster):
    """A file of the cluster says the same, and the platform of each node."""
    nodes = (
        dataclasses.replace(node, labels={**usual_platform(node.labels), **node.labels})
        for node in cluster.nodes
    )
    expected = dataclasses.replace(cluster, nodes=tuple(nodes))
    again = read_cluster(write_cluster_file(cluster).encode(), name="again")
    assert plain(again) == plain(expected)


def test_the_shortest_file():
    (node,) = read("nodes: [{name: n1, cpu: 2, memory: 4Gi}]").nodes
    assert node.allocatable == {"cpu": 2_000, "memory": 4 * GIBIBYTE, "pods": 110}
    assert (node.used, node.scored_used, node.speed, node.taints) == ({}, {}, 1.0, ())


@pytest.mark.parametrize(
    ("stated", "platform"),
    [
        ({}, ("linux", "amd64")),
        ({"kubernetes.io/arch": "arm64"}, ("linux", "arm64")),
        ({"beta.kubernetes.io/os": "windows"}, ("windows", "amd64")),
    ],
)
def test_a_node_says_its_platform_as_every_kubelet_does(stated, platform):
    (node,) = read(f"nodes: [{{name: n, cpu: 2, memory: 4Gi, labels: {json.dumps(stated)}}}]").nodes
    assert (node.labels["kubernetes.io/os"], architecture(node)) == platform
    text = write_cluster_file(Cluster((node,)))
    assert [key for key in stated if key not in text] == []
    assert ("linux" in text, "amd64" in text) == (False, False)


def test_everything_in_one_file():
    cluster = read("""
nodes:
- name: gpu
  cpu: 15500m
  memory: 64Gi
  pods: 20
  extended: {nvidia.com/gpu: 2, ephemeral-storage: 1Ti, example.com/none: 0}
  speed: 2.5
  labels: {zone: a, rank: 7, spot: true}
  taints: ["gpu=true:NoSchedule", "busy:PreferNoSchedule", {key: a=b, value: c, effect: NoExecute}]
  images: {"python": 300Mi, "registry.example:5000/x@sha256:0": 1Gi}
  storeBandwidth: 250M
  pullRate: 64Mi
  used: {cpu: 500m, memory: 1Gi, pods: 3}
- {name: old, cpu: 1, memory: 1Gi, unschedulable: true}
latencies:
  HOME-EDGE: {gpu: 9.8ms, old: 300us}
claims:
- {name: data, accessModes: [ReadWriteOnce], node: gpu}
- name: shared
  namespace: team
  accessModes: [ReadWriteMany]
  usedOn: [old]
  nodeAffinity: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]
images: {python: 300Mi, "team/train:7": 3Gi}
defaults: {duration: 2m, output: 10Mi, image: 1Gi, storeBandwidth: 1M, loopWidth: 5, driver: 8s}
""")
    gpu, old = cluster.nodes
    assert gpu.allocatable == {
        "cpu": 15_500,
        "memory": 64 * GIBIBYTE,
        "pods": 20,
        "nvidia.com/gpu": 2,
        "ephemeral-storage": 1024 * GIBIBYTE,
    }
    own = {"kubernetes.io/hostname": "gpu", **usual_platform({})}
    assert gpu.labels == {"zone": "a", "rank": "7", "spot": "true", **own}
    assert gpu.taints == (
        Taint("gpu", "true", "NoSchedule"),
        Taint("busy", "", "PreferNoSchedule"),
        Taint("a=b", "c", "NoExecute"),
    )
    assert set(gpu.images) == {"python:latest", "registry.example:5000/x@sha256:0"}
    assert (gpu.speed, gpu.store_bytes_per_second) == (2.5, 250e6)
    assert gpu.used == {"cpu": 500, "memory": GIBIBYTE, "pods": 3}
    assert gpu.scored_used == {"cpu": 500, "memory": GIBIBYTE}
    assert old.unschedulable
    assert [taint.key for taint in old.taints] == ["node.kubernetes.io/unschedulable"]
    assert cluster.latencies == {"HOME-EDGE": {"gpu": 9.8, "old": 0.3}}
    on_gpu = NodeSelectorTerm((Requirement("metadata.name", "In", ("gpu",), is_field=True),))

    assert cluster.claims == (
        Claim("data", "", ("ReadWriteOnce",), (on_gpu,)),
        Claim("shared", "team", ("ReadWriteMany",), (in_zone("a"),), ("old",)),
    )
    assert cluster.defaults == {
        "duration_seconds": 120.0,
        "output_bytes": 10 * 2**20,
        "image_bytes": GIBIBYTE,
        "store_bytes_per_second": 1e6,
        "loop_width": 5,
        "driver_seconds": 8.0,
    }
    assert cluster.image_bytes == {"python": 300 * 2**20, "team/train:7": 3 * GIBIBYTE}
    assert_comes_back(cluster)


def test_namespaces_may_plan_all_pipelines():
    cluster = read("""
nodes: [{name: n1, cpu: 2, memory: 4Gi}]
pipelines: {team-b: all, team-a: all, team-c: marked}
""")
    assert cluster.all_pipelines == {"team-a", "team-b"}
    assert "pipelines:\n  team-a: all\n  team-b: all\n" in write_cluster_file(cluster)
    assert_comes_back(cluster)
    with pytest.raises(InputError, match=r"pipelines\.team-a: 'al' is not all or marked"):
        read("nodes: [{name: n1, cpu: 2, memory: 4Gi}]\npipelines: {team-a: al}")


def test_count_makes_numbered_nodes():
    """`count` nodes are named name-1 to name-n; latencies may name the entry or one node."""
    cluster = read("""
nodes:
- {name: edge, count: 3, cpu: 2, memory: 4Gi}
- {name: cloud, count: 1, cpu: 8, memory: 16Gi}
latencies: {HOME: {edge: 5ms, edge-2: 1ms, cloud: 40ms}}
claims: [{name: data, node: edge-3}]
""")
    assert [node.name for node in cluster.nodes] == ["edge-1", "edge-2", "edge-3", "cloud"]
    assert cluster.latencies["HOME"] == {"edge-1": 5, "edge-2": 1, "edge-3": 5, "cloud": 40}
    assert_comes_back(cluster)


def test_every_node_has_its_name_as_a_label():
    """So that a node selector names a node as in a cluster."""
    nodes = "{name: w, count: 2, cpu: 2, memory: 4Gi}, {name: m, cpu: 2, memory: 4Gi"
    cluster = read(f"nodes: [{nodes}, labels: {{{HOST_LABEL}: other}}}}]")
    assert [node.labels[HOST_LABEL] for node in cluster.nodes] == ["w-1", "w-2", "other"]
    assert write_cluster_file(cluster).count(HOST_LABEL) == 1
    assert_comes_back(cluster)


def test_labels_say_the_same_as_in_a_cluster():
    """Latencies, speed and rates may stand in labels; the file's own keys win."""
    cluster = read("""
nodes:
- name: n1
  cpu: 2
  memory: 4Gi
  labels: {HOME: 9.8, CLOUD: 40ms, kfp-placement.dev/speed: 0.5, kfp-placement.dev/pull-rate: 1M}
  pullRate: 2M
latencies: {HOME: {n1: 1ms}}
""")
    (node,) = cluster.nodes
    assert (node.speed, node.pull_bytes_per_second) == (0.5, 2e6)
    assert cluster.latencies == {"HOME": {"n1": 1.0}, "CLOUD": {"n1": 40.0}}
    assert_comes_back(cluster)


def test_memory_without_its_unit_is_told():
    text = "nodes: [{name: a, cpu: 1, memory: 8}, {name: b, cpu: 1, memory: 16}]"
    (notice,) = read(text).notices
    assert notice.code == "memory-unit"
    assert "node a, and that of 1 more, is 8 bytes" in notice.message
    assert read(text.replace("8}", "8Gi}").replace("16}", "0}")).notices == ()


def test_locations_of_a_file_are_the_same_in_any_case():
    """Also in JSON, and if a location is called like a key that is not read in a dump."""
    file = b"""{"apiVersion": "kfp-placement.dev/v1alpha1", "kind": "Cluster", "nodes": [
{"name": "n1", "cpu": 2, "memory": "4Gi", "labels": {"DATA": 9.8}},
{"name": "n2", "cpu": 2, "memory": "4Gi", "labels": {"Data": "far"}}],
"latencies": {"data": {"n2": "1ms"}}}"""
    cluster = read_cluster(file, name="cluster.json")
    assert cluster.latencies == {"DATA": {"n1": 9.8, "n2": 1.0}}
    (notice,) = cluster.notices
    assert (notice.code, "node n2, label Data: 'far'" in notice.message) == ("bad-node-label", True)
    assert_comes_back(cluster)


def test_a_dump_becomes_a_small_file():
    """Nodes, room, labels and claims stay; what pods carry does not; reading it gives the same."""
    secret = container({"cpu": "1"}, env=[{"name": "PASSWORD", "value": "hunter2"}])
    dump = [
        node_object(
            "n1",
            labels={"HOME-EDGE": "0.289", "kfp-placement.dev/speed": "2", HOST_LABEL: "n1"},
            allocatable={"nvidia.com/gpu": "4"},
            images=[{"names": ["a:1"], "sizeBytes": 123_456_789}],
            spec={"unschedulable": True, "taints": [{"key": "x", "effect": "NoExecute"}]},
        ),
        node_object("n2", labels={HOST_LABEL: "n2.example"}),
        pod_object("p", "n1", containers=[secret, container()]),
    ]
    cluster = read_dump(dump, name="dump")
    text = write_cluster_file(cluster)
    assert "hunter2" not in text
    assert "latencies" not in text
    assert "scoredUsed" in text
    assert text.count(HOST_LABEL) == 1
    assert_comes_back(cluster)


@pytest.mark.parametrize("char", ["\u202e", "\u200d", "\x85", "\x9b", "\u2028", "\U000e0001"])
def test_what_steers_a_terminal_is_escaped(char):
    cluster = Cluster((a_node(f"n{char}", labels={f"a{char}b": f"é{char} x"}),))
    text = write_cluster_file(cluster)
    assert all(each.isprintable() or each == "\n" for each in text)
    assert "é" in text
    assert_comes_back(cluster)


def test_names_with_special_characters_survive():
    """YAML's own words, numbers, shell and HTML characters, in names, labels and values."""
    words = [
        "1" * 5_000,
        "yes",
        "null",
        "~",
        "1e3",
        "0x10",
        "0o7",
        "1_000",
        "12:30",
        "<<",
        "=",
        "- a",
        "#x",
        "a: b",
    ]
    words += [
        "<b>&amp;</b>",
        "$(id)",
        "`id`",
        "a\nb",
        "tab\t",
        "é\u2028\u200b",
        "*a",
        "&a",
        "!x",
        " x ",
    ]
    nodes = tuple(
        a_node(f"{word} {index}", labels={word: word}) for index, word in enumerate(words)
    )
    claims = tuple(Claim(word, word, (word,), None, (nodes[0].name,)) for word in words)
    cluster = Cluster(nodes, {word: {nodes[0].name: 1.5} for word in words}, claims)
    assert_comes_back(cluster)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "nodes: []",
        "nodes: {}",
        "nodes: [{cpu: 1, memory: 1}]",
        "nodes: [{name: a, cpu: 1}]",
        "nodes: [{name: '', cpu: 1, memory: 1}]",
        "nodes: [{name: a, cpu: 2 cores, memory: 1}]",
        "nodes: [{name: a, cpu: -1, memory: 1}]",
        "nodes: [{name: a, cpu: 1, memory: 1e30}]",
        "nodes: [{name: a, cpu: 1, memory: 16 GB}]",
        "nodes: [{name: a, cpu: 1, memory: 1, cpus: 3}]",
        "nodes: [{name: a, cpu: 1, memory: 1, count: 0}]",
        "nodes: [{name: a, cpu: 1, memory: 1, count: 2.5}]",
        "nodes: [{name: a, cpu: 1, memory: 1, count: 999999999}]",
        "nodes: [{name: a, cpu: 1, memory: 1, speed: 0}]",
        "nodes: [{name: a, cpu: 1, memory: 1, speed: .nan}]",
        "nodes: [{name: a, cpu: 1, memory: 1, taints: [x]}]",
        "nodes: [{name: a, cpu: 1, memory: 1, taints: ['x:Never']}]",
        "nodes: [{name: a, cpu: 1, memory: 1, pullRate: 0}]",
        "nodes: [{name: a, cpu: 1, memory: 1, used: 5}]",
        "nodes: [{name: a, cpu: 1, memory: 1, labels: {x: {}}}]",
        "nodes: [{name: a, cpu: 1, memory: 1, unschedulable: 1}]",
        "nodes: [{name: a, cpu: 1, memory: 1}, {name: a, cpu: 1, memory: 1}]",
        "nodes: [{name: a-1, cpu: 1, memory: 1}, {name: a, count: 2, cpu: 1, memory: 1}]",
        "nodes: [{name: a, cpu: 1, memory: 1}]\nlatencies: {X: {b: 1}}",
        "nodes: [{name: a, cpu: 1, memory: 1}]\nlatencies: {X: {a: -1}}",
        "nodes: [{name: a, cpu: 1, memory: 1}]\nlatencies: {X: {a: 2h}}",
        "nodes: [{name: a, cpu: 1, memory: 1}]\nclaims: [{name: c, node: b}]",
        "nodes: [{name: a, cpu: 1, memory: 1}]\nclaims: [{name: c, usedOn: [b]}]",
        "nodes: [{name: a, cpu: 1, memory: 1}]\nclaims: [{name: c, node: a, nodeAffinity: []}]",
        "nodes: [{name: a, cpu: 1, memory: 1}]\ndefaults: {width: 3}",
        "nodes: [{name: a, cpu: 1, memory: 1}]\ndefaults: {loopWidth: 0}",
        "nodes: [{name: a, cpu: 1, memory: 1}]\npolicy: {actuators: gates}",
        "nodes: [{name: a, cpu: 1, memory: 1}]\npolicy: {actuator: gate}",
        "nodes: [{name: a, cpu: 1, memory: 1}]\npolicy: {engine: {serchBudget: 3s}}",
        "nodes: [{name: a, cpu: 1, memory: 1}]\npolicy: {spec: {actuator: gates}}",
        "nodes: [{name: a, cpu: 1, memory: 1}]\ndefaults: {duration: -5s}",
        "nodes: [{name: a, cpu: 1, memory: 1}]\n---\nkind: Pod",
        "nodes: [{name: a, cpu: 1, memory: 1}]\nnodes: []",
        "nodes: [{name: a, cpu: 1, memory: 1, extended: {nvidia.com/gpu: 1.5}}]",
    ],
)
def test_mistakes_are_named_with_their_place(body, golden):
    with pytest.raises(InputError) as raised:
        read(body)
    golden(str(raised.value))
    assert str(raised.value).startswith("cluster.yaml")


def test_several_mistakes_are_named_at_once():
    """Up to five, then how many more."""
    nodes = ", ".join("{name: a, cpu: x, memory: y}" for _ in range(4))
    with pytest.raises(InputError) as raised:
        read(f"nodes: [{nodes}]")
    assert str(raised.value).count("is not a quantity") == 5
    assert str(raised.value).endswith("; and 3 more")


@pytest.mark.parametrize(
    "head",
    [
        "apiVersion: kfp-placement.dev/v2\nkind: Cluster\n",
        "apiVersion: kfp-placement.dev/v1alpha1\nkind: Clusters\n",
        "apiVersion: kfp-placement.dev/v1alpha1\n",
        "",
        "kind: Cluster\n",
        "apiVersion: cluster.example/v1\nkind: Cluster\n",
    ],
)
def test_other_versions_and_kinds(head, golden):
    with pytest.raises(InputError) as raised:
        read_cluster(f"{head}nodes: [{{name: a, cpu: 1, memory: 1}}]".encode(), name="c.yaml")
    golden(str(raised.value))


def test_too_many_nodes():
    entries = ", ".join(f"{{name: n{index}, count: 9000, cpu: 1, memory: 1}}" for index in range(3))
    with pytest.raises(LimitError, match="describes 27000 nodes; at most 20000"):
        read(f"nodes: [{entries}]")


def test_files(tmp_path):
    """A file of either form; one that is missing, or no file."""
    path = tmp_path / "cluster.yaml"
    path.write_text(HEAD + "nodes: [{name: n1, cpu: 2, memory: 4Gi}]", encoding="utf-8")
    shares = []
    cluster = read_cluster_file(path, progress=lambda share, text: shares.append((share, text)))
    assert cluster.source == str(path)
    assert shares[-1][0] == 1.0
    with pytest.raises(InputNotFoundError):
        read_cluster_file(tmp_path / "missing.yaml")
    with pytest.raises(InputError):
        read_cluster_file(tmp_path)


def test_the_documented_example():
    """The reference page's example is read, uses every key there is, and survives writing."""
    example = (SAMPLES.parent / "tests/docs/data/cluster.yaml").read_text(encoding="utf-8")
    cluster = read_cluster(example.encode(), name="example")
    assert [node.name for node in cluster.nodes] == ["cloud", "gpu-1", "gpu-2"]
    assert cluster.notices == ()
    for form in (NODE, CLAIM, DEFAULTS, CLUSTER):
        for key in form.keys:
            assert f"{key}:" in example
    assert_comes_back(cluster)


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({"pipelineInfo": {"name": "p"}, "root": {}}, "a KFP pipeline package"),
        ({"pipelineSpec": {"pipelineInfo": {}, "root": {}}}, "a KFP pipeline package"),
        (
            {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "spec": {}},
            "an Argo Workflow",
        ),
        ({"name": "w", "workflow": {"tasks": []}}, "a workflow in wfformat"),
    ],
)
def test_a_run_in_place_of_a_cluster_is_called_one(document, what, golden):
    with pytest.raises(InputError) as raised:
        read_cluster(json.dumps(document).encode(), name="run.yaml")
    golden(str(raised.value))
    assert f"({what})" in str(raised.value)
