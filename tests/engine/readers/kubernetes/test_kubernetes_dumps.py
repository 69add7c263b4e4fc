"""What `kubectl get nodes,pods,pvc,pv -A` prints, in all its forms."""

import json

import pytest
import yaml

from kfp_placement_engine import Taint
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.node_rules.constraints import (
    OS_LABEL,
    architecture,
    matches_any_term,
    runs_windows,
)
from kfp_placement_engine.readers.cluster_file import UNUSED_KEYS, read_cluster
from kfp_placement_engine.readers.cluster_writer import write_cluster_file
from kfp_placement_engine.readers.kubernetes.dumps import read_dump
from tests.support.builders import in_zone
from tests.support.kubernetes import GIBIBYTE, MEBIBYTE, a_list, container, node_object, pod_object


def read(*documents):
    return read_dump(documents, name="dump")


def codes(cluster):
    return [notice.code for notice in cluster.notices]


def busy_pod(name="p1", node="n1", **spec):
    containers = spec.pop("containers", [container({"cpu": "1", "memory": "1Gi"})])
    return pod_object(name, node, containers=containers, **spec)


OBJECTS = [node_object("n1"), node_object("n2"), busy_pod(), {"apiVersion": "v1", "kind": "Secret"}]


def test_a_dump_without_pods_is_noted():
    def dump(*objects):
        return read_cluster(json.dumps(a_list(*objects)).encode(), name="dump")

    (notice,) = dump(node_object()).notices
    assert notice.code == "no-pods"
    assert "every node is taken to be empty; give what `kubectl get" in notice.message
    assert not dump(node_object(), busy_pod()).notices


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(a_list(*OBJECTS)),
        json.dumps(OBJECTS),
        "\n".join(json.dumps(each) for each in OBJECTS),
        json.dumps(a_list(a_list(*OBJECTS[:2]), a_list(*OBJECTS[2:]))),
        yaml.safe_dump(a_list(*OBJECTS)),
        yaml.safe_dump_all(OBJECTS),
        "---\n" + yaml.safe_dump_all([a_list(*OBJECTS[:2]), a_list(*OBJECTS[2:])]) + "---\n",
    ],
    ids=["list", "array", "json lines", "lists in a list", "yaml", "yaml documents", "yaml lists"],
)
def test_every_form_reads_the_same(text):
    cluster = read_cluster(text.encode(), name="dump")
    assert [node.name for node in cluster.nodes] == ["n1", "n2"]
    assert cluster.nodes[0].used == {"cpu": 1_000, "memory": GIBIBYTE, "pods": 1}
    assert codes(cluster) == ["ignored-objects"]
    assert cluster.source == "dump"


def test_lists_of_one_kind_need_no_kind_in_the_items():
    """As the API server's own NodeList and PodList have it."""
    node, pod = node_object(), busy_pod()
    for each in (node, pod):
        del each["kind"], each["apiVersion"]
    lists = [
        {"apiVersion": "v1", "kind": "NodeList", "items": [node]},
        {"apiVersion": "v1", "kind": "PodList", "items": [pod]},
    ]
    assert read(*lists).nodes[0].used["pods"] == 1


def test_namespaces_say_whether_they_plan_all_pipelines():
    def namespace(name, **labels):
        keys = {f"kfp-placement.dev/{key}": value for key, value in labels.items()}
        return {"kind": "Namespace", "metadata": {"name": name, "labels": keys}}

    cluster = read(
        node_object(),
        namespace("plain"),
        namespace("marked", pipelines="marked"),
        namespace("all", pipelines="all"),
        namespace("out", pipelines="all", enabled="false"),
        {"kind": "Namespace", "metadata": {"name": "odd", "labels": 7}},
    )
    assert cluster.all_pipelines == {"all"}
    assert codes(cluster) == ["malformed-object"]


def test_a_node():
    node = node_object(
        "gpu-1",
        labels={"zone": "a", "kfp-placement.dev/speed": "2.5"},
        allocatable={"nvidia.com/gpu": "4", "hugepages-1Gi": "0", "ephemeral-storage": "10Gi"},
        spec={"taints": [{"key": "gpu", "value": "true", "effect": "NoSchedule"}]},
        images=[
            {"names": ["a:1", "a@sha256:0", "untagged", "<none>:<none>"], "sizeBytes": 7},
            {"names": ["a:1"], "sizeBytes": 8},
        ],
    )
    (read_node,) = read(node).nodes
    assert read_node.allocatable == {
        "cpu": 8_000,
        "memory": 16 * GIBIBYTE,
        "pods": 110,
        "nvidia.com/gpu": 4,
        "ephemeral-storage": 10 * GIBIBYTE,
    }
    assert read_node.taints == (Taint("gpu", "true", "NoSchedule"),)
    assert read_node.speed == 2.5
    assert read_node.images == {"a:1": 7, "a@sha256:0": 7}
    assert not read_node.unschedulable
    assert read_node.store_bytes_per_second is None


def test_cordoned_and_not_ready_nodes_are_tainted():
    """As the control plane does it seconds later; a node that says nothing counts as ready."""
    cordoned = node_object("a", spec={"unschedulable": True})
    not_ready = node_object("b", conditions=[{"type": "Ready", "status": "Unknown"}])
    unreachable = node_object(
        "c",
        conditions=[{"type": "Ready", "status": "Unknown"}],
        spec={"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]},
    )
    silent = node_object("d", conditions=[])
    nodes = read(cordoned, not_ready, unreachable, silent).nodes
    assert nodes[0].unschedulable
    keys = [
        [taint.key.removeprefix("node.kubernetes.io/") for taint in node.taints] for node in nodes
    ]
    assert keys == [["unschedulable"], ["not-ready"], ["unreachable"], []]


def test_rates_and_speed_stand_in_labels():
    labels = {
        "kfp-placement.dev/speed": "0.5",
        "kfp-placement.dev/store-bandwidth": "250M",
        "kfp-placement.dev/pull-rate": "64Mi",
    }
    (node,) = read(node_object(labels=labels)).nodes
    assert (node.speed, node.store_bytes_per_second) == (0.5, 250e6)
    assert node.pull_bytes_per_second == 64 * MEBIBYTE


@pytest.mark.parametrize(
    ("label", "value"),
    [
        ("speed", "fast"),
        ("speed", "0"),
        ("speed", "-1"),
        ("speed", "nan"),
        ("speed", "inf"),
        ("speed", "1e9"),
        ("speed", "1_5"),
        ("speed", "\N{ARABIC-INDIC DIGIT ONE}"),
        ("store-bandwidth", "quick"),
        ("store-bandwidth", "0"),
        ("pull-rate", "-5"),
    ],
)
def test_bad_labels_are_noted_and_not_used(label, value):
    cluster = read(node_object(labels={f"kfp-placement.dev/{label}": value}))
    (node,) = cluster.nodes
    assert (node.speed, node.store_bytes_per_second, node.pull_bytes_per_second) == (1, None, None)
    (notice,) = cluster.notices
    assert notice.code == "bad-node-label"
    assert f"node n1, label kfp-placement.dev/{label}" in notice.message


def test_latency_labels():
    """Keys without a prefix whose values read as latencies; everyday words are none."""
    labels = {
        "HOME-EDGE": "9.8",
        "NITOS-CLOUD": "41966us",
        "rack": "7",
        "zone": "1",
        "example.com/x": "3",
        "disk": "ssd",
    }
    cluster = read(
        node_object("n1", labels=labels), node_object("n2", labels={"HOME-EDGE": "0.3ms"})
    )
    assert cluster.latencies == {"HOME-EDGE": {"n1": 9.8, "n2": 0.3}, "NITOS-CLOUD": {"n1": 41.966}}


def test_latency_labels_that_differ_in_case_are_one_location():
    first = node_object("n1", labels={"HOME-EDGE": "9.8"})
    cluster = read(first, node_object("n2", labels={"home-edge": "5", "Home-Edge": "7"}))
    assert cluster.latencies == {"HOME-EDGE": {"n1": 9.8, "n2": 7}}


@pytest.mark.parametrize("value", ["-5", "abc", ""])
def test_a_bad_latency_label_of_a_location_is_noted(value, golden):
    """What no node and no Location makes a location may say what it likes."""
    bad = [node_object(name, labels={"home-edge": value, "disk": "ssd"}) for name in ("n2", "n3")]
    cluster = read(node_object("n1", labels={"HOME-EDGE": "9.8"}), *bad)
    assert cluster.latencies == {"HOME-EDGE": {"n1": 9.8}}
    (notice,) = cluster.notices
    assert notice.code == "bad-node-label"
    golden(notice.message)
    assert notice.message.startswith("node n2, label home-edge: ")
    assert repr(value) in notice.message
    assert read(*bad).notices == ()


def location_object(name, *hosts):
    entries = [
        {"topologyKey": "kubernetes.io/hostname", "value": host, "rtt": "15ms"} for host in hosts
    ]
    return {
        "apiVersion": "kfp-placement.dev/v1alpha1",
        "kind": "Location",
        "metadata": {"name": name},
        "spec": {"static": entries},
    }


def labelled_nodes(*names):
    return [
        node_object(each, labels={"kubernetes.io/hostname": each, "HOME-EDGE": "9.8ms"})
        for each in names
    ]


def test_a_location_that_hides_labels_of_its_name_is_noted(golden):
    cluster = read(*labelled_nodes("n1", "n2", "n3"), location_object("home-edge", "n2"))
    assert cluster.latencies == {"home-edge": {"n2": 15}}
    (notice,) = cluster.notices
    assert notice.code == "hidden-node-label"
    golden(notice.message)


@pytest.mark.parametrize("name", ["home-edge", "elsewhere"])
def test_a_location_that_hides_nothing_is_not_noted(name):
    cluster = read(
        *labelled_nodes("n1", "n2"), node_object("n3"), location_object(name, "n1", "n2")
    )
    assert cluster.notices == ()


def test_used_room():
    """Bound pods that have not ended take room, with defaults in what the scores count."""
    cluster = read(
        node_object("n1"),
        node_object("n2"),
        busy_pod("a", "n1"),
        busy_pod("b", "n1", phase="Pending"),
        busy_pod("c", "n1", phase="Succeeded"),
        busy_pod("d", "n1", phase="Failed"),
        busy_pod("e", None),
        pod_object("f", "n2", containers=[container(), container()]),
    )
    first, second = cluster.nodes
    assert first.used == {"cpu": 2_000, "memory": 2 * GIBIBYTE, "pods": 2}
    assert first.scored_used == {"cpu": 2_000, "memory": 2 * GIBIBYTE}
    assert second.used == {"pods": 1}
    assert second.scored_used == {"cpu": 200, "memory": 400 * MEBIBYTE}
    assert cluster.notices == ()


def test_a_pod_counts_once():
    """Two dumps in one file repeat what is in both; equal names in two namespaces are two pods."""
    cluster = read(node_object(), busy_pod("a"), busy_pod("a"), busy_pod("a", namespace="other"))
    assert cluster.nodes[0].used["pods"] == 2


def test_pods_on_nodes_that_are_not_there(golden):
    cluster = read(node_object(), busy_pod("a", "gone"), busy_pod("b", "gone"))
    assert cluster.nodes[0].used == {}
    assert codes(cluster) == ["unknown-node"]
    golden(cluster.notices[0].message, "two pods")
    cluster = read(node_object(), busy_pod("a", "gone"))
    golden(cluster.notices[0].message, "one pod")


def test_absurd_sums_stay_within_what_can_be_planned():
    """Each amount fits int64, their sum would not."""
    large = container({"memory": str(2**62)})
    pods = [pod_object(f"p{index}", "n1", containers=[large]) for index in range(9)]
    assert read(node_object(), *pods).nodes[0].used["memory"] == 2**62 - 1


def claim_object(name="data", volume="", modes=("ReadWriteOnce",), namespace="default"):
    spec = {"accessModes": list(modes), **({"volumeName": volume} if volume else {})}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def volume_object(name, terms):
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    metadata = {"name": name}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": affinity}


def test_claims():
    """Access modes, the bound volume's node affinity, and the nodes where running pods mount it."""
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    mounts = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    cluster = read(
        busy_pod("a", "n2", volumes=mounts),
        busy_pod("b", "n2", volumes=mounts),
        busy_pod("c", "n1", volumes=mounts, phase="Succeeded"),
        busy_pod("d", "n1", volumes=mounts, namespace="other"),
        claim_object(volume="pv"),
        volume_object("pv", [zone]),
        node_object("n1"),
        node_object("n2"),
        claim_object("free", modes=("ReadWriteMany",), namespace="team"),
    )
    data, free = cluster.claims
    assert (data.name, data.namespace, data.access_modes) == ("data", "default", ("ReadWriteOnce",))
    assert data.required_terms == (in_zone("a"),)
    assert data.used_on == ("n2",)
    assert (free.namespace, free.required_terms, free.used_on) == ("team", None, ())


ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("labels", "reaching"),
    [
        ({ZONE: "b"}, "b none old-b"),
        ({ZONE: "a__b"}, "a b none old-b"),
        ({OLD_ZONE: "b"}, "b none old-b"),
        ({OLD_ZONE: "c"}, "none"),
        ({ZONE: "b", REGION: "r"}, "b none"),
        ({ZONE: "a__"}, "a b none old-b"),
        ({"disk": "b"}, "a b none old-b"),
    ],
)
def test_zones_in_the_labels_of_a_volume_keep_it_to_their_nodes(labels, reaching):
    """As kube-scheduler's plugin VolumeZone; nodes without any such label are in all zones."""
    nodes = [
        node_object("a", labels={ZONE: "a", REGION: "r"}),
        node_object("b", labels={ZONE: "b", REGION: "r"}),
        node_object("none"),
        node_object("old-b", labels={OLD_ZONE: "b", ZONE: "b"}),
    ]
    volume = volume_object("pv", [])
    volume["metadata"]["labels"], volume["spec"] = labels, {}
    cluster = read(*nodes, volume, claim_object(volume="pv"))
    terms = cluster.claims[0].required_terms
    able = [node.name for node in cluster.nodes if terms is None or matches_any_term(terms, node)]
    assert able == reaching.split()


def test_zones_in_labels_and_the_node_affinity_of_a_volume_both_count():
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    volume = volume_object("pv", [zone, {}])
    volume["metadata"]["labels"] = {ZONE: "b"}
    nodes = [
        node_object(f"{own}{other}", labels={"zone": own, ZONE: other})
        for own in "ab"
        for other in "ab"
    ]
    cluster = read(*nodes, volume, claim_object(volume="pv"))
    terms = cluster.claims[0].required_terms
    assert [node.name for node in cluster.nodes if matches_any_term(terms, node)] == ["ab"]


def test_a_node_without_labels_has_the_platform_that_its_kubelet_reports():
    """Pods still select by labels alone."""
    info = {"operatingSystem": "windows", "architecture": "arm64"}
    bare, labelled = node_object("bare"), node_object("labelled", labels={OS_LABEL: "linux"})
    for node in (bare, labelled):
        node["status"]["nodeInfo"] = info
    bare, labelled, silent = read(bare, labelled, node_object("silent")).nodes
    assert [runs_windows(node) for node in (bare, labelled, silent)] == [True, False, False]
    assert [architecture(node) for node in (bare, silent)] == ["arm64", ""]
    assert OS_LABEL not in bare.labels
    written = yaml.safe_load(write_cluster_file(Cluster((bare,))))
    assert written["nodes"][0]["labels"] == {OS_LABEL: "windows", "kubernetes.io/arch": "arm64"}


def test_claims_made_for_one_pod():
    """A generic ephemeral volume is a claim named after pod and volume."""
    pod = busy_pod("a", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}])
    (claim,) = read(node_object(), pod, claim_object("a-scratch")).claims
    assert claim.used_on == ("n1",)


def test_malformed_objects_are_left_out_with_a_notice(golden):
    """All but nodes: no plan is right without one of these."""
    cluster = read(
        node_object(),
        busy_pod("good"),
        busy_pod("bad", containers="none"),
        claim_object("odd", modes=()) | {"spec": []},
        volume_object("v", terms=5),
    )
    assert cluster.nodes[0].used["pods"] == 1
    assert codes(cluster) == ["malformed-object"] * 3
    golden(notice.message for notice in cluster.notices)
    assert cluster.claims == ()


def test_many_notices_are_cut(golden):
    pods = [busy_pod(f"p{index}", containers=3) for index in range(50)]
    cluster = read(node_object(), *pods)
    assert len(cluster.notices) == 21
    golden(cluster.notices[-1].message)


def test_other_kinds_and_versions_are_named_once(golden):
    cluster = read(
        node_object(),
        {"apiVersion": "v1", "kind": "Service"},
        {"apiVersion": "v1", "kind": "Service"},
        {"apiVersion": "metal.example/v1", "kind": "Node"},
    )
    (notice,) = cluster.notices
    golden(notice.message)


NO_CLUSTERS = {
    "only pods": ([busy_pod()], "dump: "),
    "empty list": ([a_list()], "dump: "),
    "other version": ([node_object() | {"apiVersion": "v2"}], "Node (v2)"),
    "twice": ([node_object("a"), node_object("a")], "node a"),
    "no kind": ([{"metadata": {}}], "kind"),
    "no mapping": (["text"], "dump: "),
    "no object in a list": ([a_list(3)], "dump: items[0]: "),
    "no list": ([a_list() | {"items": {}}], "dump: items: "),
    "no name": ([node_object("")], "node: "),
    "negative memory": (
        [node_object(allocatable={"memory": "-1"})],
        "n1: status.allocatable: memory: '-1'",
    ),
    "odd cpu": ([node_object(allocatable={"cpu": "8 cores"})], "cpu: '8 cores'"),
    "huge memory": ([node_object(allocatable={"memory": "1E30"})], "memory: "),
    "bad taint": ([node_object(spec={"taints": [{"key": "a"}]})], "taint a=:"),
    "negative size": ([node_object(images=[{"names": ["a:1"], "sizeBytes": -5}])], "sizeBytes: -5"),
    "bad metadata": ([node_object() | {"metadata": "n1"}], "node: metadata: "),
}


@pytest.mark.parametrize(("documents", "place"), NO_CLUSTERS.values(), ids=NO_CLUSTERS)
def test_what_cannot_be_a_cluster(documents, place, golden):
    """One error, which names the place and the value."""
    with pytest.raises(InputError) as raised:
        read(*documents)
    golden(str(raised.value))
    assert place in str(raised.value)


def test_a_node_without_resources_is_noted():
    node = node_object()
    del node["status"]["allocatable"]
    cluster = read(node)
    assert cluster.nodes[0].allocatable == {"cpu": 0, "memory": 0, "pods": 0}
    assert codes(cluster) == ["no-allocatable"]
    node["status"]["capacity"] = {"cpu": "2", "memory": "1Gi", "pods": "10"}
    assert read(node).nodes[0].allocatable["cpu"] == 2_000


def test_names_survive_as_they_are():
    """Quoting belongs to whoever prints them."""
    name = "<script>alert('$(rm -rf /)')</script> & \"n\""
    cluster = read(node_object(name), busy_pod("<b>", name))
    assert cluster.nodes[0].name == name
    assert cluster.nodes[0].used["pods"] == 1


def test_labels_named_like_dropped_keys_stay():
    """Slimming drops objects and lists below such a key, never a label."""
    labels = dict.fromkeys(UNUSED_KEYS, "value")
    node = node_object(labels=labels) | {"managedFields": [1]}
    cluster = read_cluster(json.dumps(node).encode(), name="dump")
    assert {key: cluster.nodes[0].labels[key] for key in UNUSED_KEYS} == labels
