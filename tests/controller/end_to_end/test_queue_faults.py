"""Held and preempted runs when something is restarted, dead, edited, replaced or deleted."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from kfp_placement_engine.contract.keys import API_VERSION
from tests.controller.end_to_end.queues import (
    annotate,
    phase,
    released,
    set_queue,
    status,
    tried_again,
    wait_for_phase,
    wait_for_workflow,
)
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.end_to_end.teams import LASTING_SECONDS, Team, team_of, tidy_team
from tests.controller.hold_cases import is_held
from tests.controlplane import housekeeping
from tests.controlplane.argo.crds import VERSION as ARGO_VERSION
from tests.controlplane.waiting import wait_until
from tests.support.installation import FIRST_QUEUE, PLANNER
from tests.support.manifests import a_queue

BUSY = 10.0
"""Factor by which a busy machine may exceed what is required of an idle one; both are printed."""


@pytest.fixture(scope="module")
def queueing(at_work):
    """An installation with queues, whose Leases count as stale after five seconds."""
    with at_work("queue", schedulerStaleAfter="5s") as running:
        yield running


@pytest.fixture
def team(queueing):
    """A namespace whose queue admits nobody."""
    for made in tidy_team(queueing):
        set_queue(made, quota={"runs": 0}, holdDeadline="5s")
        yield made


def held(team: Team, *seconds: float) -> str:
    """A run that is held, and says so."""
    name = team.submit(chain("held", *(seconds or (0.1,))))
    wait_for_workflow(team, name, "Pending")
    wait_for_phase(team, name, "Waiting")
    return name


def stopped(team: Team) -> str:
    """A run that was preempted in its first of two steps, which has ended."""
    name = held(team, LASTING_SECONDS, 0.1)
    annotate(team, name, "admit")
    team.wait_for_step(name)
    wait_for_phase(team, name, "Admitted")
    annotate(team, name, "preempt")
    wait_until(lambda: is_suspended(team, name), "it to stop")
    team.end_step(name)
    wait_until(lambda: set(executors(team).values()) == {"Succeeded"}, "its step to end")
    return name


def executors(team: Team) -> dict[str, str]:
    """Pods of steps, and their phases."""
    return {
        pod["metadata"]["name"]: pod["status"].get("phase", "")
        for pod in team.pods()
        if "container-impl" in pod["metadata"]["name"]
    }


def is_suspended(team: Team, name: str) -> bool:
    return bool(team.workflow(name)["spec"].get("suspend"))


def test_an_orderly_restart_frees_nobody(queueing, team):
    name = held(team)
    # As long after the restart of one process the other one and the job still have to know nothing.
    set_queue(team, quota={"runs": 0}, holdDeadline="10m")
    for process in (PLANNER, FIRST_QUEUE):
        queueing.processes[process].stop()
        assert "0 runs released" in queueing.release()
        assert is_held(team.workflow(name))
        queueing.restart(process)
        queueing.wait_at_work()
    assert is_held(team.workflow(name))
    set_queue(team, quota={})
    team.wait_for_success(name)


def test_without_anybody_preempted_runs_go_on_as_held_ones_begin(queueing, team):
    name = stopped(team)
    suspended = team.submit(chain("by-hand", 0.1))
    team.api.patch(team.workflow(suspended), {"spec": {"suspend": True}})
    with queueing.dead(FIRST_QUEUE, PLANNER):
        wait_until(lambda: f"released run {team.name}/{name}" in queueing.release(), "it")
        wait_for_workflow(team, name, "Succeeded")
        assert len(executors(team)) == 2
        assert is_suspended(team, suspended)


def test_what_a_new_workflow_says_of_itself_lets_it_skip_no_queue(team):
    workflow = {**chain("skipping", 0.1), "status": {"startedAt": "2026-01-01T00:00:00Z"}}
    name = team.submit(workflow)
    assert is_held(team.workflow(name))
    wait_for_workflow(team, name, "Pending")
    assert team.pods() == []


def test_a_run_that_is_tried_again_when_it_is_gone_waits_and_repeats_nothing(queueing, team):
    faults = queueing.options.exit_codes
    faults["*.s2(0).executor(0)"] = 1
    set_queue(team, quota={})
    name = team.submit(chain("failing", 0.1, 0.1))
    failed = team.wait_for_end(name)
    assert phase(failed) == "Failed"
    faults.clear()
    set_queue(team, quota={"runs": 0})
    team.api.delete(failed)
    housekeeping.delete_pods(team.api, team.name)
    again = tried_again(failed)
    metadata = {key: again["metadata"].get(key, {}) for key in ("name", "labels", "annotations")}
    again["metadata"] = {**metadata, "namespace": team.name}
    team.api.create(again)
    assert is_held(team.workflow(name))
    wait_for_workflow(team, name, "Pending")
    set_queue(team, quota={})
    team.wait_for_success(name)
    # Of the two steps only the one that had failed.
    assert len(executors(team)) == 1


def test_a_queue_that_is_replaced_frees_nobody(queueing, team):
    """A run whose queue is deleted for good just after that begins; by then this one would have."""
    with team_of(queueing) as other:
        set_queue(other, quota={"runs": 0})
        name, freed = held(team), held(other)
        for _ in range(3):
            team.api.delete(a_queue(team.name))
            set_queue(team, quota={"runs": 0})
        team.api.delete(a_queue(other.name))
        wait_until(lambda: not is_held(other.workflow(freed)), f"{freed} to begin")
        assert is_held(team.workflow(name))
        other.wait_for_end(freed)


@contextlib.contextmanager
def edited(team: Team, name: str) -> Iterator[list[str]]:
    """Somebody writes an annotation into a Workflow all the time; yields the values."""
    values: list[str] = []
    over = threading.Event()

    def edit() -> None:
        while not over.is_set():
            values.append(f"edit-{len(values)}")
            annotations = {"annotations": {"edited": values[-1]}}
            team.api.patch(team.workflow(name), {"metadata": annotations})

    thread = threading.Thread(target=edit)
    thread.start()
    try:
        yield values
    finally:
        over.set()
        thread.join()


def test_edits_while_a_run_is_released_are_kept_and_it_begins(team):
    name = held(team)
    with edited(team, name) as values:
        wait_until(lambda: len(values) > 3, "edits")
        set_queue(team, quota={})
        released(team, name)
        team.wait_for_success(name)
    ended = team.workflow(name)
    assert ended["metadata"]["annotations"]["edited"] == values[-1]
    assert not is_held(ended)
    assert ended["status"]["phase"] == "Succeeded"


def test_a_namespace_that_is_deleted_while_runs_wait_leaves_nothing(queueing, team):
    with team_of(queueing) as other:
        set_queue(other, quota={"runs": 0})
        held(other)
        namespace = team.api.get("v1", "Namespace", other.name)
        team.api.delete(namespace)
        wait_until(
            lambda: team.api.find("v1", "Namespace", other.name) is None, "it to be gone", 60
        )
        assert team.api.list(ARGO_VERSION, "Workflow", other.name) == []
        assert team.api.list("v1", "Pod", other.name) == []
        for kind in ("RunRequest", "RunQueue"):
            assert team.api.list(API_VERSION, kind, other.name) == []
    # The queue goes on to work for others.
    held(team)
    wait_until(lambda: status(team)["waiting"] == 1, "it to be counted")


def seconds_until(condition: Callable[[], object], what: str) -> float:
    began = time.monotonic()
    wait_until(condition, what)
    return time.monotonic() - began


def test_runs_that_wait_begin_end_and_go_on_soon(team):
    times: dict[str, tuple[float, float]] = {}
    first = held(team)
    annotate(team, first, "admit")
    released(team, first)
    seconds = seconds_until(lambda: team.pods(), "its first pod")
    times["first pod after the release"] = (seconds, 1.0)
    team.wait_for_success(first)
    housekeeping.delete_pods(team.api, team.name)

    ended = held(team)
    team.api.patch(team.workflow(ended), {"spec": {"activeDeadlineSeconds": 0}})
    seconds = seconds_until(lambda: phase(team.workflow(ended)) == "Failed", "its end")
    times["terminated while held"] = (seconds, 3.0)
    assert team.pods() == []

    name = stopped(team)
    before = {pod["metadata"]["name"] for pod in team.pods()}
    annotate(team, name, "admit")
    wait_until(lambda: not is_suspended(team, name), "it to go on")
    seconds = seconds_until(
        lambda: {pod["metadata"]["name"] for pod in team.pods()} - before, "its next pod"
    )
    times["next pod after the suspension"] = (seconds, 3.0)
    team.wait_for_success(name)
    for what, (seconds, most) in times.items():
        print(f"{what}: {seconds:.2f} s, {most:g} s required")
    assert [what for what, (seconds, most) in times.items() if seconds > BUSY * most] == []
