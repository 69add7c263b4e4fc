"""Room taken on nodes, whoever comes and goes."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_controller.sources.load import Load
from kfp_placement_engine.model.keys import ClaimKey, RunKey
from tests.controller.planning.builders import a_pod


def test_a_planned_run_is_no_load():
    load = Load(DEFAULT_SOURCES)
    load.change(None, a_pod("a", node_name="n1", workflow="mine", requests={"cpu": 5}))
    load.change(None, a_pod("b", node_name="n1", workflow="", requests={"cpu": 7, "gpu": 1}))
    assert load.by_node({RunKey("team", "mine")})["n1"].used == {"cpu": 7, "gpu": 1, "pods": 1}
    assert load.by_node()["n1"].used == {"cpu": 12, "gpu": 1, "pods": 2}


def test_pods_without_a_workflow_count_whatever_is_planned():
    load = Load(DEFAULT_SOURCES)
    load.change(None, a_pod("b", node_name="n1", workflow=""))
    assert load.by_node({RunKey("team", "")})["n1"].used["pods"] == 1


def test_who_mounts_a_claim_where():
    load = Load(DEFAULT_SOURCES)
    pod = a_pod("a", node_name="n1", claims=("data",))
    load.change(None, pod)
    assert set(load.claim_users(ClaimKey("team", "data"))) == {"n1"}
    load.change(pod, None)
    assert set(load.claim_users(ClaimKey("team", "data"))) == set()


CHANGES = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(["", "n1", "n2"]),
        st.sampled_from(["Pending", "Running", "Succeeded", None]),
        st.integers(1, 100),
    ),
    max_size=30,
)


@given(CHANGES)
def test_the_sums_are_those_of_the_pods_there_are(changes):
    load, pods = Load(DEFAULT_SOURCES), dict[str, ObservedPod | None]()
    for name, node, phase, cpu in changes:
        new = None
        if phase is not None:
            new = a_pod(name, node_name=node, phase=phase, requests={"cpu": cpu}, workflow=name)
        load.change(pods.get(name), new)
        pods[name] = new
    expected = Counter[str]()
    for pod in pods.values():
        if pod is not None and pod.holds_room:
            expected[pod.node_name] += pod.requests["cpu"]
    assert {node: each.used["cpu"] for node, each in load.by_node().items()} == dict(expected)
