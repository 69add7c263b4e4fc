"""Plans on the past runs that a cluster keeps."""

from typing import Any

import pytest

from kfp_placement import PlacementError, preview
from kfp_placement.live.exceptions import ClusterForbiddenError
from kfp_placement.live.kinds import HISTORIES, RUN_QUEUES
from kfp_placement_engine.readers import read_run_file
from kfp_placement_kube.kinds import CLAIMS, NODES, PODS, VOLUMES
from tests.cli.conftest import CLUSTER, RUN
from tests.cli.live.test_queue import ADMITTED, request, run_queue
from tests.support.fake_cluster import FakeCluster
from tests.support.histories import history_object, runs_of
from tests.support.kubernetes import node_object

TAXI = read_run_file(RUN)
EXACT = ("--generations", "5", "--compare", "none")
POLICY_OBJECT = {"kind": "PlacementPolicy", "metadata": {"name": "default"}}
FORBIDDEN = ClusterForbiddenError("no right to list pipelinehistories")


@pytest.fixture
def cluster():
    fake = FakeCluster()
    fake.serve(NODES, PODS, CLAIMS, VOLUMES)
    fake.put_namespace("team-a")
    for name in ("n1", "n2"):
        fake.put(node_object(name))
    return fake


@pytest.fixture
def with_history(cluster):
    cluster.put(history_object(runs_of(TAXI, 9, train=2400.0)))
    return cluster


def planned(live, *options):
    return live.document("plan", RUN, "--cluster", "live", *EXACT, *options)


def codes(document):
    return [warning["code"] for warning in document["warnings"]]


def test_a_live_plan_rests_on_the_past_of_its_namespace(live, with_history):
    document = planned(live)
    assert document["promise"]["ends"] is not None
    assert planned(live, "--history", "live")["promise"] == document["promise"]
    assert "promise" not in planned(live, "--history", "none")


def test_the_past_of_other_namespaces_does_not_count(live, with_history):
    with_history.put_namespace("team-b")
    document = planned(live, "-n", "team-b")
    assert document["promise"]["unknown"] == "no run seen"


def test_a_namespace_without_a_run_of_the_pipeline_is_said_where_somebody_asks(live, with_history):
    with_history.put_namespace("team-b")
    assert "unseen-pipeline" not in codes(planned(live, "-n", "team-b"))
    document = planned(live, "-n", "team-b", "--history", "live")
    (warning,) = [each for each in document["warnings"] if each["code"] == "unseen-pipeline"]
    assert warning["message"] == (
        "no past run of pipeline 'taxi' counts in namespace team-b, nor of another"
    )
    assert "unseen-pipeline" not in codes(planned(live, "--history", "live"))


def test_a_cluster_without_histories_is_as_it_always_was(live, cluster, golden):
    document = planned(live)
    assert "promise" not in document
    assert "not-allowed" not in codes(document)
    golden(live.message(3, "plan", RUN, "--cluster", "live", "--history", "live"))


def test_histories_that_may_not_be_read_are_said(live, with_history, golden):
    with_history.refused[HISTORIES.path("team-a", "")] = FORBIDDEN
    document = planned(live)
    assert "promise" not in document
    (warning,) = [each for each in document["warnings"] if each["code"] == "not-allowed"]
    golden(warning["message"], "warning")
    golden(live.message(1, "plan", RUN, "--cluster", "live", "--history", "live"), "asked for")


def test_what_somebody_broke_does_not_count_and_is_said(live, with_history):
    raw = history_object(runs_of(TAXI, 3))
    raw["metadata"]["name"] = "broken"
    raw["spec"] = {"pipeline": 7}
    with_history.put(raw)
    document = planned(live)
    assert document["promise"]["ends"] is not None
    assert codes(document).count("bad-history") == 1


def test_a_plan_on_a_file_may_rest_on_live_past_runs(live, with_history):
    document = live.document("plan", RUN, "--cluster", CLUSTER, *EXACT, "--history", "live")
    assert document["promise"]["ends"] is not None
    assert len(document["cluster"]["nodes"]) == 3


@pytest.mark.usefixtures("connections")
def test_a_preview_asks_the_same(with_history):
    options: dict[str, Any] = {"generations": 5, "compare": ()}
    plan = preview(RUN, "live", **options)
    assert plan.ends is not None
    assert preview(RUN, CLUSTER, history="live", **options).ends is not None
    assert preview(RUN, "live", history="none", **options).ends is None
    with_history.refused["/apis/kfp-placement.dev"] = FORBIDDEN
    assert preview(RUN, "live", **options).ends is None
    with pytest.raises(PlacementError, match="no right"):
        preview(RUN, "live", history="live", **options)


def say(cluster, **history):
    spec = {"history": history}
    cluster.put({**POLICY_OBJECT, "spec": spec})


def test_ranges_are_as_sure_as_the_policy_says(live, with_history):
    assert planned(live)["promise"]["confidence"] == 0.9
    say(with_history, confidence="80%")
    assert planned(live)["promise"]["confidence"] == 0.8
    assert planned(live, "--confidence", "95%")["promise"]["confidence"] == 0.95


def test_runs_count_as_long_as_the_policy_says(live, with_history):
    assert planned(live)["steps"][1]["durationBasis"]["runs"] == 9
    say(with_history, keepDays=3)
    assert planned(live)["steps"][1]["durationBasis"]["runs"] == 4


def test_where_runs_wait_in_queues_times_count_from_the_start(live, with_history, golden):
    assert "queue" not in codes(planned(live))
    with_history.put(run_queue())
    (warning,) = [each for each in planned(live)["warnings"] if each["code"] == "queue"]
    golden(warning["message"], "nobody waits")
    with_history.put(request("first", position=1))
    with_history.put(request("second", position=2))
    with_history.put(request("third", **ADMITTED))
    (warning,) = [each for each in planned(live)["warnings"] if each["code"] == "queue"]
    golden(warning["message"], "two wait")
    assert "queue" not in codes(planned(live, "--history", "none"))
    with_history.refused[RUN_QUEUES.path("team-a")] = FORBIDDEN
    assert "queue" not in codes(planned(live))
