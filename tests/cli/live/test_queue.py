"""Runs in queues: what `queue`, `admit`, `preempt`, `list`, `explain` and `run().queue` say."""

import copy
from typing import Any

import pytest

from kfp_placement.live.exceptions import ClusterForbiddenError
from kfp_placement.live.kinds import RUN_QUEUES, RUN_REQUESTS
from kfp_placement_engine.contract.keys import ADMIT_ANNOTATION, PREEMPT_ANNOTATION
from tests.cli.live.conftest import HOSTILE, condition, is_harmless, notebook_run, placement
from tests.support.fake_cluster import workflow
from tests.support.structural_schemas import MANIFESTS, documents

(_REQUEST,) = documents(MANIFESTS / "runrequest.yaml")


def request(name="taxi-x7k2p", namespace="team-a", *, spec=None, **status):
    """The sample's RunRequest, with changes."""
    raw = copy.deepcopy(_REQUEST)
    raw["metadata"] |= {"name": name, "namespace": namespace}
    raw["metadata"].pop("ownerReferences")
    raw["spec"] |= {"displayName": "", **(spec or {})}
    raw["status"] |= status
    return raw


ADMITTED: dict[str, Any] = {
    "phase": "Admitted",
    "position": None,
    "waiting": None,
    "message": None,
    "missing": [],
    "starts": None,
    "admittedAt": "2026-11-20T09:00:00Z",
}


@pytest.fixture
def queued(cluster):
    """One run that waits, and one that was admitted."""
    cluster.put(request(waitingSince="2026-11-20T08:00:00Z"))
    cluster.put(request("other", **ADMITTED, waitingSince="2026-11-20T08:30:00Z"))
    return cluster


def test_the_table_has_waiting_runs_by_position_then_those_that_were_admitted(live, queued, golden):
    queued.put(request("first", position=1, starts=None, message="1st of 7, waits"))
    queued.put(request("over", phase="Finished"))
    stdout = live.output("queue")
    golden(stdout)
    rows = [line.split()[1] for line in stdout.splitlines()[1:]]
    assert rows[:3] == ["first", "taxi-x7k2p", "other"]


def test_in_all_namespaces_with_their_names(live, queued, golden):
    queued.put(request("elsewhere", "team-b", spec={"displayName": "nightly"}))
    golden(live("queue", "-A", "-o", "wide").stdout)


def test_json_is_what_its_schema_says(live, queued):
    queued.put(request("hostile", message=HOSTILE, notes=[HOSTILE], queue=HOSTILE))
    unreadable = request("unreadable")
    unreadable["spec"]["submittedAt"] = "yesterday"
    queued.put(unreadable)
    document = live.document("queue")
    assert is_harmless(live("queue").stdout)
    (taxi,) = [each for each in document["items"] if each["name"] == "taxi-x7k2p"]
    assert (taxi["position"], taxi["waiting"], taxi["queue"]) == (3, 7, "gpu")
    assert taxi["missing"] == [{"resource": "nvidia.com/gpu", "amount": "2"}]
    assert taxi["latestStart"] == "2026-11-22T15:40:00Z"


def test_without_queues_it_says_how_to_install_them(live, golden):
    golden(live.message(3, "queue"))


def test_without_runs_it_says_where_it_has_looked(live, cluster):
    cluster.serve(RUN_REQUESTS)
    result = live("queue")
    assert result.exit_code == 0
    assert "No run waits or runs in a queue in namespace team-a" in result.stderr


def run_queue(namespace="team-a", **status):
    """RunQueue `default` of a namespace."""
    metadata = {"name": "default", "namespace": namespace}
    return {"kind": "RunQueue", "metadata": metadata, "spec": {}, "status": status}


DOWN = condition("Ready", reason="LeaseStale", message="not renewed")


def test_a_namespace_without_a_queue_is_told_apart_from_an_empty_queue(live, cluster):
    cluster.serve(RUN_REQUESTS, RUN_QUEUES)
    cluster.put(run_queue("team-b"))
    lacks = "Namespace team-a has no RunQueue default: its runs do not wait.\n"
    assert live("queue").stderr == lacks
    assert live("queue", "-A").stderr == "No run waits or runs in a queue in any namespace.\n"
    cluster.put(run_queue(ready=True))
    assert "No run waits" in live("queue").stderr
    cluster.refused[RUN_QUEUES.path("team-a")] = ClusterForbiddenError("you may not")
    assert "RunQueue" not in live("queue").stderr


@pytest.mark.parametrize("namespace", ["-n=team-a", "-A"])
def test_a_queue_that_is_not_ready(live, queued, namespace):
    queued.put(run_queue(ready=False, conditions=[DOWN]))
    queued.put(run_queue("team-b"))
    name = "team-a/default" if namespace == "-A" else "default"
    warning = f"Warning: RunQueue {name} is not ready (LeaseStale): new runs begin at once\n"
    for arguments in ([], ["-o", "json"]):
        result = live("queue", *namespace.split("="), *arguments)
        assert (result.exit_code, result.stderr) == (0, warning)


def test_a_queue_that_cannot_be_read_is_not_judged(live, queued):
    queued.put(run_queue(ready="perhaps"))
    assert live("queue").stderr == ""


def test_a_run_that_waits_is_admitted_by_an_annotation_with_the_time(live, queued):
    result = live("admit", "taxi-x7k2p")
    assert (result.exit_code, result.stdout) == (0, "team-a/taxi-x7k2p begins out of turn.\n")
    annotations = {ADMIT_ANNOTATION: "2026-11-20T10:03:00Z"}
    assert queued.writes[-1][1] == {"metadata": {"annotations": annotations}}


def test_a_run_that_runs_is_stopped_by_an_annotation_with_the_time(live, queued):
    queued.put(request(**ADMITTED))
    assert live.output("preempt", "taxi-x7k2p") == (
        "team-a/taxi-x7k2p is asked to stop after its running steps; it goes on when its queue has"
        " room for it.\n"
    )
    annotations = {PREEMPT_ANNOTATION: "2026-11-20T10:03:00Z"}
    assert queued.writes[-1][1] == {"metadata": {"annotations": annotations}}


@pytest.mark.parametrize(
    ("command", "phase", "message"),
    [
        ("admit", "Admitted", "run team-a/taxi-x7k2p does not wait: it is admitted"),
        ("admit", "Finished", "run team-a/taxi-x7k2p does not wait: it is finished"),
        ("preempt", "Waiting", "run team-a/taxi-x7k2p does not run: it is waiting"),
    ],
)
def test_what_makes_no_sense_is_refused(live, queued, command, phase, message):
    queued.put(request(phase=phase))
    result = live(command, "taxi-x7k2p")
    assert (result.exit_code, result.stderr) == (1, f"Error: {message}\n")
    assert queued.writes == []


@pytest.mark.parametrize("command", ["admit", "preempt"])
def test_a_run_in_no_queue_and_one_that_does_not_exist(live, cluster, command):
    assert "run team-a/taxi-x7k2p is in no queue" in live.message(3, command, "taxi-x7k2p")
    assert live(command, "nothing").exit_code == 3


def test_who_may_not_is_told_which_role_may(live, queued, monkeypatch):
    def refuse(*_):
        raise ClusterForbiddenError("you may not patch runrequests")

    monkeypatch.setattr(queued, "patch", refuse)
    assert "kfp-placement-operate-queues" in live.message(1, "admit", "taxi-x7k2p")


WAITS = "queued 3rd of 7, lacks 2 nvidia.com/gpu of the quota, starts 2026-11-22 14:20-15:40 UTC"


def waiting_line(live):
    """How the sample run waits, as `explain` says it."""
    return live("explain", "taxi-x7k2p").stdout.splitlines()[1]


def test_list_and_explain_say_that_a_run_is_queued(live, queued):
    listed = " ".join(live("list").stdout.split())
    assert WAITS in listed
    assert waiting_line(live) == f"{WAITS} (80%)"
    queued.put(placement(spec={"plannedAt": None}))
    assert waiting_line(live) == f"{WAITS} (80%)"


def test_the_author_of_a_preempted_run_is_told_so(live, queued, golden):
    why = "stopped for a run of another namespace; it waits again"
    conditions = [condition("Preempted", "True", "Preempted", why)]
    queued.put(request(conditions=conditions, notes=["a note"]))
    assert f"; {why}; a note" in waiting_line(live)
    for command in ("queue", "list"):
        assert why in " ".join(live.output(command).split())
    golden(live.output("queue"))
    ended = [condition("Preempted", "False", "Resumed", "it goes on")]
    queued.put(request(conditions=ended))
    queued.put(request("other", **ADMITTED, conditions=conditions))
    for command in ("queue", "list"):
        assert "another namespace" not in live.output(command)


def test_without_the_right_to_see_queues_they_say_all_else(live, queued):
    refusal = ClusterForbiddenError("you may not list runrequests")
    queued.refused[RUN_REQUESTS.path("team-a", "")] = refusal
    for command in (["list"], ["explain", "taxi-x7k2p"]):
        assert "queued" not in live.output(*command)


def test_in_a_notebook(queued):
    run = notebook_run(queued)
    queue = run.queue
    assert queue is not None
    assert (queue.phase, queue.position, queue.waiting, queue.queue) == ("Waiting", 3, 7, "gpu")
    assert queue.missing == (("nvidia.com/gpu", "2"),)
    assert queue.latest is not None
    assert queue.latest.isoformat() == "2026-11-22T15:40:00+00:00"
    assert repr(queue) == f"<team-a/taxi-x7k2p: {WAITS} (80%)>"


def test_in_a_notebook_without_queues(cluster):
    cluster.put(workflow("plain"))
    assert notebook_run(cluster, "plain").queue is None


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (
            {"message": "waits for the planner to say what it needs"},
            "queued: waits for the planner",
        ),
        (
            {"message": "its running steps end, then it waits again"},
            "queued: its running steps end",
        ),
        ({"message": None}, "queued: not looked at yet"),
    ],
)
def test_a_run_without_a_position_says_why(live, queued, status, text):
    queued.put(request("taxi-x7k2p", position=None, starts=None, **status))
    assert waiting_line(live).startswith(text)


def test_before_a_queue_has_learned_only_the_earliest_start_is_said(live, queued):
    starts = {"earliest": "2026-11-22T14:20:00Z", "forecast": "2026-11-22T16:00:00Z"}
    queued.put(request("taxi-x7k2p", starts=starts))
    line = waiting_line(live)
    assert line.endswith("starts not before 2026-11-22 14:20 UTC")


@pytest.fixture
def plain(cluster):
    """A run without a marked step that waits in a queue: it has no plan."""
    raw = workflow("plain", "team-b")
    cluster.put_namespace("team-b")
    cluster.put({**raw, "spec": {"templates": []}})
    message = "2nd of 2, lacks 1 nvidia.com/gpu of the quota"
    status = {"position": 2, "waiting": 2, "message": message, "starts": None}
    submitted = {"submittedAt": "2026-11-20T10:01:00Z", "makespan": "3m41s"}
    cluster.put(request("plain", "team-b", spec=submitted, **status))
    return cluster


PLAIN = "queued 2nd of 2, lacks 1 nvidia.com/gpu of the quota"


def test_explain_says_how_a_run_without_a_plan_waits(live, plain):
    assert live.output("explain", "-n", "team-b", "plain").splitlines() == [
        "team-b/plain: no plan yet",
        PLAIN,
        "takes 3m41s once it begins",
        "no plan: none of its steps is marked and its namespace lacks the label"
        " kfp-placement.dev/pipelines=all",
    ]
    assert live("explain", "-n", "team-b", "plain", "-o", "json").exit_code == 3


def test_list_shows_a_run_without_a_plan_that_waits(live, plain, golden):
    stdout = live.output("list", "-n", "team-b")
    golden(stdout, "alone")
    table = live("list", "-A").stdout
    golden(table, "with others")
    assert [line.split()[1] for line in table.splitlines()[1:]][:2] == ["plain", "taxi-x7k2p"]
    golden(live("list", "-n", "team-b", "-o", "wide").stdout, "wide")


MOVED = "there is no RunQueue gpus: it is in default; priority 10 counts as 5 in default"


def test_what_the_author_should_know_is_said_wherever_the_queue_is(live, cluster):
    notes = MOVED.split("; ")
    cluster.put(request(starts=None, notes=notes))
    line = f"queued 3rd of 7, lacks 2 nvidia.com/gpu of the quota; {MOVED}"
    assert line in " ".join(live("list").stdout.split())
    assert waiting_line(live) == line
    run = notebook_run(cluster)
    assert repr(run.queue) == f"<team-a/taxi-x7k2p: {line}>"


def test_explain_shows_no_planned_times_of_a_run_that_waits(live, queued):
    waits = {"progress": "0/3", "phase": "Pending", "steps": [["pending"]] * 3}
    queued.put(placement(status=waits))
    lines = live("explain", "taxi-x7k2p").stdout.splitlines()
    assert lines[2] == "takes 1h5m30s once it begins"
    steps = [line.split() for line in lines[-3:]]
    assert [(step[0], step[1], step[3]) for step in steps] == [
        ("fetch", "pending", "-"),
        ("train", "pending", "-"),
        ("predict", "pending", "-"),
    ]
    alone = live("explain", "taxi-x7k2p", "train").stdout.splitlines()
    (planned,) = [line.split() for line in alone if line.startswith("  planned")]
    assert planned == ["planned:", "nitos-cloud-node"]
