"""A full cluster that two schedulers share: pods of both wait for the same rooms."""

from kfp_placement_engine.contract.keys import DEFAULT_SCHEDULER
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.end_to_end.taxi_runs import is_refused
from tests.controller.end_to_end.teams import Team, team_of
from tests.controlplane.waiting import wait_until
from tests.support.installation import EXTEND
from tests.support.taxi_cluster import CLOUD, HOME, NITLAB

CPU = "750m"
ROOMS = {CLOUD: 10, HOME: 2, NITLAB: 2}
"""Number of steps of that size for each kind of node; half a CPU is left for KFP's drivers."""

RUNS = 5
OTHERS = 15
TRIES = 3
"""Number of tries: our scheduler holds its answers back for a moment, and where the machine stands
still for longer, both take the same room. That is seen once in some hundred pods, and not three
times in a row."""

ROOM = {"cpu": CPU, "memory": "16Mi"}


def blocks(team: Team) -> list[JsonObject]:
    """Pods of somebody that run for an hour, one in every room."""
    return [
        team.add_pod(f"block-{node}-{number}", ROOM, "1h", nodeName=node)
        for node, rooms in ROOMS.items()
        for number in range(rooms)
    ]


def test_no_pod_is_refused_where_both_wait_for_the_same_rooms(installation):
    """Rooms become free one after the other, and later wherever a pod ends."""
    yielded = installation.metric(EXTEND, "answers_total", outcome="yielded")
    for _ in range(TRIES):
        with team_of(installation) as team:
            refused = refused_of_both(team)
        if not refused:
            break
    assert refused == []
    assert installation.metric(EXTEND, "answers_total", outcome="yielded") > yielded


def refused_of_both(team: Team) -> list[str]:
    """Let pods of both schedulers wait for the same rooms; returns those that a kubelet refused."""
    full = blocks(team)
    workflow = chain("sharing", 0.3, 0.3, cpu=CPU, memory="16Mi")
    runs = [team.submit(workflow) for _ in range(RUNS)]
    for number in range(OTHERS):
        team.add_pod(f"other-{number}", ROOM, "200ms")
    wait_until(lambda: len(waiting(team)) == RUNS + OTHERS, "all to find no room")
    ours = [pod for pod in waiting(team) if is_ours(pod)]
    assert len(ours) == RUNS

    for block in full:
        give_room(team, block)
    ends = [team.wait_for_end(run)["status"]["phase"] for run in runs]
    wait_until(lambda: not unfinished(team), "everybody to end")
    pods = team.pods()
    refused = [pod["metadata"]["name"] for pod in pods if is_refused(pod)]
    assert refused or set(ends) == {"Succeeded"}
    print(f"{refused} of {len(pods)} refused")
    return refused


def give_room(team: Team, block: JsonObject) -> None:
    """End a pod, and wait until somebody has got its room."""
    left = len(waiting(team))
    team.api.delete(block, grace_seconds=0)
    wait_until(lambda: not left or len(waiting(team)) < left, "somebody to get the room")


def waiting(team: Team) -> list[JsonObject]:
    """Pods for which a scheduler has found no room."""
    return [
        pod
        for pod in team.pods()
        if not pod["spec"].get("nodeName")
        and any(row.get("reason") == "Unschedulable" for row in pod["status"].get("conditions", ()))
    ]


def is_ours(pod: JsonObject) -> bool:
    return bool(pod["spec"]["schedulerName"] == DEFAULT_SCHEDULER)


def unfinished(team: Team) -> list[str]:
    return [
        pod["metadata"]["name"]
        for pod in team.pods()
        if pod["status"].get("phase") not in ("Succeeded", "Failed")
    ]
