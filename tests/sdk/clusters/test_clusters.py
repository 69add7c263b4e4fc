"""Clusters in Python and example clusters: one reader, one meaning."""

import dataclasses
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement import (
    Cluster,
    MarkValueError,
    Node,
    RunError,
    UsageError,
    example_cluster,
    place,
    preview,
)
from kfp_placement.clusters.examples import EXAMPLES
from kfp_placement.clusters.reading import known_cluster, named_cluster
from kfp_placement_engine.exceptions import InputNotFoundError
from kfp_placement_engine.readers import read_cluster, read_cluster_file
from kfp_placement_engine.readers.cluster_form import NODE as NODE_FORM
from kfp_placement_engine.readers.cluster_form import ClusterEntry, NodeEntry
from kfp_placement_engine.readers.text.place import UNNAMED
from tests.support.pipelines import one_step
from tests.support.samples import SAMPLES

QUICK: dict[str, Any] = {"budget": "50ms", "compare": ()}

NODE = Node("a", cpu=1, memory="1Gi")

FULL = Cluster(
    [
        Node("cloud", cpu="7910m", memory="16Gi", pods=250, labels={"zone": "y"}, speed=2),
        Node(
            "gpu",
            count=2,
            cpu=32,
            memory="128Gi",
            gpu=4,
            extended={"ephemeral-storage": "1Ti"},
            taints=["gpu=true:NoSchedule", {"key": "a:b", "value": "", "effect": "NoExecute"}],
            unschedulable=True,
            images={"python:3.12": "350Mi"},
            store_bandwidth="250M",
            pull_rate="100M",
            used={"cpu": "500m", "memory": "1Gi", "pods": 4},
            scored_used={"cpu": "900m"},
        ),
    ],
    latencies={"HOME-EDGE": {"cloud": "89.7ms", "gpu": 42}},
    claims=[{"name": "data", "accessModes": ["ReadWriteOnce"], "node": "cloud"}],
    images={"team/train:7": "3Gi"},
    defaults={"image": "1Gi", "loopWidth": 4},
    policy={"actuator": "gates"},
)


def cluster_of(**changes):
    return Cluster([dataclasses.replace(NODE, **changes)])


def fields(kind, *without):
    return {each.name for each in dataclasses.fields(kind)} - set(without)


def test_the_fields_are_those_of_a_cluster_file():
    assert fields(Node, "gpu") == fields(NodeEntry)
    own = fields(Cluster, "name", "noun", "_text")
    # Quotas and limit ranges are objects of Kubernetes, which come with a dump.
    in_dumps = {"resource_quotas", "limit_ranges"}
    assert own == fields(ClusterEntry) - {"api_version", "kind"} - in_dumps


def test_usual_values_are_those_of_a_cluster_file():
    usual = NODE_FORM(UNNAMED, {"name": "a", "cpu": 1, "memory": "1Gi"})
    for name in fields(Node, "gpu", "cpu", "memory"):
        assert getattr(NODE, name) == getattr(usual, name), name


def test_what_is_not_the_usual_value_is_read():
    (node,) = cluster_of(used={"cpu": 1}, scored_used={}, extended=None).noun.nodes
    assert (node.used, node.scored_used) == ({"cpu": 1000}, {})


def test_what_is_saved_reads_as_the_same_cluster(tmp_path):
    path = FULL.save(tmp_path / "cluster.yaml")
    assert dataclasses.replace(read_cluster_file(path), source="cluster") == FULL.noun
    assert [node.allocatable.get("nvidia.com/gpu") for node in FULL.noun.nodes] == [None, 4, 4]
    assert list(tmp_path.iterdir()) == [path]


def test_its_text_is_short():
    assert repr(FULL) == "<Cluster of 3 nodes: cloud, gpu-1, gpu-2>"
    assert len(repr(cluster_of(count=2000))) < 100


names = st.text(min_size=1, max_size=20)


@given(
    name=names,
    label=st.dictionaries(names, names, max_size=3),
    image=st.dictionaries(names, st.integers(0, 2**40), max_size=2),
)
def test_any_text_is_saved_as_it_was_read(name, label, image, tmp_path_factory):
    """Or is refused at once."""
    try:
        cluster = cluster_of(name=name, labels=label, images=image)
    except RunError:
        return
    path = cluster.save(tmp_path_factory.mktemp("saved") / "cluster.yaml")
    assert dataclasses.replace(read_cluster_file(path), source="cluster") == cluster.noun


@pytest.mark.parametrize(
    ("case", "error"),
    [
        (lambda: Cluster([]), RunError),
        (lambda: Cluster(["worker"]), UsageError),  # type: ignore[list-item]
        (lambda: Cluster(NODE), UsageError),  # type: ignore[arg-type]
        (lambda: cluster_of(cpu="four"), RunError),
        (lambda: cluster_of(labels={"a": object()}), RunError),
        (lambda: cluster_of(gpu=1, extended={"nvidia.com/gpu": 1}), MarkValueError),
        (lambda: example_cluster("equl"), RunError),
        (lambda: example_cluster(["equal"]), RunError),  # type: ignore[arg-type]
        (lambda: known_cluster("example:egde"), InputNotFoundError),
        (lambda: known_cluster("equal"), InputNotFoundError),
        (lambda: known_cluster([NODE]), UsageError),
        (lambda: cluster_of(count=True, pods=[], used=0), RunError),
        (lambda: Cluster([NODE], claims={}, latencies=0), RunError),  # type: ignore[arg-type]
    ],
    ids=range(13),
)
def test_what_is_no_cluster_is_one_clear_sentence(golden, case, error):
    with pytest.raises(error) as caught:
        case()
    golden(str(caught.value).replace(hex(id(object)), ""))


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_planned_for_gates_and_says_its_name(name):
    cluster = example_cluster(name)
    plan = preview(one_step(place), cluster, **QUICK).plan
    assert plan.cluster.source == f"example cluster {name!r}: {EXAMPLES[name]}"
    assert plan.search.dispatch == "ordered"
    assert named_cluster(f"example:{name}") == cluster.noun
    assert preview(one_step(place), f"example:{name}", **QUICK).plan.steps == plan.steps
    assert (
        preview(one_step(place), cluster, dispatch="ready", **QUICK).plan.search.dispatch == "ready"
    )


def test_the_edge_is_that_of_the_taxi_sample():
    """But for its dispatch."""
    sample = read_cluster_file(SAMPLES / "06_taxi" / "cluster.yaml")
    edge = example_cluster("edge").noun
    assert (edge.nodes, edge.latencies) == (sample.nodes, sample.latencies)


def test_without_a_cluster_a_plan_is_for_an_example_and_says_so(golden):
    plan = preview(one_step(place), **QUICK)
    (notice,) = (each for each in plan.warnings if each.code == "example-cluster")
    golden(notice.message)
    assert plan.plan.cluster.source == example_cluster("equal").name
    warnings = preview(one_step(place), example_cluster("equal"), **QUICK).warnings
    assert "example-cluster" not in {each.code for each in warnings}


def test_a_cluster_in_python_is_one_of_the_forms(tmp_path):
    cluster = cluster_of()
    document, file = cluster.document(), cluster.save(tmp_path / "cluster.yaml")
    texts = [json.dumps(document), yaml.safe_dump(document), file.read_bytes()]
    forms = [cluster, cluster.noun, document, *texts, file, str(file)]
    clusters = [dataclasses.replace(known_cluster(form).cluster, source="") for form in forms]
    assert {str(each) for each in clusters} == {str(dataclasses.replace(cluster.noun, source=""))}
    assert read_cluster(json.dumps(document).encode(), name="cluster") == cluster.noun


@pytest.mark.parametrize(
    "name", ["", "  ", "ftp://example.com/c.yaml", " https://example.com/c.yaml"]
)
def test_a_name_that_cannot_be_read_is_one_clear_sentence(golden, name):
    with golden.error(RunError):
        preview(one_step(place), name, **QUICK)
