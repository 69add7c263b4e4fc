import threading
from itertools import repeat
from types import SimpleNamespace

import pytest

from kfp_placement.live.exceptions import (
    ClusterExpiredError,
    ClusterForbiddenError,
    ClusterUnreachableError,
)
from kfp_placement.live.following import MAX_REFUSALS, PAUSE_BETWEEN_STREAMS_SECONDS, follow
from kfp_placement.live.kinds import PLACEMENTS
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.views.run_news import news
from kfp_placement_engine.views.runs import run_view
from tests.cli.live.conftest import NOW, condition, modified, placement
from tests.support.fake_cluster import workflow

RUNNING = placement()
PREDICTING = placement(
    status={
        "progress": "2/3",
        "steps": [["succeeded", 0, 10.4, 43.1], ["succeeded", 0, 49, 1251], ["running", 1, 1256]],
    }
)
ENDED = placement(status={"phase": "Succeeded", "progress": "3/3", "makespan": "22m"})
FAILED = placement(status={"phase": "Failed", "progress": "2/3"})


def change_lines(before, after):
    return list(news(run_view(before, NOW) if before else None, run_view(after, NOW)))


def test_replans_alarms_and_waiting(golden):
    states = [["succeeded", 0, 10.4, 43.1], ["waiting", -1, -1, -1, ["node", 60, -1, "0/3 nodes"]]]
    after = placement(
        spec={"revision": 3, "makespan": "30m"},
        status={
            "revision": 3,
            "steps": [*states, ["pending"]],
            "conditions": [condition("LatencySatisfied", reason="LatencyRuleUnsatisfied")],
        },
    )
    replan, alarm, waiting = change_lines(RUNNING, after)
    golden([replan, alarm, waiting])
    # Told once.
    assert change_lines(after, after) == []


def test_the_whole_command_over_a_replan(live, cluster, golden):
    spec = {"revision": 3, "makespan": "24m"}
    replanned = placement(spec=spec)
    followed = placement(spec=spec, status={"revision": 3})
    ended = placement(spec=spec, status={"revision": 3, "phase": "Succeeded"})
    cluster.streams = [modified(replanned, followed, ended)]
    stdout = live("watch", "taxi-x7k2p").stdout
    golden(stdout)
    assert "unknown" not in stdout
    assert "train" not in stdout


def stuck(revision, seconds, **spec):
    """The sample run, planned again so much later, while its last step waits for a node."""
    planned = {
        "revision": revision,
        "plannedAt": f"2026-11-20T10:{seconds // 60:02}:{seconds % 60:02}Z",
        "makespan": f"{1375 + seconds}s",
    }
    states = [["succeeded", 0, 10, 43], ["succeeded", 0, 49, 1251]]
    waiting = [*states, ["waiting", -1, -1, -1, ["node", 60]]]
    return placement(spec=planned | spec, status={"revision": revision, "steps": waiting})


def replans(live, cluster, *looks):
    cluster.put(stuck(2, 0))
    cluster.streams = [modified(*looks)]
    lines = live("watch", "taxi-x7k2p", "--timeout", "300ms").stdout.splitlines()
    return [line.partition("replanned ")[2][:12] for line in lines if "replanned" in line]


def test_an_end_that_slides_while_a_step_waits_is_told_once(live, cluster):
    later = [stuck(3 + number, 12 * (number + 1)) for number in range(5)]
    assert replans(live, cluster, *later) == []
    sooner = stuck(8, 72, makespan="21m")
    assert replans(live, cluster, *later, sooner, stuck(9, 84, makespan="21m12s")) == [
        "(revision 8)"
    ]


def test_an_end_that_creeps_is_told_when_it_has_moved(live, cluster):
    creeping = [stuck(3 + number, 0, makespan=f"{1372 - 3 * number}s") for number in range(3)]
    assert replans(live, cluster, *creeping) == ["(revision 4)"]


def test_other_nodes_are_news(live, cluster):
    rows = [*placement()["spec"]["steps"][:2], ["predict", 1, 1254, 1375]]
    assert replans(live, cluster, stuck(3, 12, steps=rows), stuck(4, 24, steps=rows)) == [
        "(revision 3)"
    ]


def test_nodes_of_steps_that_have_ended_are_none(live, cluster):
    rows = placement()["spec"]["steps"]
    assert replans(live, cluster, stuck(3, 12, steps=[["fetch", 1], *rows[1:]])) == []


def test_an_end_that_is_known_no_more_is_news(golden):
    unknown = placement(spec={"revision": 3})
    del unknown["spec"]["makespan"]
    replan = change_lines(RUNNING, unknown)[0]
    golden(replan)


def test_what_cannot_be_read_any_more_is_told(golden):
    unreadable = placement(spec={"nodes": 5})
    (line,) = change_lines(RUNNING, unreadable)
    golden(line)
    assert change_lines(unreadable, unreadable) == []


def test_a_step_whose_end_nobody_planned_says_none():
    rows = [*RUNNING["spec"]["steps"][:2], ["predict", 1]]
    after = PREDICTING | {"spec": RUNNING["spec"] | {"steps": rows}}
    assert change_lines(RUNNING, after)[-1] == "predict: running on nitlab-edge-node"


def following(cluster, pauses, messages):
    """Follow the sample run, and note the pauses and messages."""
    run = RunKey("team-a", "taxi-x7k2p")
    unhurried = SimpleNamespace(is_set=lambda: False, wait=pauses.append)
    return follow(cluster, PLACEMENTS, run, stopped=unhurried, tell=messages.append)  # type: ignore[arg-type]


def looks(cluster, number):
    """So many looks at what the API server is scripted to say, with pauses and messages."""
    pauses: list[float] = []
    messages: list[str] = []
    run = following(cluster, pauses, messages)
    return [next(run) for _ in range(number)], pauses, messages


def test_changes_follow_the_list(cluster):
    cluster.streams = [modified(PREDICTING), [("BOOKMARK", {"metadata": {}}), ("DELETED", ENDED)]]
    runs, pauses, messages = looks(cluster, 3)
    assert runs[1:] == [PREDICTING, None]
    assert runs[0]["metadata"]["name"] == "taxi-x7k2p"
    # One that is ended at once, again and again, must not be asked for without rest.
    assert (pauses, messages) == ([PAUSE_BETWEEN_STREAMS_SECONDS], [])


def test_a_restart_is_survived(cluster):
    gone = ClusterUnreachableError("no answer")
    cluster.streams = [[gone], [gone], [gone, gone], modified(ENDED)]
    runs, pauses, messages = looks(cluster, 5)
    assert runs[-1] == ENDED
    # There is a new list after each, so the count begins again.
    assert pauses == [1, 1, 1]
    assert messages[0] == "no answer (again in 1 s)"


def test_pauses_grow(cluster, monkeypatch):
    def refuse(path):
        if len(pauses) < 8:
            raise ClusterUnreachableError("down")

    pauses: list[float] = []
    monkeypatch.setattr(cluster, "check_access", refuse)
    assert next(following(cluster, pauses, []))["metadata"]["name"] == "taxi-x7k2p"
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]


def test_too_old_a_version_is_no_failure(cluster):
    cluster.streams = [[ClusterExpiredError("too old")], modified(ENDED)]
    runs, pauses, _ = looks(cluster, 3)
    assert (runs[-1], pauses) == (ENDED, [PAUSE_BETWEEN_STREAMS_SECONDS])


def test_refusals_are_borne_for_a_while(cluster):
    cluster.refused["/"] = ClusterForbiddenError("may not")
    pauses: list[float] = []
    with pytest.raises(ClusterForbiddenError):
        next(following(cluster, pauses, []))
    assert len(pauses) == MAX_REFUSALS


@pytest.mark.parametrize(
    ("seen", "code"),
    [
        (modified(PREDICTING, ENDED), 0),
        (modified(FAILED), 1),
        (modified(placement(status={"phase": "Refused"})), 1),
        ([("DELETED", RUNNING)], 1),
        (repeat(("BOOKMARK", {})), 5),
    ],
    ids=["succeeds", "fails", "is refused", "is deleted", "goes on"],
)
def test_the_whole_command(live, cluster, golden, seen, code):
    cluster.streams = [seen]
    result = live("watch", "taxi-x7k2p", "--timeout", "200ms" if code == 5 else "5s")
    assert result.exit_code == code
    golden(result.stdout, "stdout")
    golden(result.stderr, "stderr")
    for thread in threading.enumerate():
        if thread.name == "watch":
            thread.join(5)
            assert not thread.is_alive()


def test_a_run_that_has_no_plan_yet(live, cluster, golden):
    cluster.put(workflow("new"))
    cluster.streams = [[("ADDED", placement("new", status={"phase": "Succeeded"}))]]
    result = live("watch", "new")
    assert result.exit_code == 0
    golden(result.stderr)


def test_a_server_that_refuses_for_good(live, cluster, monkeypatch):
    monkeypatch.setattr("kfp_placement.live.following.LONGEST_PAUSE_SECONDS", 0)
    refused = ClusterForbiddenError("may not watch")

    def stream(kind, resource_version, *, namespace, field_selector):
        cluster.refused[kind.path(namespace)] = refused
        raise refused

    monkeypatch.setattr(cluster, "stream", stream)
    result = live("watch", "taxi-x7k2p")
    assert result.exit_code == 1
    assert result.stderr.endswith("\nError: may not watch\n")
