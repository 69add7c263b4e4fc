"""Room taken on nodes, whoever comes and goes."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_controller.sources.load import Load, NodeLoad, TakenRoom
from kfp_placement_controller.sources.source import PodRun
from kfp_placement_engine.model.keys import ClaimKey, RunKey
from tests.controller.planning.builders import a_pod

MINE = PodRun(RunKey("team", "mine"), "w")


def test_what_plans_contain_is_no_load():
    load = Load(DEFAULT_SOURCES)
    mine = a_pod("a", node_name="n1", workflow="mine", requests={"cpu": 5})
    load.change(None, mine)
    load.change(None, a_pod("b", node_name="n1", workflow="", requests={"cpu": 7, "gpu": 1}))
    rest = {"cpu": 7, "gpu": 1, "pods": 1}
    assert load.by_node(load.of_run(MINE))["n1"].used == rest
    assert load.by_node([TakenRoom.of_pod(mine)])["n1"].used == rest
    assert load.by_node()["n1"].used == {"cpu": 12, "gpu": 1, "pods": 2}


def test_pods_of_a_run_are_left_out_as_far_as_its_demand_goes():
    load = Load(DEFAULT_SOURCES)
    for number, cpu in enumerate([2, 3, 60]):
        node = f"n{number}"
        load.change(None, a_pod(node, node_name=node, workflow="mine", requests={"cpu": cpu}))
    rest = load.by_node(load.covered(MINE, {"cpu": 6, "pods": 2}))
    assert {name: each.used for name, each in rest.items()} == {
        "n0": {},
        "n1": {},
        "n2": {"cpu": 59, "pods": 1},
    }


def test_what_stays_in_the_room_stays_in_the_scores():
    fat = NodeLoad({"cpu": 60_000, "pods": 1}, {"cpu": 60_000})
    planned = {"cpu": 100, "pods": 1}
    assert fat.within(planned) == NodeLoad(planned, {"cpu": 100})
    # Scores count more than nothing for a pod that requests nothing.
    idle = NodeLoad({"pods": 1}, {"cpu": 100})
    assert idle.within(planned) == idle


def test_a_pod_that_only_its_label_calls_one_of_a_run_counts():
    load = Load(DEFAULT_SOURCES)
    load.change(None, a_pod("a", node_name="n1", workflow="mine", workflow_uid=""))
    assert not list(load.of_run(MINE))
    assert load.by_node()["n1"].used["pods"] == 1


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
