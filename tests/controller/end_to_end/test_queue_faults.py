"""Held and preempted runs when something is restarted, dead, edited, replaced or deleted."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kfp_placement_engine.contract.keys import API_VERSION
from tests.controller.end_to_end.queues import (
    annotate,
    phase,
    released,
    said,
    set_queue,
    status,
    tried_again,
)
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.hold_cases import is_held
from tests.controlplane import housekeeping
from tests.controlplane.argo.crds import VERSION as ARGO_VERSION
from tests.controlplane.times import read_time
from tests.controlplane.waiting import wait_until
from tests.support.installation import PLAN, QUEUE, Installation
from tests.support.manifests import a_queue

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

JsonObject = dict[str, Any]

BUSY = 10.0
"""How many times what is required of an idle machine a busy one may take; both are printed."""


@pytest.fixture(scope="module")
def queueing(at_work) -> Iterator[Installation]:
    """An installation with queues, whose Leases count as stale after five seconds."""
    with at_work("queue", schedulerStaleAfter="5s") as running:
        yield running


@pytest.fixture
def team(queueing: Installation) -> Iterator[str]:
    """A namespace whose queue admits nobody."""
    queueing.wait_at_work()
    with queueing.namespace() as name:
        set_queue(queueing, name, quota={"runs": 0}, holdDeadline="5s")
        yield name
        for workflow in queueing.api.list(ARGO_VERSION, "Workflow", name):
            queueing.api.delete(workflow)
        housekeeping.delete_pods(queueing.api, name)


def held(installation: Installation, team: str, *seconds: float) -> str:
    """A run that is held, and says so."""
    name = installation.submit(chain("held", *(seconds or (0.1,))), team)
    wait_until(
        lambda: phase(installation.workflow(name, team)) == "Pending",
        f"{name} to be held",
        state=lambda: installation.workflow(name, team),
    )
    wait_until(lambda: said(installation, team, name).get("phase") == "Waiting", "it to wait")
    return name


def stopped(installation: Installation, team: str) -> str:
    """A run that was preempted in its first of two steps, which has ended."""
    name = held(installation, team, 3.0, 0.1)
    annotate(installation, team, name, "admit")
    wait_until(lambda: phase(installation.workflow(name, team)) == "Running", "it to run")
    wait_until(lambda: executors(installation, team), "its first step to run")
    wait_until(lambda: said(installation, team, name)["phase"] == "Admitted", "it to be admitted")
    # Requests are whole seconds; one from before the admission does not count.
    admitted_at = read_time(said(installation, team, name)["admittedAt"])
    wait_until(lambda: datetime.now(UTC) > admitted_at + timedelta(seconds=1), "a later second")
    annotate(installation, team, name, "preempt")
    wait_until(lambda: is_suspended(installation, team, name), "it to stop")
    wait_until(
        lambda: set(executors(installation, team).values()) == {"Succeeded"}, "its step to end"
    )
    return name


def executors(installation: Installation, team: str) -> dict[str, str]:
    """Pods of steps, and their phases."""
    return {
        pod["metadata"]["name"]: pod["status"].get("phase", "")
        for pod in installation.pods(team)
        if "container-impl" in pod["metadata"]["name"]
    }


def is_suspended(installation: Installation, team: str, name: str) -> bool:
    return bool(installation.workflow(name, team)["spec"].get("suspend"))


def test_an_orderly_restart_frees_nobody(queueing, team):
    name = held(queueing, team)
    # As long after the restart of one process the other one and the job still have to know nothing.
    set_queue(queueing, team, quota={"runs": 0}, holdDeadline="10m")
    for process in (PLAN.format(1), QUEUE.format(1)):
        queueing.processes[process].stop()
        assert "0 runs released" in queueing.release()
        assert is_held(queueing.workflow(name, team))
        queueing.restart(process)
        queueing.wait_at_work()
    assert is_held(queueing.workflow(name, team))
    set_queue(queueing, team, quota={})
    queueing.wait_for_success(name, team)


def test_without_anybody_preempted_runs_go_on_as_held_ones_begin(queueing, team):
    name = stopped(queueing, team)
    suspended = queueing.submit(chain("by-hand", 0.1), team)
    queueing.api.patch(queueing.workflow(suspended, team), {"spec": {"suspend": True}})
    with queueing.dead(QUEUE.format(1), PLAN.format(1)):
        wait_until(lambda: f"released run {team}/{name}" in queueing.release(), "it", 60)
        wait_until(
            lambda: phase(queueing.workflow(name, team)) == "Succeeded", "it to end well", 60
        )
        assert len(executors(queueing, team)) == 2
        assert is_suspended(queueing, team, suspended)


def test_what_a_new_workflow_says_of_itself_lets_it_skip_no_queue(queueing, team):
    workflow = {**chain("skipping", 0.1), "status": {"startedAt": "2026-01-01T00:00:00Z"}}
    name = queueing.submit(workflow, team)
    assert is_held(queueing.workflow(name, team))
    wait_until(lambda: phase(queueing.workflow(name, team)) == "Pending", "it to say so")
    assert queueing.pods(team) == []


def test_a_run_that_is_tried_again_when_it_is_gone_waits_and_repeats_nothing(queueing, team):
    faults = queueing.options.faults.exit_codes
    faults["*.s2(0).executor(0)"] = 1
    set_queue(queueing, team, quota={})
    name = queueing.submit(chain("failing", 0.1, 0.1), team)
    failed = queueing.wait_for_end(name, team)
    assert phase(failed) == "Failed"
    faults.clear()
    set_queue(queueing, team, quota={"runs": 0})
    queueing.api.delete(failed)
    housekeeping.delete_pods(queueing.api, team)
    again = tried_again(failed)
    metadata = {key: again["metadata"].get(key, {}) for key in ("name", "labels", "annotations")}
    again["metadata"] = {**metadata, "namespace": team}
    queueing.api.create(again)
    assert is_held(queueing.workflow(name, team))
    wait_until(lambda: phase(queueing.workflow(name, team)) == "Pending", "it to say so")
    set_queue(queueing, team, quota={})
    queueing.wait_for_success(name, team)
    # Of the two steps only the one that had failed.
    assert len(executors(queueing, team)) == 1


def test_a_queue_that_is_replaced_frees_nobody(queueing, team):
    """A run whose queue is deleted for good just after that begins; by then this one would have."""
    with queueing.namespace() as other:
        set_queue(queueing, other, quota={"runs": 0})
        name, freed = held(queueing, team), held(queueing, other)
        for _ in range(3):
            queueing.api.delete(a_queue(team))
            set_queue(queueing, team, quota={"runs": 0})
        queueing.api.delete(a_queue(other))
        wait_until(lambda: not is_held(queueing.workflow(freed, other)), f"{freed} to begin", 60)
        assert is_held(queueing.workflow(name, team))
        queueing.wait_for_end(freed, other)


@contextlib.contextmanager
def edited(installation: Installation, team: str, name: str) -> Iterator[list[str]]:
    """Somebody writes an annotation into a Workflow all the time; yields the values."""
    values: list[str] = []
    over = threading.Event()

    def edit() -> None:
        while not over.is_set():
            values.append(f"edit-{len(values)}")
            annotations = {"annotations": {"edited": values[-1]}}
            installation.api.patch(installation.workflow(name, team), {"metadata": annotations})

    thread = threading.Thread(target=edit)
    thread.start()
    try:
        yield values
    finally:
        over.set()
        thread.join()


def test_edits_while_a_run_is_released_are_kept_and_it_begins(queueing, team):
    name = held(queueing, team)
    with edited(queueing, team, name) as values:
        wait_until(lambda: len(values) > 3, "edits")
        set_queue(queueing, team, quota={})
        released(queueing, team, name)
        queueing.wait_for_success(name, team)
    ended = queueing.workflow(name, team)
    assert ended["metadata"]["annotations"]["edited"] == values[-1]
    assert not is_held(ended)
    assert ended["status"]["phase"] == "Succeeded"


def test_a_namespace_that_is_deleted_while_runs_wait_leaves_nothing(queueing, team):
    with queueing.namespace() as other:
        set_queue(queueing, other, quota={"runs": 0})
        held(queueing, other)
        namespace = queueing.api.get("v1", "Namespace", other)
        queueing.api.delete(namespace)
        wait_until(lambda: queueing.api.find("v1", "Namespace", other) is None, "it to be gone", 60)
        assert queueing.api.list(ARGO_VERSION, "Workflow", other) == []
        assert queueing.api.list("v1", "Pod", other) == []
        for kind in ("RunRequest", "RunQueue"):
            assert queueing.api.list(API_VERSION, kind, other) == []
    # The queue goes on to work for others.
    held(queueing, team)
    wait_until(lambda: status(queueing, team)["waiting"] == 1, "it to be counted")


def seconds_until(condition: Callable[[], object], what: str) -> float:
    began = time.monotonic()
    wait_until(condition, what)
    return time.monotonic() - began


def test_runs_that_wait_begin_end_and_go_on_soon(queueing, team):
    times: dict[str, tuple[float, float]] = {}
    first = held(queueing, team)
    annotate(queueing, team, first, "admit")
    released(queueing, team, first)
    seconds = seconds_until(lambda: queueing.pods(team), "its first pod")
    times["first pod after the release"] = (seconds, 1.0)
    queueing.wait_for_success(first, team)
    housekeeping.delete_pods(queueing.api, team)

    ended = held(queueing, team)
    queueing.api.patch(queueing.workflow(ended, team), {"spec": {"activeDeadlineSeconds": 0}})
    seconds = seconds_until(lambda: phase(queueing.workflow(ended, team)) == "Failed", "its end")
    times["terminated while held"] = (seconds, 3.0)
    assert queueing.pods(team) == []

    name = stopped(queueing, team)
    before = {pod["metadata"]["name"] for pod in queueing.pods(team)}
    annotate(queueing, team, name, "admit")
    wait_until(lambda: not is_suspended(queueing, team, name), "it to go on")
    seconds = seconds_until(
        lambda: {pod["metadata"]["name"] for pod in queueing.pods(team)} - before, "its next pod"
    )
    times["next pod after the suspension"] = (seconds, 3.0)
    queueing.wait_for_success(name, team)
    for what, (seconds, most) in times.items():
        print(f"{what}: {seconds:.2f} s, {most:g} s required")
    assert [what for what, (seconds, most) in times.items() if seconds > BUSY * most] == []
