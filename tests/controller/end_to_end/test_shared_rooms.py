"""A full cluster that two schedulers share: pods of both wait for the same rooms."""

from typing import Any

import pytest

from kfp_placement_engine.contract.keys import DEFAULT_SCHEDULER
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.end_to_end.taxi_runs import JsonObject, is_refused
from tests.controlplane import objects
from tests.controlplane.kubelet.workload import HINTS
from tests.controlplane.waiting import wait_until
from tests.support.installation import EXTEND, Installation
from tests.support.taxi_cluster import CLOUD, HOME, NITLAB

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

CPU = "750m"
ROOMS = {CLOUD: 10, HOME: 2, NITLAB: 2}
"""Of so much; the half CPU that is left of each node is for KFP's drivers."""

RUNS = 5
OTHERS = 15
TRIES = 2
"""Our scheduler holds its answers back for a moment; where the machine stands still for longer,
both take the same room. That is seen once in some hundred pods, and not twice in a row."""

ROOM = {"cpu": CPU, "memory": "16Mi"}


def blocks(installation: Installation, team: str) -> list[JsonObject]:
    """Pods of somebody that run for an hour, one in every room."""
    return [
        installation.api.create(
            pod_of_somebody(f"block-{node}-{number}", team, "1h", nodeName=node)
        )
        for node, rooms in ROOMS.items()
        for number in range(rooms)
    ]


def pod_of_somebody(name: str, team: str, duration: str, **spec: Any) -> JsonObject:
    pod = objects.pod(name, team, ROOM, **spec)
    pod["metadata"]["annotations"] = {HINTS: f'{{"duration": "{duration}"}}'}
    return pod


def test_no_pod_is_refused_where_both_wait_for_the_same_rooms(installation):
    """Rooms become free one after the other, and later wherever a pod ends."""
    yielded = installation.metric(EXTEND, "answers_total", outcome="yielded")
    for _ in range(TRIES):
        with installation.namespace() as team:
            refused = refused_of_both(installation, team)
        if not refused:
            break
    assert refused == []
    assert installation.metric(EXTEND, "answers_total", outcome="yielded") > yielded


def refused_of_both(installation: Installation, team: str) -> list[str]:
    """Let pods of both schedulers wait for the same rooms; returns those that a kubelet refused."""
    full = blocks(installation, team)
    workflow = chain("sharing", 0.3, 0.3, cpu=CPU, memory="16Mi")
    runs = [installation.submit(workflow, team) for _ in range(RUNS)]
    for number in range(OTHERS):
        installation.api.create(pod_of_somebody(f"other-{number}", team, "200ms"))
    wait_until(lambda: len(waiting(installation, team)) == RUNS + OTHERS, "all to find no room", 60)
    ours = [pod for pod in waiting(installation, team) if is_ours(pod)]
    assert len(ours) == RUNS

    for block in full:
        give_room(installation, team, block)
    ends = [installation.wait_for_end(run, team)["status"]["phase"] for run in runs]
    wait_until(lambda: not unfinished(installation, team), "everybody to end")
    pods = installation.pods(team)
    refused = [pod["metadata"]["name"] for pod in pods if is_refused(pod)]
    assert refused or set(ends) == {"Succeeded"}
    print(f"{refused} of {len(pods)} refused")
    return refused


def give_room(installation: Installation, team: str, block: JsonObject) -> None:
    """End a pod, and wait until somebody has got its room."""
    left = len(waiting(installation, team))
    installation.api.delete(block, grace_seconds=0)
    wait_until(
        lambda: not left or len(waiting(installation, team)) < left, "somebody to get the room"
    )


def waiting(installation: Installation, team: str) -> list[JsonObject]:
    """Pods for which a scheduler has found no room."""
    return [
        pod
        for pod in installation.pods(team)
        if not pod["spec"].get("nodeName")
        and any(row.get("reason") == "Unschedulable" for row in pod["status"].get("conditions", ()))
    ]


def is_ours(pod: JsonObject) -> bool:
    return bool(pod["spec"]["schedulerName"] == DEFAULT_SCHEDULER)


def unfinished(installation: Installation, team: str) -> list[str]:
    return [
        pod["metadata"]["name"]
        for pod in installation.pods(team)
        if pod["status"].get("phase") not in ("Succeeded", "Failed")
    ]
