"""`explain` shows round trips and limits, and where nobody looked after a limit."""

import json

import pytest

from kfp_placement.live.kinds import EVENTS, PLACEMENTS, PODS
from tests.cli.live.conftest import placement
from tests.cli.live.test_explain import block_of, elsewhere_event
from tests.support.fake_cluster import executor_pod

FETCH = ["fetch", 0, 10, 41.8, ["ends-first", 12, 1], [[1, 12], [2, 30.5]]]
BEST = ["latency-best", "HOME-EDGE", 3, 9.8, 42.6]
OTHERS = [[1, 0, 42.551], [0, 0, 89.667]]
NOWHERE = ["unschedulable", 3, [[3, "latency", "HOME-EDGE", 5]]]
HOME, NITLAB, NITOS = 2, 1, 0
NODES = ["nitos-cloud-node", "nitlab-edge-node", "home-edge-node"]


def with_predict(cluster, reason, *, planned=HOME, bound=-1, others=OTHERS):
    """The sample run with another row for predict, which runs on a node if that is named."""
    row = ["predict", planned, 1254, 1375, reason, others]
    state = ["running", bound, 1256] if bound >= 0 else ["pending"]
    done = [["succeeded", 0, 10, 42], ["succeeded", 0, 47, 1249]]
    steps = [FETCH, ["train", 0, 47, 1249], row]
    cluster.put(PLACEMENTS, placement(spec={"steps": steps}, status={"steps": [*done, state]}))


def predict_pod(cluster, *, hints='{"v":1,"maxLatency":"20ms"}', scheduler="", **spec):
    pod = executor_pod("predict", node=spec.pop("node", ""), phase="Running")
    pod["metadata"]["labels"] |= {
        "OurLocation": "HOME-EDGE",
        "kfp-placement.dev/scheduler": "kfp-placement",
    }
    pod["metadata"]["annotations"]["kfp-placement.dev/hints"] = hints
    pod["spec"] |= {"schedulerName": scheduler or "kfp-placement", **spec}
    cluster.put(PODS, pod)


def explained(live):
    """The block of the step, and its document."""
    document = json.loads(live("explain", "taxi-x7k2p", "predict", "-o", "json").stdout)
    return block_of(live("explain", "taxi-x7k2p", "predict")), document["steps"][0]


def trip_of(step):
    return step["location"], step["latencyMs"], step["maxLatencyMs"]


@pytest.mark.parametrize(
    ("reason", "bound", "latency", "fields"),
    [
        (BEST, -1, ["9.8 ms to HOME-EDGE"], ("HOME-EDGE", 9.8, None)),
        (BEST, NITLAB, ["42.6 ms to HOME-EDGE"], ("HOME-EDGE", 42.551, None)),
        (
            ["latency-missed", 9.8, "HOME-EDGE", NITLAB, 5],
            -1,
            ["9.8 ms to HOME-EDGE"],
            ("HOME-EDGE", 9.8, None),
        ),
        (["latency-missed", "", "HOME-EDGE", NITLAB, 5], -1, None, ("HOME-EDGE", None, None)),
        (["latency-unknown", "HOME-EDGE"], -1, None, ("HOME-EDGE", None, None)),
        (
            ["only-node", [[2, "latency", "HOME-EDGE", 20]]],
            -1,
            ["not said to HOME-EDGE, limit 20 ms (2 nodes beyond)"],
            ("HOME-EDGE", None, 20),
        ),
        (["run-later", 3, NITLAB], -1, None, (None, None, None)),
        (["latency-best", 7, "x", "y"], -1, None, (None, None, None)),
        (["only-node", [["two", "latency"], [2, "latency", 1, "x"]]], -1, None, (None,) * 3),
    ],
    ids=str,
)
def test_what_the_plan_says(live, cluster, reason, bound, latency, fields):
    with_predict(cluster, reason, bound=bound)
    block, step = explained(live)
    assert block.get("latency") == latency
    assert trip_of(step) == fields


def test_what_the_pod_adds(live, cluster, golden):
    with_predict(cluster, BEST)
    predict_pod(cluster)
    block, step = explained(live)
    golden(block["latency"])
    assert "limit 20 ms" in block["latency"][0]
    assert trip_of(step) == ("HOME-EDGE", 9.8, 20)


@pytest.mark.parametrize("hints", ["{", "[]", '{"v":1,"maxLatency":[]}', "x" * 100_000])
def test_hints_that_cannot_be_read_limit_nothing(live, cluster, hints):
    with_predict(cluster, BEST)
    predict_pod(cluster, hints=hints)
    assert trip_of(explained(live)[1]) == ("HOME-EDGE", 9.8, None)


def test_a_limit_that_the_default_scheduler_did_not_keep(live, cluster, golden):
    with_predict(cluster, NOWHERE, planned=-1, bound=NITOS, others=OTHERS)
    predict_pod(cluster, node="nitos-cloud-node", scheduler="default-scheduler")
    block, step = explained(live)
    (deviation,) = block["elsewhere"]
    golden(deviation, "elsewhere")
    golden(block["why"], "why")
    assert "20 ms to HOME-EDGE" in deviation
    assert "at the time" in block["why"][0]
    assert "why there" not in block
    assert step["elsewhere"] == deviation
    assert deviation in live("explain", "taxi-x7k2p").stdout


def test_a_limit_of_which_nobody_knows_whether_it_is_kept(live, cluster, golden):
    with_predict(cluster, NOWHERE, planned=-1, bound=NITOS, others=[])
    predict_pod(cluster, node="nitos-cloud-node", scheduler="default-scheduler")
    block, _ = explained(live)
    golden(block["elsewhere"])
    assert "may not" in block["elsewhere"][0]


def test_the_event_is_told_first(live, cluster, golden):
    with_predict(cluster, BEST, bound=NITLAB)
    predict_pod(cluster, node="nitlab-edge-node", scheduler="default-scheduler")
    cluster.put(EVENTS, elsewhere_event("predict", "placement was paused"))
    _, step = explained(live)
    golden(step["elsewhere"])
    assert step["elsewhere"].startswith("placement was paused; ")


def required(key):
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": ["home-edge-node"]}]}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"nodeAffinity": terms}


@pytest.mark.parametrize(
    ("pod", "bound"),
    [
        ({"scheduler": "kfp-placement", "node": NODES[NITLAB]}, NITLAB),
        (
            {
                "scheduler": "default-scheduler",
                "node": NODES[NITLAB],
                "affinity": required("kubernetes.io/hostname"),
            },
            NITLAB,
        ),
        ({"scheduler": "default-scheduler", "hints": "", "node": NODES[NITLAB]}, NITLAB),
        ({"scheduler": "default-scheduler", "node": NODES[HOME]}, HOME),
    ],
    ids=["our scheduler", "under gates", "no limit", "where it was planned"],
)
def test_limits_that_somebody_looks_after_or_that_are_kept(live, cluster, pod, bound):
    with_predict(cluster, BEST, bound=bound)
    predict_pod(cluster, **pod)
    assert "no limits" not in live("explain", "taxi-x7k2p", "-o", "wide").stdout


def test_another_required_term_is_no_limit(live, cluster):
    with_predict(cluster, BEST, bound=NITLAB)
    predict_pod(
        cluster, node=NODES[NITLAB], scheduler="default-scheduler", affinity=required("zone")
    )
    assert "knows no limits" in live("explain", "taxi-x7k2p", "predict").stdout
