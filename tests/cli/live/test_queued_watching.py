"""`watch` and `run()` of runs that wait in queues, with a plan and without."""

import pytest

from kfp_placement.live.exceptions import ClusterForbiddenError, ClusterUnreachableError
from kfp_placement.live.kinds import RUN_REQUESTS
from tests.cli.live.conftest import modified, notebook_run, placement
from tests.cli.live.test_queue import ADMITTED, request
from tests.support.fake_cluster import workflow

SECOND = {"position": 2, "waiting": 2, "starts": None}
LACKS = "2nd of 2, lacks 1 nvidia.com/gpu of the quota"
QUEUED = f"10:03:00 queued {LACKS}"


def second(name="taxi-x7k2p", message=LACKS, **status):
    return request(name, message=message, **(SECOND | status))


def admitted(name="taxi-x7k2p", **status):
    return request(name, **(ADMITTED | {"queue": "default"} | status))


@pytest.fixture
def plain(cluster):
    """A run without a marked step."""
    cluster.put({**workflow("plain"), "spec": {"templates": []}})
    return cluster


def test_each_change_of_what_a_run_waits_for_is_a_line(live, cluster):
    cluster.put(second())
    moved = second(starts={"earliest": "2026-11-22T14:20:00Z"})
    first = second(message="1st of 1, lacks 1 nvidia.com/gpu of the quota")
    cluster.request_streams = [modified(moved, first, admitted())]
    lines = live("watch", "taxi-x7k2p", "--timeout", "500ms").stdout.splitlines()
    assert lines[0] == QUEUED
    assert [line for line in lines[1:] if "taxi-x7k2p" not in line] == [
        "10:03:00 queued 1st of 1, lacks 1 nvidia.com/gpu of the quota",
        "10:03:00 admitted in RunQueue default",
    ]


def test_a_run_without_a_plan_is_followed_to_its_end(live, plain):
    plain.put(second("plain", notes=["its steps name several queues"]))
    ended = admitted("plain", phase="Finished")
    ended["spec"]["end"] = "Succeeded"
    plain.request_streams = [modified(admitted("plain"), ended)]
    assert live.output("watch", "plain", "--timeout", "5s").splitlines() == [
        f"{QUEUED}; its steps name several queues",
        "10:03:00 admitted in RunQueue default",
        "10:03:00 finished in RunQueue default",
    ]


@pytest.mark.parametrize(("end", "code"), [("Succeeded", 0), ("Failed", 1)])
def test_a_run_without_a_plan_that_has_ended(live, plain, end, code):
    ended = admitted("plain", phase="Finished")
    ended["spec"]["end"] = end
    plain.put(ended)
    assert live("watch", "plain", "--timeout", "5s").exit_code == code


def test_what_a_planned_run_has_behind_it_is_not_told(live, cluster):
    cluster.put(placement(status={"phase": "Succeeded"}))
    cluster.put(admitted(phase="Finished"))
    assert "RunQueue" not in live("watch", "taxi-x7k2p").stdout


@pytest.mark.parametrize(
    "error", [ClusterForbiddenError("you may not"), ClusterUnreachableError("no answer")], ids=str
)
def test_without_an_answer_about_queues_the_run_is_followed(live, cluster, error):
    cluster.refused[RUN_REQUESTS.path("team-a")] = error
    cluster.streams = [modified(placement(status={"phase": "Succeeded"}))]
    live.output("watch", "taxi-x7k2p", "--timeout", "5s")


def test_in_a_notebook_a_run_says_that_it_is_queued(cluster, capsys):
    cluster.put(second())
    cluster.streams = [[("DELETED", placement())]]
    run = notebook_run(cluster)
    assert repr(run) == "<Run team-a/taxi-x7k2p: no plan yet>"
    run.watch()
    assert QUEUED in capsys.readouterr().out.splitlines()
    assert repr(run).endswith(f", queued {LACKS}>")
    cluster.put(admitted())
    run.explain()
    assert "queued" not in repr(run)


def test_in_a_notebook_a_run_without_a_plan_explains_itself(plain):
    plain.put(second("plain"))
    run = notebook_run(plain, "plain")
    assert run.explain().splitlines() == [
        "team-a/plain: no plan yet",
        f"queued {LACKS}",
        "takes 1h5m30s once it begins",
        "no plan: none of its steps is marked and its namespace lacks the label"
        " kfp-placement.dev/pipelines=all",
    ]
    assert repr(run) == f"<Run team-a/plain: no plan yet, queued {LACKS}>"
