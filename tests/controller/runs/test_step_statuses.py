"""What became of a step: pods say where and when, Argo's nodes say how it ended."""

from dataclasses import replace

import pytest

from kfp_placement_controller.observed.attach_failures import AttachFailure
from kfp_placement_controller.observed.gate_deadlines import StartWindow
from kfp_placement_controller.observed.pods import ReasonAndMessage
from kfp_placement_controller.runs.attach_failures import AttachFailures
from kfp_placement_controller.runs.run_pods import RunPods, moment
from kfp_placement_controller.runs.step_statuses import RunSituation, step_progress, step_statuses
from kfp_placement_controller.runs.waiting import UNSATISFIABLE, start_window, waits_for
from kfp_placement_controller.sources.argo.workflows import WorkflowIndex
from kfp_placement_controller.sources.source import RunEnd, RunState
from kfp_placement_engine.contract.keys import PLAN_GATE
from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.run_graph import (
    Group,
    GroupKind,
    RunGraph,
    StartLimit,
    Step,
    StepKind,
)
from kfp_placement_engine.model.step_state import StepState, WaitingFor
from kfp_placement_engine.readers.tree.run_outcomes import (
    PodIdentity,
    PodRole,
    RunOutcome,
    StepOutcome,
)
from kfp_placement_kube.change import Change
from tests.controller.planning.builders import START, a_pod, a_run_pod, after

GRAPH = RunGraph(
    "run",
    "argo-workflow",
    (Step("train", "train", attempt_limit=2, has_driver=True),),
    (Group("", GroupKind.ROOT),),
    workflow="run",
)
EXECUTOR = "run(0).root(0).train(0).executor({})"
DRIVER = "run(0).root(0).train-driver(0)"


def status(*pods, seconds=10.0, seen=None, outcome=None, attach_failures=None, **state):
    """The status of `train` after these pods, each with the time it was seen."""
    run_pods = RunPods()
    run_pods.use_index(WorkflowIndex(GRAPH))
    for number, pod in enumerate(pods):
        run_pods.observe(pod, after(number if seen is None else seen[number]))
    outcomes = RunOutcome({} if outcome is None else {"train": outcome})
    failures = attach_failures or AttachFailures()
    situation = RunSituation(outcomes, RunState(**state), 60.0, failures)
    statuses = step_statuses(GRAPH, run_pods, situation, after(seconds))
    return statuses["train"]


def executor(attempt=0, **fields):
    name = fields.pop("name", f"e{attempt}")
    return a_pod(name, argo_node_name=EXECUTOR.format(attempt), **fields)


def test_without_pods_it_is_pending():
    assert status().state is StepState.PENDING


def test_a_bound_pod_runs_from_its_bind_on():
    train = status(executor(), executor(node_name="n1"), seen=[0, 3.25])
    assert (train.state, train.node) == (StepState.RUNNING, "n1")
    assert train.started_at == after(3.25)
    progress = step_progress(train, after(10))
    assert progress.state is ProgressState.RUNNING
    assert progress.seconds_since_start == 6.75


def test_a_pod_that_has_succeeded_ends_the_step_before_the_workflow_says_so():
    running = StepOutcome(StepState.RUNNING, 1)
    ended = executor(node_name="n1", phase="Succeeded", finished_at=after(8))
    train = status(executor(node_name="n1"), ended, seen=[2, 8.5], outcome=running)
    assert (train.state, train.ended_at) == (StepState.SUCCEEDED, after(8.5))


def test_a_failed_attempt_is_not_the_end_while_argo_may_try_again():
    failed = executor(node_name="n1", phase="Failed")
    again = status(failed, outcome=StepOutcome(StepState.RUNNING, 1))
    assert again.state is StepState.PENDING
    assert again.driver.state is ProgressState.DONE
    second = status(failed, executor(1, node_name="n2"), outcome=StepOutcome(StepState.RUNNING, 2))
    assert (second.state, second.node) == (StepState.RUNNING, "n2")
    over = status(failed, outcome=StepOutcome(StepState.FAILED, 1, message="exit code 1"))
    assert (over.state, over.node, over.message) == (StepState.FAILED, "n1", "exit code 1")


def test_without_argos_nodes_a_failed_pod_is_the_end_until_another_comes():
    failed = executor(node_name="n1", phase="Failed")
    assert status(failed, unreadable="too large").state is StepState.FAILED
    second = executor(1, node_name="n2")
    train = status(failed, second, unreadable="too large")
    assert (train.state, train.node) == (StepState.RUNNING, "n2")


def test_the_kubelets_words_say_why_a_pod_failed():
    failure = ReasonAndMessage("OutOfcpu", "Node didn't have enough resource: cpu")
    failed = executor(node_name="n1", phase="Failed", failure=failure)
    train = status(failed, outcome=StepOutcome(StepState.FAILED, 1, message="other words"))
    assert train.message == failure.message


@pytest.mark.parametrize("state", [StepState.CACHED, StepState.SKIPPED])
def test_steps_without_a_pod_have_no_node(state):
    train = status(outcome=StepOutcome(state, finished_at=after(4)))
    assert (train.state, train.node, train.started_at) == (state, "", None)


def test_after_a_restart_the_node_comes_from_the_workflow():
    outcome = StepOutcome(StepState.SUCCEEDED, 1, after(2), after(9), "n3")
    train = status(outcome=outcome)
    assert (train.node, train.started_at, train.ended_at) == ("n3", after(2), after(9))


@pytest.mark.parametrize(
    ("end", "expected"),
    [(RunEnd.SUCCEEDED, StepState.SUCCEEDED), (RunEnd.FAILED, StepState.FAILED)],
)
def test_what_runs_when_its_workflow_ends_ends_with_it(end, expected):
    train = status(executor(node_name="n1"), end=end, finished_at=after(7))
    assert (train.state, train.ended_at) == (expected, after(7))


def test_what_has_not_begun_when_its_workflow_ends_is_skipped():
    assert status(end=RunEnd.FAILED).state is StepState.SKIPPED
    assert status(executor(), end=RunEnd.FAILED).state is StepState.SKIPPED


def test_the_driver_of_a_waiting_step_is_told_to_the_planner():
    running = a_pod("d", argo_node_name=DRIVER, node_name="n2")
    train = status(running, seen=[4], seconds=6)
    driver = step_progress(train, after(6)).driver
    assert driver is not None
    assert (driver.state, driver.seconds_since_start) == (ProgressState.RUNNING, 2)


def test_the_finer_time_counts_where_both_are_close():
    assert moment(None, after(3.7)) == after(3.7)
    assert moment(after(3), after(3.7)) == after(3.7)
    assert moment(after(3), after(4.9)) == after(4)
    assert moment(after(3), after(100)) == after(3)
    assert moment(after(9), after(3)) == after(9)


def waits(message="", **fields):
    pod = a_run_pod(**fields) if fields else None
    return waits_for(pod, message, START, 60.0)


def test_our_gate_means_the_plan_and_has_an_end():
    waiting = waits(gates=("kueue.x-k8s.io/admission", PLAN_GATE))
    assert (waiting.what, waiting.since, waiting.until) == (WaitingFor.PLAN, START, after(60))


LIMIT = StartLimit(20.0, "pendingTimeout")
STEP = Step("work", "work", start_limit=LIMIT)
IDENTITY = PodIdentity("work", PodRole.EXECUTOR, is_group=False, iteration=(), attempt=1)


def test_a_limit_of_the_run_s_object_counts_where_the_pod_says_none():
    assert start_window(STEP, None, None) is None
    assert start_window(replace(STEP, start_limit=None), None, a_run_pod()) is None
    window = start_window(STEP, None, a_run_pod())
    assert window == StartWindow(LIMIT, START)
    own = StartLimit(30.0, "timeout")
    assert start_window(STEP, None, a_run_pod(start_limit=own)) == StartWindow(own, START)


@pytest.mark.parametrize(("attempts", "begins"), [(1, 0), (2, -5)])
def test_a_limit_counts_from_the_node_of_this_attempt(attempts, begins):
    """That of the attempt before has begun long before."""
    pod = replace(a_run_pod(), identity=IDENTITY)
    outcome = StepOutcome(StepState.PENDING, attempts, after(-5))
    window = start_window(STEP, outcome, pod)
    assert window is not None
    assert window.begins_at == after(begins)


@pytest.mark.parametrize(
    ("fields", "what", "until"),
    [
        ({"gates": (PLAN_GATE,)}, WaitingFor.PLAN, 10),
        ({"gates": ("kueue.x-k8s.io/admission",)}, WaitingFor.QUOTA, 20),
        ({"unscheduled": ReasonAndMessage("Unschedulable", "no cpu")}, WaitingFor.NODE, 20),
        (
            {"node_name": "n1", "bound_at": after(2), "waiting_reason": "ErrImagePull"},
            WaitingFor.IMAGE,
            20,
        ),
    ],
)
def test_whatever_a_pod_waits_for_its_limit_is_named_and_ends_the_wait(fields, what, until):
    pod = a_run_pod(**fields)
    waiting = waits_for(pod, "", START, 60.0, window=start_window(STEP, None, pod))
    assert waiting is not None
    assert (waiting.what, waiting.until) == (what, after(until))
    assert waiting.detail.endswith("Argo fails it unless it runs within 20s (pendingTimeout)")


def test_other_gates_mean_quota():
    waiting = waits(gates=("kueue.x-k8s.io/admission",))
    assert (waiting.what, waiting.until) == (WaitingFor.QUOTA, None)
    assert "kueue" in waiting.detail


def test_a_refused_pod_means_quota():
    message = 'pods "x" is forbidden: exceeded quota: team, requested: cpu=1'
    assert waits(message).what is WaitingFor.QUOTA
    assert waits("something else") is None


@pytest.mark.parametrize(
    ("message", "what"),
    [
        ("0/3 nodes are available: 3 Insufficient cpu.", WaitingFor.NODE),
        ("0/3 nodes are available: 1 node(s) had volume node affinity conflict", WaitingFor.VOLUME),
        ("pod has unbound immediate PersistentVolumeClaims", WaitingFor.VOLUME),
        ('persistentvolumeclaim "data" not found', WaitingFor.VOLUME),
    ],
)
def test_the_scheduler_says_what_an_unscheduled_pod_waits_for(message, what):
    waiting = waits(unscheduled=ReasonAndMessage("Unschedulable", message))
    assert (waiting.what, waiting.detail) == (what, message)
    assert waits(unscheduled=ReasonAndMessage("SchedulerError", message)) is None


def test_a_pod_that_no_node_was_near_enough_for_waits_for_its_limit_whatever_the_scheduler_says():
    unscheduled = ReasonAndMessage(
        "Unschedulable", "0/3 nodes are available: 3 node(s) didn't match node affinity"
    )
    waiting = waits(unscheduled=unscheduled, unsatisfiable=True)
    assert (waiting.what, waiting.detail) == (WaitingFor.LIMIT, UNSATISFIABLE)


def test_a_volume_that_is_not_attached_is_waited_for_until_the_pod_is_prepared():
    bound = {"node_name": "n1", "bound_at": after(2), "waiting_reason": "ContainerCreating"}
    attach_failure = 'Multi-Attach error for volume "pvc-1"'
    waiting = waits_for(a_run_pod(**bound), "", START, 60.0, attach_failure)
    assert waiting is not None
    assert (waiting.what, waiting.since, waiting.detail) == (
        WaitingFor.VOLUME,
        after(2),
        attach_failure,
    )
    for later in ({"prepared": True}, {"running_at": after(3)}):
        assert waits_for(a_run_pod(**{**bound, **later}), "", START, 60.0, attach_failure) is None
    pulls = a_run_pod(**{**bound, "waiting_reason": "ImagePullBackOff"})
    image = waits_for(pulls, "", START, 60.0, attach_failure)
    assert image is not None
    assert image.what is WaitingFor.IMAGE


def test_the_event_of_a_pod_is_found_by_its_uid_while_it_lasts():
    failures = AttachFailures()
    first, second = (
        AttachFailure("team", "uid-e0", "not yet"),
        AttachFailure("team", "uid-e0", "still not"),
    )
    failures.observe(Change(("team", "a"), None, first))
    failures.observe(Change(("team", "b"), None, AttachFailure("other", "uid-e0", "elsewhere")))
    pods = (executor(), executor(node_name="n1"))
    train = status(*pods, attach_failures=failures)
    assert (train.state, train.waiting.detail) == (StepState.WAITING, "not yet")
    failures.observe(Change(("team", "a"), first, second))
    assert status(*pods, attach_failures=failures).waiting.detail == "still not"
    failures.observe(Change(("team", "a"), second, None))
    assert status(*pods, attach_failures=failures).state is StepState.RUNNING


def test_an_image_that_cannot_be_pulled_is_waited_for_but_a_start_is_not():
    bound = {"node_name": "n1", "bound_at": after(2)}
    assert waits(waiting_reason="ContainerCreating", **bound) is None
    waiting = waits(waiting_reason="ImagePullBackOff", **bound)
    assert (waiting.what, waiting.since, waiting.detail) == (
        WaitingFor.IMAGE,
        after(2),
        "ImagePullBackOff",
    )
    assert waits(waiting_reason="ImagePullBackOff", running_at=after(3), **bound) is None


def test_a_pause_runs_without_pod_while_its_node_says_so():
    pause = replace(GRAPH, steps=(Step("train", "train", StepKind.SUSPEND),), groups=())

    def paused(outcome=None):
        outcomes = RunOutcome({} if outcome is None else {"train": outcome})
        situation = RunSituation(outcomes, RunState(), 60.0, AttachFailures())
        return step_statuses(pause, RunPods(), situation, after(10))["train"]

    waits = paused()
    assert (waits.state, step_progress(waits, after(10)).state) == (
        StepState.PENDING,
        ProgressState.WAITING,
    )
    runs = paused(StepOutcome(StepState.RUNNING, started_at=after(2)))
    progress = step_progress(runs, after(10))
    assert (progress.state, progress.node, progress.seconds_since_start) == (
        ProgressState.RUNNING,
        None,
        8.0,
    )
    ended = paused(StepOutcome(StepState.SUCCEEDED, started_at=after(2), finished_at=after(9)))
    assert (ended.started_at, ended.ended_at, ended.bound) == (after(2), after(9), False)
