"""Gates that wait to be taken off: in turn by namespace, and no pod twice."""

import threading
from typing import Any, cast

from kfp_placement_controller.actuators import gate_workers
from kfp_placement_controller.actuators.gate_workers import GateWorkers
from kfp_placement_controller.planning.gates import Cause, OpenGate
from kfp_placement_kube.exceptions import KubernetesError
from tests.controller.planning.builders import a_pod


def a_gate(namespace: str, name: str) -> OpenGate:
    """The gate of a pod whose uid is its name."""
    return OpenGate(a_pod(name=name, namespace=namespace, uid=name), Cause.TURN)


def test_a_pod_waits_once(monkeypatch):
    opened: list[str] = []
    last = threading.Event()

    def open_gate(_client: Any, _namespace: str, name: str, *_others: Any) -> bool:
        opened.append(name)
        if name == "last":
            last.set()
        return True

    monkeypatch.setattr(gate_workers, "open_gate", open_gate)
    workers = GateWorkers(cast("Any", None), threads=1)
    for name in ("pod", "pod", "last"):
        workers.submit(a_gate("team", name))
    workers.start()
    assert last.wait(10)
    last.clear()
    for name in ("pod", "last"):
        workers.submit(a_gate("team", name))
    assert last.wait(10)
    workers.stop()
    assert opened == ["pod", "last"] * 2


def test_the_planner_does_not_wait_and_a_refusal_or_a_defect_ends_no_thread(monkeypatch, caplog):
    free, opened = threading.Event(), threading.Semaphore(0)
    failures = {"refused": KubernetesError(500, "InternalError", "not now"), "defect": KeyError()}

    def open_gate(_client: Any, _namespace: str, name: str, *_others: Any) -> bool:
        free.wait(10)
        if name in failures:
            raise failures[name]
        opened.release()
        return True

    monkeypatch.setattr(gate_workers, "open_gate", open_gate)
    workers = GateWorkers(cast("Any", None), threads=2)
    workers.start()
    for name in ("refused", "defect", "first", "second"):
        workers.submit(a_gate("team", name))
    free.set()
    assert opened.acquire(timeout=10)
    assert opened.acquire(timeout=10)
    assert workers.alive()
    workers.stop()
    assert not workers.alive()
    assert "not now" in caplog.text
