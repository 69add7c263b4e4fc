"""A live cluster is read as its dump is."""

import json

import pytest

from kfp_placement.live.cluster_objects import live_cluster
from kfp_placement.live.exceptions import ClusterForbiddenError, ClusterMissingError
from kfp_placement.live.kinds import CLAIMS, LOCATIONS, NODES, PODS, POLICIES, VOLUMES
from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers import read_cluster
from tests.cli.conftest import RUN
from tests.support.fake_cluster import FakeCluster
from tests.support.kubernetes import a_list, container, node_object, pod_object

NODE = node_object("n1", labels={"HOME-EDGE": "9ms", "zone": "a"})
POD = pod_object("p1", "n1", containers=[container({"cpu": "2"}, env=[{"name": "SECRET"}])])
LOCATION = {
    "apiVersion": API_VERSION,
    "kind": "Location",
    "metadata": {"name": "home-edge"},
    "spec": {"static": [{"topologyKey": "zone", "value": "a", "rtt": "3ms"}]},
}
POLICY = {
    "apiVersion": API_VERSION,
    "kind": "PlacementPolicy",
    "metadata": {"name": "default"},
    "spec": {"defaults": {"driver": "7s", "byType": [{"type": "Training", "duration": "1h"}]}},
}


def silent(share, text):
    assert 0 <= share <= 1
    assert text.startswith("reading ")


@pytest.fixture
def nodes():
    cluster = FakeCluster()
    cluster.serve(NODES, PODS, CLAIMS, VOLUMES)
    for name in ("n2", "n3", "n4"):
        cluster.put(NODES, node_object(name))
    cluster.put(NODES, NODE)
    cluster.put(PODS, POD)
    return cluster


def without_type(raw):
    return {key: value for key, value in raw.items() if key not in ("kind", "apiVersion")}


def test_it_is_the_dump(nodes):
    # As in the API's own lists, items do not say what they are.
    nodes.put(LOCATIONS, without_type(LOCATION))
    nodes.put(POLICIES, without_type(POLICY))
    live = live_cluster(nodes, "team-a", silent)
    others = [node_object(name) for name in ("n2", "n3", "n4")]
    dump = json.dumps(a_list(NODE, *others, POD, LOCATION, POLICY)).encode()
    assert live == read_cluster(dump, name="live")
    assert live.latencies == {"home-edge": {"n1": 3}}
    assert live.defaults == {"driver_seconds": 7}
    assert live.nodes[0].used == {"cpu": 2000, "pods": 1}
    assert [notice.code for notice in live.notices] == ["policy-not-followed"]
    assert "defaults.byType" in live.notices[0].message


def test_without_our_kinds_there_is_nothing_to_say(nodes):
    assert live_cluster(nodes, "team-a", silent).notices == ()


def test_nodes_are_needed(nodes):
    nodes.refused[NODES.path()] = ClusterForbiddenError("nodes is forbidden")
    with pytest.raises(ClusterForbiddenError, match="nodes is forbidden; without nodes nothing"):
        live_cluster(nodes, "team-a", silent)
    with pytest.raises(InputError, match="holds no Node"):
        live_cluster(FakeCluster(), "team-a", silent)


@pytest.mark.parametrize(
    ("kind", "assumed"),
    [
        (PODS, "room on nodes is unknown: they are taken to be empty"),
        (CLAIMS, "volume claims are taken to be unbound and unused"),
        (VOLUMES, "bound volumes are taken to be reachable from every node"),
        (LOCATIONS, "latencies are those of node labels"),
        (POLICIES, "the planner's own assumptions hold"),
    ],
)
def test_what_is_assumed_where_we_may_not_look(nodes, kind, assumed):
    nodes.refused[kind.path("team-a")] = ClusterForbiddenError("forbidden there too")
    nodes.refused[kind.path()] = ClusterForbiddenError("forbidden")
    (notice,) = live_cluster(nodes, "team-a", silent).notices
    assert (notice.code, notice.message) == ("not-allowed", f"forbidden; {assumed}")


def test_our_own_namespace_is_better_than_nothing(nodes):
    nodes.refused[PODS.path()] = ClusterForbiddenError("forbidden")
    nodes.put(PODS, pod_object("mine", "n2", namespace="team-a"))
    live = live_cluster(nodes, "team-a", silent)
    assert live.notices[0].message == "forbidden; only those of namespace team-a are counted"
    assert {node.name for node in live.nodes if node.used} == {"n2"}


def test_the_plan_says_what_was_assumed(run, nodes, monkeypatch):
    nodes.refused[PODS.path()] = ClusterForbiddenError("forbidden")
    nodes.refused[PODS.path("team-a")] = ClusterForbiddenError("forbidden")
    monkeypatch.setattr("kfp_placement._cluster.LiveCluster.connect", lambda *_: nodes)
    result = run("plan", RUN, "-c", "live", "--generations", 1, "--compare", "none")
    assert result.exit_code == 0, result.stderr
    assert "(live)" in result.stdout
    assert "room on nodes is unknown" in result.stdout


def test_a_refusal_in_the_middle_of_a_plan(run, nodes, monkeypatch):
    nodes.refused[NODES.path()] = ClusterMissingError("404 page not found")
    monkeypatch.setattr("kfp_placement._cluster.LiveCluster.connect", lambda *_: nodes)
    result = run("check", RUN, "-c", "live")
    assert result.exit_code == 1
    assert "live: holds no Node" in result.stderr
