"""A live cluster is read as its dump is."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kfp_placement import PlacementError, preview
from kfp_placement.clusters.reading import known_cluster
from kfp_placement.live.cluster_objects import live_cluster
from kfp_placement.live.exceptions import ClusterForbiddenError
from kfp_placement.live.kinds import LOCATIONS, POLICIES
from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.contract.planned_policy import planning_policy
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.planning.plan_options import assumptions_of
from kfp_placement_engine.planning.policy_options import policy_options
from kfp_placement_engine.readers import read_cluster
from kfp_placement_kube.kinds import CLAIMS, NAMESPACES, NODES, PODS, VOLUMES
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
STRICT = {
    "actuator": "gates",
    "objective": "packing",
    "engine": {"seed": 11, "budget": "300ms", "populationSize": 8, "islands": 3},
    "latencyRules": {"stepTypes": ["Show"], "tolerance": "2ms", "tolerancePercent": 10},
    "defaults": {"driver": "7s", "byType": [{"type": "Predict", "priority": 7}]},
}


def silent(share, text):
    assert 0 <= share <= 1
    assert text.startswith("reading ")


@pytest.fixture
def nodes(monkeypatch):
    """A cluster of nodes alone, to which whoever connects is connected."""
    cluster = FakeCluster()
    cluster.serve(NODES, PODS, CLAIMS, VOLUMES)
    cluster.put_namespace("team-a")
    for name in ("n2", "n3", "n4"):
        cluster.put(node_object(name))
    cluster.put(NODE)
    cluster.put(POD)
    monkeypatch.setattr("kfp_placement.live.connection.ClusterApi.connect", lambda *_: cluster)
    return cluster


def test_a_file_that_is_not_there_is_told_before_the_cluster_is_asked(live, cluster):
    cluster.refused["/"] = ClusterForbiddenError("asked")
    result = live("plan", "nope.yaml", "--cluster", "live")
    assert result.exit_code != 0
    assert "nope.yaml" in result.stderr
    assert "asked" not in result.stderr


def test_a_preview_takes_live_with_the_namespace_of_its_context(nodes):
    plan = preview(RUN, "live", budget=0.05, compare=()).plan
    assert (plan.cluster.source, plan.cluster.nodes) == ("live", ("n1", "n2", "n3", "n4"))
    named = known_cluster("live")
    assert named.namespace == "team-a"
    assert named.cluster == live_cluster(nodes, "team-a", silent)


def test_a_live_cluster_that_refuses_is_our_error(nodes):
    nodes.refused["/api/v1/nodes"] = ClusterForbiddenError("no right to list nodes")
    with pytest.raises(PlacementError, match="no right to list nodes; without nodes nothing can"):
        preview(RUN, "live")


def test_it_is_the_dump(nodes):
    nodes.put(LOCATION)
    nodes.put(POLICY)
    live = live_cluster(nodes, "team-a", silent)
    others = [node_object(name) for name in ("n2", "n3", "n4")]
    dump = json.dumps(a_list(NODE, *others, POD, LOCATION, POLICY)).encode()
    assert live == read_cluster(dump, name="live")
    assert live.latencies == {"home-edge": {"n1": 3}}
    assert live.policy == planning_policy(PlacementPolicySpec.model_validate(POLICY["spec"]))
    assert live.nodes[0].used == {"cpu": 2000, "pods": 1}
    assert live.notices == ()


@pytest.mark.parametrize("source", ["live", "dump", "cluster file"])
def test_the_plan_follows_the_policy(run, nodes, planner, source):
    policy = {**POLICY, "spec": STRICT}
    nodes.put(policy)
    Path("dump").write_text(json.dumps(a_list(NODE, policy)))
    assert run("cluster", "live", "--output", "cluster file").exit_code == 0
    assert run("plan", RUN, "-c", source).exit_code == 0
    asked = policy_options(planning_policy(PlacementPolicySpec.model_validate(STRICT)))
    assert assumptions_of(planner.cluster, planner.options) == asked.assumptions
    # People are told what limits the run; the planner in a cluster does not ask.
    as_asked = replace(asked, assumptions=None, limits=True)
    assert replace(planner.options, assumptions=None) == as_asked
    assert planner.graph.steps[0].type == "Fetch"
    assert planner.graph.steps[0].max_latency_ms is None
    assert planner.steps["predict"].priority == 7


def test_nodes_are_needed(nodes):
    nodes.refused[NODES.path()] = ClusterForbiddenError("nodes is forbidden")
    with pytest.raises(ClusterForbiddenError, match="nodes is forbidden; without nodes nothing"):
        live_cluster(nodes, "team-a", silent)
    empty = FakeCluster()
    empty.serve(NAMESPACES)
    with pytest.raises(InputError, match="holds no Node"):
        live_cluster(empty, "team-a", silent)


PLANNING_ALL = {"kfp-placement.dev/pipelines": "all"}
"""Labels of a namespace that plans all its pipelines."""


def test_which_namespaces_plan_all_pipelines(nodes):
    assert live_cluster(nodes, "team-a", silent).all_pipelines == frozenset()
    for name in ("team-a", "team-b"):
        nodes.put_namespace(name, PLANNING_ALL)
    assert live_cluster(nodes, "team-a", silent).all_pipelines == {"team-a", "team-b"}


def test_who_may_not_list_namespaces_learns_it_of_the_one(nodes, monkeypatch):
    def refused(kind, **_):
        if kind == NAMESPACES:
            raise ClusterForbiddenError("forbidden")
        return FakeCluster.pages(nodes, kind)

    monkeypatch.setattr(nodes, "pages", refused)
    nodes.put_namespace("team-a", PLANNING_ALL)
    live = live_cluster(nodes, "team-a", silent)
    assert (live.all_pipelines, live.notices) == (frozenset({"team-a"}), ())
    nodes.refused[NAMESPACES.path("", "team-a")] = ClusterForbiddenError("forbidden")
    live = live_cluster(nodes, "team-a", silent)
    assert (live.all_pipelines, live.notices) == (frozenset(), ())


@pytest.mark.parametrize(
    "kind", [PODS, CLAIMS, VOLUMES, LOCATIONS, POLICIES], ids=lambda kind: kind.plural
)
def test_what_is_assumed_where_we_may_not_look(nodes, kind, golden):
    nodes.refused[kind.path("team-a")] = ClusterForbiddenError("forbidden there too")
    nodes.refused[kind.path()] = ClusterForbiddenError("forbidden")
    (notice,) = live_cluster(nodes, "team-a", silent).notices
    assert notice.code == "not-allowed"
    golden(notice.message)
    assert kind.plural in notice.message


def test_all_that_we_may_not_read_is_one_notice(nodes, golden):
    for kind in (VOLUMES, LOCATIONS, POLICIES):
        nodes.refused[kind.path()] = ClusterForbiddenError(f"{kind.plural} are forbidden")
    (notice,) = live_cluster(nodes, "team-a", silent).notices
    golden(notice.message)


def test_our_own_namespace_is_better_than_nothing(nodes, golden):
    nodes.refused[PODS.path()] = ClusterForbiddenError("forbidden")
    nodes.put(pod_object("mine", "n2", namespace="team-a"))
    live = live_cluster(nodes, "team-a", silent)
    golden(live.notices[0].message)
    assert {node.name for node in live.nodes if node.used} == {"n2"}


def test_a_namespace_that_is_none_is_told(run, nodes):
    options = ("-c", "live", "--generations", 1, "--compare", "none")
    warning = "there is no namespace typo in the cluster"
    assert warning in run("plan", RUN, "-n", "typo", *options).stdout
    assert warning not in run("plan", RUN, "-n", "team-a", *options).stdout
    nodes.refused[NAMESPACES.path()] = ClusterForbiddenError("forbidden")
    assert warning not in run("plan", RUN, "-n", "typo", *options).stdout
