"""Marked runs that no planner plans, and runs that fail for what Argo says."""

import pytest

from kfp_placement.live.exceptions import ClusterForbiddenError, ClusterUnreachableError
from kfp_placement.live.kinds import CORE_EVENTS, WORKFLOWS
from tests.cli.live.conftest import condition, placement
from tests.cli.live.test_placement_off import a_policy
from tests.support.fake_cluster import workflow

FORBIDDEN = ClusterForbiddenError("workflows is forbidden")
LONG_AGO, JUST_NOW = "2026-11-20T10:02:30Z", "2026-11-20T10:02:31Z"


def marked(name, namespace="team-a", made=LONG_AGO, **labels):
    """A Workflow with a step that asks for our scheduler."""
    raw = workflow(name, namespace)
    raw["metadata"] |= {"creationTimestamp": made, "labels": labels}
    mark = {"labels": {"kfp-placement.dev/scheduler": "kfp-placement"}}
    raw["spec"] = {"templates": [{"name": "train", "metadata": mark}]}
    return raw


def unmarked(name):
    raw = workflow(name)
    raw["metadata"]["creationTimestamp"] = LONG_AGO
    return raw


def test_list_warns_of_a_marked_run_without_a_plan(live, cluster, golden):
    cluster.put(marked("taxi-x7k2p"))
    cluster.put(marked("lost"))
    result = live("list")
    assert result.exit_code == 0
    golden(result.stderr, "of one")
    document = live.document("list")
    assert document["unplanned"] == [{"namespace": "team-a", "name": "lost"}]
    cluster.put(marked("astray", "team-b"))
    golden(live("list", "-A").stderr, "of two")


def of_kfp(name):
    """A Workflow as KFP makes it, without our mark."""
    parameters = [{"name": "components-root", "value": "{}"}]
    return {**unmarked(name), "spec": {"arguments": {"parameters": parameters}}}


def test_where_all_pipelines_are_planned_an_unmarked_one_should_have_a_plan(live, cluster, golden):
    labels = {"kfp-placement.dev/pipelines": "all"}
    cluster.put_namespace("team-a", labels)
    cluster.put(of_kfp("lost"))
    cluster.put(unmarked("plain"))
    document = live.document("list")
    assert document["unplanned"] == [{"namespace": "team-a", "name": "lost"}]
    golden(live("explain", "lost").stderr)


REFUSES = {"kfp-placement.dev/pipelines": "all", "kfp-placement.dev/enabled": "false"}


@pytest.mark.parametrize("labels", [7, {"kfp-placement.dev/pipelines": ["all"]}, REFUSES])
def test_a_namespace_that_cannot_be_read_or_refuses_plans_no_unmarked_run(live, cluster, labels):
    cluster.put_namespace("team-a", labels)
    cluster.put(of_kfp("lost"))
    assert live("list").stderr == ""


@pytest.mark.parametrize(
    "raw",
    [
        unmarked("lost"),
        {**unmarked("lost"), "status": {"message": "no kfp-placement.dev/scheduler"}},
        of_kfp("lost"),
        marked("lost", made=JUST_NOW),
        marked("lost", made="yesterday"),
        marked("lost", made=["2026"]),
        marked("lost", **{"workflows.argoproj.io/completed": "true"}),
    ],
    ids=["unmarked", "mentioned", "of KFP", "just submitted", "no time", "no text", "ended"],
)
def test_no_warning(live, cluster, raw):
    cluster.put(raw)
    assert live("list").stderr == ""
    assert live.document("list")["unplanned"] == []


def test_who_may_not_list_workflows_is_told_nothing(live, cluster):
    cluster.put(marked("lost"))
    cluster.refused[WORKFLOWS.path("team-a")] = FORBIDDEN
    live.output("list")


def test_why_a_run_has_no_plan(live, cluster, golden):
    cluster.put(marked("lost"))
    golden(live.message(3, "explain", "lost"), "a marked run")
    cluster.refused[WORKFLOWS.path("team-a", "lost")] = FORBIDDEN
    golden(live("explain", "lost").stderr, "not known whether marked")


def test_a_run_over_the_budget_is_told_so_by_its_event(live, cluster):
    cluster.put(marked("lost"))
    why = "at most 15000 steps of a namespace are planned at a time"
    about = {"kind": "Workflow", "name": "lost", "namespace": "team-a"}
    event = {
        "metadata": {"name": "lost.1", "namespace": "team-a"},
        "involvedObject": about,
        "reason": "OverBudget",
        "message": f"{why}\x1b[2J",
    }
    cluster.put({"apiVersion": "v1", "kind": "Event", **event})
    message = live.message(3, "explain", "lost")
    assert f"has no plan: {why}" in message
    assert "\x1b" not in message
    assert "takes no part" not in message
    cluster.put(marked("other"))
    assert "plannedSteps of the PlacementPolicy" in live.message(3, "explain", "other")
    cluster.refused[CORE_EVENTS.path("team-a")] = FORBIDDEN
    assert "takes no part" in live.message(3, "explain", "lost")


def test_watch_says_why_there_may_be_no_plan(live, cluster, golden):
    dead = condition("SchedulerReady", reason="LeaseStale", message="not renewed for 15 s")
    status = {"schedulerReady": False, "conditions": [dead]}
    cluster.put(a_policy(status=status))
    cluster.put(marked("lost"))
    cluster.put(unmarked("plain"))
    lost, plain, planned = (
        live("watch", name, "--timeout", "200ms").stderr for name in ("lost", "plain", "taxi-x7k2p")
    )
    golden(lost, "lost")
    golden(plain, "plain")
    golden(planned, "planned")


def failed(name="taxi-x7k2p", message="serviceaccounts \x1b[1m not found"):
    return {**workflow(name), "status": {"phase": "Error", "message": message}}


def test_what_argo_says_of_a_failed_run(live, cluster, golden):
    cluster.put(placement(status={"phase": "Failed"}))
    cluster.put(failed())
    golden(live("explain", "taxi-x7k2p").stdout.split("\n\n")[0])
    document = live.document("explain", "taxi-x7k2p")
    assert document["workflowMessage"] == "serviceaccounts \x1b[1m not found"


@pytest.mark.parametrize("message", ["", None, ["no", "text"]], ids=str)
def test_argo_says_nothing(live, cluster, message):
    cluster.put(placement(status={"phase": "Failed"}))
    cluster.put(failed(message=message))
    assert "Argo says" not in live("explain", "taxi-x7k2p").stdout


def test_a_run_that_goes_on_is_not_asked_for_its_failure(live, cluster):
    cluster.put(failed())
    document = live.document("explain", "taxi-x7k2p")
    assert document["workflowMessage"] is None


def refused_driver():
    """A Workflow whose driver pods may not be made: Argo repeats its failure on every level."""
    run = "taxi-x7k2p"
    why = 'pods "x" is forbidden: error looking up service account team-a/pipeline-runner'
    nodes = [
        (run, "DAG", "Failed", "", 5),
        (f"{run}.root", "DAG", "Failed", "child 'x' failed", 5),
        (f"{run}.root.fetch-driver", "Retry", "Failed", "No more retries left", 4),
        (f"{run}.root.fetch-driver(0)", "Pod", "Error", why, 2),
        (f"{run}.root.fetch-driver(1)", "Pod", "Error", "a later one", 3),
        (f"{run}.root.train", "Skipped", "Omitted", "omitted: depends", 1),
    ]
    keys = ("name", "type", "phase", "message", "finishedAt")
    node_statuses = {
        str(number): dict(zip(keys, (*each, f"2026-11-20T10:00:0{at}Z"), strict=True))
        for number, (*each, at) in enumerate(nodes)
    }
    status = {"phase": "Failed", "message": "No more retries left", "nodes": node_statuses}
    return {**workflow(run), "status": status}


SKIPPED = {"phase": "Failed", "progress": "3/3", "counts": {"skipped": 3}}
WHY = 'fetch-driver(0): pods "x" is forbidden: error looking up service account'


def test_the_first_node_that_failed_by_itself_says_why(live, cluster, golden):
    cluster.put(placement(status=SKIPPED))
    cluster.put(refused_driver())
    golden(live("explain", "taxi-x7k2p").stdout, "explain")
    (line,) = live("watch", "taxi-x7k2p").stdout.splitlines()
    golden(line, "watch")
    assert WHY in line
    golden(live("list").stdout, "list")


@pytest.mark.parametrize("nodes", [["none"], {"a": {"name": 1}}, {"a": "b"}], ids=str)
def test_nodes_that_cannot_be_read(live, cluster, nodes):
    cluster.put(placement(status={"phase": "Failed"}))
    broken = failed()
    broken["status"]["nodes"] = nodes
    cluster.put(broken)
    assert "Argo says: serviceaccounts" in live("explain", "taxi-x7k2p").stdout


def test_a_failure_that_cannot_be_looked_up_is_no_other_failure(live, cluster, golden):
    cluster.put(placement(status=SKIPPED))
    cluster.refused[WORKFLOWS.path("team-a")] = ClusterUnreachableError("no answer")
    result = live("watch", "taxi-x7k2p")
    assert result.exit_code == 1
    golden(result.stderr, "stderr")
    golden(result.stdout, "stdout")
