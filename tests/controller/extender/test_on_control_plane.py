"""A real kube-scheduler with the shipped configuration asks the process `extend`."""

import os
import signal
import time
from functools import partial

import pytest

from kfp_placement_engine.contract.keys import API_VERSION, PLAN_GATE
from tests.controller.extender.conftest import SCHEDULER
from tests.controlplane import objects
from tests.controlplane.housekeeping import wait_for_node
from tests.controlplane.waiting import wait_until
from tests.support.scraping import scrape


def test_a_full_planned_node_means_the_next_best(extender, api, namespace, nodes):
    a, b, c = nodes
    extender.plan(namespace, [["train", 1, 0, 60, [], [[2, 10], [0, 20]]]], nodes)
    api.create(objects.pod("other", namespace, {"cpu": "8"}, nodeName=b))
    extender.wait_answered(extender.pod("x", namespace, "train"), [a, c], [c, a])
    created = api.create(extender.pod("train", namespace, "train"))
    assert wait_for_node(api, "train", namespace) == c

    def deviation_notes():
        events = api.list("events.k8s.io/v1", "Event", namespace)
        return [each["note"] for each in events if each["reason"] == "PlacedElsewhere"]

    notes = wait_until(deviation_notes, "the event")
    assert notes == [f"planned on {b}, placed on {c}: not enough cpu free"]
    assert created["spec"]["schedulerName"] == "kfp-placement"


def bind(api, namespace, name, node) -> None:
    """As a scheduler does."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
    api.request("POST", path, {"metadata": {"name": name}, "target": target})


def wait_until_tried(api, namespace, name):
    """Wait until our scheduler has tried to place a pod."""
    wait_until(
        lambda: api.get("v1", "Pod", name, namespace)["status"].get("conditions"),
        f"{name} to be tried",
    )


def test_room_that_another_scheduler_takes_is_not_booked_twice(extender, api, namespace, nodes):
    """A slow machine may not see within milliseconds that the room is taken: three tries."""
    extender.plan(namespace, [[f"step-{number}", number, 0, 60] for number in range(3)], nodes)
    another = partial(objects.pod, namespace=namespace, schedulerName="another")
    api.create(another("before", requests={}))
    bind(api, namespace, "before", nodes[1])
    refusal = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    for number in range(3):
        theirs = api.create(another(f"theirs-{number}", requests={"cpu": "8"}))
        api.patch(theirs, {"status": {"conditions": [refusal]}}, part="status")
    block = partial(objects.pod, namespace=namespace, requests={"cpu": "8"})
    blocks = [api.create(block(node, nodeName=node)) for node in nodes]
    # What the process has not seen yet, it cannot wait for.
    rejected = api.create(another("rejected"))
    failure = {"phase": "Failed", "reason": "OutOfcpu"}
    api.patch(rejected, {"status": failure}, part="status")
    wait_until(
        lambda: scrape(extender.probe_port).total("pods_rejected_total", scheduler="another"),
        "the process to have seen all pods",
    )
    for number, (node, leaving) in enumerate(zip(nodes, blocks, strict=True)):
        api.create(extender.pod(f"ours-{number}", namespace, f"step-{number}", {"cpu": "8"}))
        wait_until_tried(api, namespace, f"ours-{number}")
        api.delete(leaving, grace_seconds=0)
        # Another scheduler takes some milliseconds: ours would be quicker.
        time.sleep(0.03)
        bind(api, namespace, f"theirs-{number}", node)
        api.create(block(f"again-{number}", schedulerName=SCHEDULER))
        # Our scheduler has gone through its queue then.
        wait_until_tried(api, namespace, f"again-{number}")
        pods = [pod["spec"] for pod in api.list("v1", "Pod", namespace)]
        if (node, SCHEDULER) not in [(pod.get("nodeName"), pod["schedulerName"]) for pod in pods]:
            return
    pytest.fail("the room of each node is booked twice")


def test_a_limit_that_no_node_keeps_is_said(extender, api, namespace, nodes):
    node = objects.an_object("v1", "Node", nodes[0])
    api.patch(node, {"metadata": {"labels": {"HOME-EDGE": "30"}}})
    pod = extender.pod("predict", namespace, "predict", labels={"OurLocation": "HOME-EDGE"})
    hints = pod["metadata"]["annotations"]
    # No node is near enough either before the label is seen: only a wider limit tells.
    hints["kfp-placement.dev/hints"] = '{"v": 1, "maxLatency": "40ms"}'
    extender.wait_answered(pod, nodes, nodes[:1])
    hints["kfp-placement.dev/hints"] = '{"v": 1, "maxLatency": "20ms"}'
    extender.wait_answered(pod, nodes, [])
    api.create(pod)

    def why() -> str:
        conditions = api.get("v1", "Pod", "predict", namespace)["status"].get("conditions", ())
        return next((row["message"] for row in conditions if row["status"] == "False"), "")

    wait_until(why, "the pod to be refused")
    assert "1 round trip to HOME-EDGE is over 20ms" in why()
    assert "2 no round trip to HOME-EDGE is known" in why()


def test_the_volume_of_a_running_pod_is_followed(extender, api, namespace, nodes):
    _, _, c = nodes
    extender.plan(namespace, [["train", 0, 0, 60]], nodes)
    stored = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "no-such-class",
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/data"},
    }
    volume = api.create(
        objects.an_object("v1", "PersistentVolume", f"{namespace}-data", spec=stored)
    )
    claim = objects.claim("data", namespace, "no-such-class")
    claim["spec"]["volumeName"] = f"{namespace}-data"
    api.create(claim)
    wait_until(
        lambda: (
            api.get("v1", "PersistentVolumeClaim", "data", namespace)["status"].get("phase")
            == "Bound"
        ),
        "the claim to be bound",
    )
    mounted = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    api.create(objects.pod("user", namespace, nodeName=c, volumes=mounted))
    pod = extender.pod("train", namespace, "train", volumes=mounted)
    extender.wait_answered(pod, nodes, [c])
    api.create(pod)
    assert wait_for_node(api, "train", namespace) == c
    api.delete(volume)


def test_the_policy_says_whether_the_scheduler_is_alive(extender, control_plane, api):
    def flags():
        status = api.get(API_VERSION, "PlacementPolicy", "default").get("status", {})
        return status.get("schedulerReady"), status.get("gatesReady")

    extender.set_policy(schedulerStaleAfter="5s")
    wait_until(lambda: flags() == (True, False), "the scheduler to count as alive", state=flags)
    control_plane.processes[SCHEDULER].kill()
    wait_until(lambda: flags() == (False, False), "the scheduler to count as dead", state=flags)
    control_plane.restart(SCHEDULER)
    wait_until(lambda: flags() == (True, False), "the scheduler to count again", state=flags)


def test_an_overdue_gate_comes_off_without_a_planner(extender, api, namespace, nodes):
    extender.set_policy(gateDeadline="1s")
    gates = [{"name": PLAN_GATE}, {"name": "example.com/other"}]
    api.create(extender.pod("gated", namespace, "train", schedulingGates=gates))

    def left():
        return api.get("v1", "Pod", "gated", namespace)["spec"].get("schedulingGates")

    wait_until(lambda: left() == [gates[1]], "our gate alone to come off", state=left)


def test_it_ends_when_it_is_asked_to(extender):
    """Within a pod's grace period, so that a rollout waits for nobody."""
    os.killpg(extender.process.pid, signal.SIGTERM)
    try:
        assert extender.process.wait(15) == 0, extender.process.last_lines()
    finally:
        extender.process.kill()
        extender.start()
