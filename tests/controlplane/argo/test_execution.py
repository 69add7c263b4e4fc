"""Execution beyond the recordings: failures, retries, widths, limits, refusals, deadlines.

Expected from KFP's facts and Argo's documentation, by hand.
"""

import pytest

from tests.controlplane.argo.exceptions import Refusal
from tests.controlplane.argo.memory import MemoryCluster
from tests.controlplane.argo.simulated_workflow import SimulatedWorkflow
from tests.controlplane.argo.small_workflows import (
    NO_DEFAULTS,
    arguments,
    dag,
    step,
    task,
    workflow,
)


def phases(simulated):
    return {name: node["phase"] for name, node in simulated.nodes().items()}


def two_steps(**spec):
    tasks = (task("a"), task("b", depends="a.Succeeded"))
    return workflow(dag("main", *tasks), step(), **spec)


def without_defaults(*tasks, template=None, **fields):
    """A simulated DAG that nobody has looked at yet; no step has a default retry strategy."""
    run = workflow(dag("main", *tasks, **fields), template or step())
    return SimulatedWorkflow(run, settings=NO_DEFAULTS)


@pytest.fixture
def simulated():
    """Two simulated steps, of which the first waits for its node."""
    made = SimulatedWorkflow(two_steps())
    made.settle()
    return made


def run_first(simulated):
    """Let the only pod run; returns its name."""
    (name,) = simulated.cluster.pods
    simulated.cluster.run(name)
    simulated.settle()
    return name


def test_without_defaults_no_name_has_an_attempt():
    simulated = SimulatedWorkflow(two_steps(), settings=NO_DEFAULTS)

    simulated.complete_all()

    assert list(simulated.pods()) == [".a", ".b"]
    assert phases(simulated) == {"": "Succeeded", ".a": "Succeeded", ".b": "Succeeded"}
    assert simulated.nodes()[""]["children"] == [simulated.nodes()[".a"]["id"]]
    assert simulated.nodes()[".a"]["children"] == [simulated.nodes()[".b"]["id"]]


def test_a_completed_workflow_is_left_alone():
    simulated = SimulatedWorkflow(two_steps(), settings=NO_DEFAULTS)
    simulated.complete_all()
    looks = simulated.looks

    simulated.wait(60)

    assert simulated.looks == looks + 1


def test_a_held_workflow_gets_nothing():
    held = two_steps()
    held["metadata"]["labels"] = {"workflows.argoproj.io/controller-instanceid": "x"}
    simulated = SimulatedWorkflow(held)

    simulated.settle()

    assert not simulated.cluster.pods
    assert simulated.workflow["status"] == {}


def test_failure_of_user_code_is_not_retried_by_kfp_defaults(simulated):
    simulated.cluster.fail(simulated.pods()["(0).a(0)"])
    simulated.settle()

    assert simulated.phase == "Failed"
    assert phases(simulated)["(0).a(0)"] == "Failed"
    assert phases(simulated)["(0).b"] == "Omitted"
    assert "(0).a(1)" not in simulated.nodes()
    assert simulated.nodes()["(0).a"]["message"] == "main: Error (exit code 1)"


def test_a_pod_rejected_by_a_kubelet_is_failed_and_not_retried(simulated):
    simulated.cluster.fail(simulated.pods()["(0).a(0)"], "Pod was rejected: OutOfcpu")
    simulated.settle()

    assert simulated.nodes()["(0).a(0)"]["message"] == "Pod was rejected: OutOfcpu"
    assert simulated.phase == "Failed"


def test_a_running_pod_that_is_gone_is_an_error_and_retried(simulated):
    name = run_first(simulated)

    del simulated.cluster.pods[name]
    simulated.wait(11)

    assert phases(simulated)["(0).a(0)"] == "Error"
    assert simulated.nodes()["(0).a(0)"]["message"] == "pod deleted"
    assert list(simulated.pods()) == ["(0).a(1)"]
    simulated.complete_all()
    assert simulated.phase == "Succeeded"
    assert list(simulated.pods()) == ["(0).a(1)", "(0).b(0)"]


def test_a_pod_that_the_garbage_collector_fails_and_removes_is_gone(simulated):
    name = run_first(simulated)

    pod = simulated.cluster.pods[name]
    pod["metadata"]["deletionTimestamp"] = "2026-01-05T08:00:01Z"
    pod["status"] = {"phase": "Failed"}
    simulated.wait(11)
    assert phases(simulated)["(0).a(0)"] == "Running"
    del simulated.cluster.pods[name]
    simulated.wait(1)
    assert simulated.nodes()["(0).a(0)"]["message"] == "pod deleted"
    assert list(simulated.pods()) == ["(0).a(1)"]


def test_a_pod_that_is_gone_seconds_after_its_start_is_created_again(simulated):
    """The controller takes it for one that its watch has not shown yet."""
    name = run_first(simulated)

    del simulated.cluster.pods[name]
    simulated.wait(5)

    assert list(simulated.pods()) == ["(0).a(0)"]
    assert phases(simulated)["(0).a(0)"] == "Pending"


def test_without_defaults_a_deleted_running_pod_ends_the_run():
    simulated = SimulatedWorkflow(two_steps(), settings=NO_DEFAULTS)
    simulated.settle()

    del simulated.cluster.pods[run_first(simulated)]
    simulated.wait(11)

    assert simulated.phase == "Error"
    assert phases(simulated)[".b"] == "Omitted"


def test_a_pending_pod_that_is_gone_is_created_again(simulated):
    name = simulated.pods()["(0).a(0)"]

    del simulated.cluster.pods[name]
    simulated.settle()

    assert list(simulated.cluster.pods) == [name]
    assert phases(simulated)["(0).a(0)"] == "Pending"


@pytest.mark.parametrize(
    ("policy", "attempts"), [(None, 3), ("Always", 3), ("OnFailure", 3), ("OnError", 1)]
)
def test_a_step_that_always_fails_is_tried_as_often_as_its_policy_says(policy, attempts):
    strategy = {"limit": "2"} | ({"retryPolicy": policy} if policy else {})
    simulated = without_defaults(task("a"), template=step(retryStrategy=strategy))
    simulated.settle()
    while simulated.open_pods():
        simulated.cluster.fail(simulated.open_pods()[0])
        simulated.settle()

    assert list(simulated.pods()) == [f".a({number})" for number in range(attempts)]
    assert simulated.phase == "Failed"


def test_backoff_grows_and_is_waited_for():
    strategy = {"limit": 2, "backoff": {"duration": "10", "factor": "2"}}
    simulated = without_defaults(task("a"), template=step(retryStrategy=strategy))
    simulated.settle()
    simulated.cluster.fail(simulated.pods()[".a(0)"])
    simulated.settle()
    assert simulated.requeue_seconds == 10
    assert simulated.nodes()[".a"]["message"] == "Backoff for 10 seconds"
    simulated.wait(9)
    assert ".a(1)" not in simulated.nodes()
    simulated.wait(1)
    simulated.cluster.fail(simulated.pods()[".a(1)"])
    simulated.settle()

    assert simulated.requeue_seconds == 20


@pytest.mark.parametrize("width", [0, 1, 5])
def test_loops_have_the_width_their_driver_says(width):
    loop = task("each", withSequence={"count": str(width)}, arguments=arguments(n="{{item}}"))
    simulated = without_defaults(loop, template=step(inputs={"parameters": [{"name": "n"}]}))

    simulated.complete_all()

    assert list(simulated.pods()) == [f".each({n}:{n})" for n in range(width)]
    assert phases(simulated)[".each"] == ("Succeeded" if width else "Skipped")
    assert simulated.phase == "Succeeded"


def test_template_parallelism_limits_a_loop():
    loop = task("each", withSequence={"count": "3"})
    simulated = without_defaults(loop, parallelism=2)
    simulated.settle()
    assert list(simulated.pods()) == [".each(0:0)", ".each(1:1)"]

    simulated.complete(simulated.pods()[".each(1:1)"])
    assert list(simulated.pods()) == [".each(0:0)", ".each(1:1)", ".each(2:2)"]
    simulated.complete_all()

    assert simulated.phase == "Succeeded"


@pytest.mark.parametrize(("decision", "runs"), [("true", False), ("false", True)])
def test_a_cached_step_has_no_pod_and_its_successors_go_on(decision, runs):
    inside = task("executor", when="{{inputs.parameters.cached-decision}} != true")
    cached = dag("cached", inside, inputs={"parameters": [{"name": "cached-decision"}]})
    tasks = (
        task("a", "cached", arguments=arguments(**{"cached-decision": decision})),
        task("b", depends="a.Succeeded"),
    )
    simulated = SimulatedWorkflow(workflow(dag("main", *tasks), cached, step()))

    simulated.complete_all()

    assert ("(0).a(0).executor(0)" in simulated.pods()) == runs
    assert phases(simulated)["(0).a"] == "Succeeded"
    assert "(0).b(0)" in simulated.pods()
    if not runs:
        assert simulated.nodes()["(0).a(0).executor"]["type"] == "Skipped"
        message = "when 'true != true' evaluated false"
        assert simulated.nodes()["(0).a(0).executor"]["message"] == message


def test_a_false_condition_skips_and_what_needs_success_is_omitted():
    tasks = (
        task("a", when="false != false"),
        task("b", depends="a.Succeeded"),
        task("c", depends="a"),
    )
    simulated = without_defaults(*tasks)

    simulated.complete_all()

    assert phases(simulated) == {
        "": "Succeeded",
        ".a": "Skipped",
        ".b": "Omitted",
        ".c": "Succeeded",
    }


@pytest.mark.parametrize("fails", [True, False])
def test_exit_hooks_run_however_their_task_ends(fails):
    watched = task("a", hooks={"exit": {"template": "work"}})
    simulated = without_defaults(watched)
    simulated.settle()
    name = simulated.pods()[".a"]
    if fails:
        simulated.cluster.fail(name)
    else:
        simulated.cluster.succeed(name)
    simulated.settle()
    assert list(simulated.pods()) == [".a", ".a.onExit"]
    assert simulated.phase == "Running"
    hook = simulated.cluster.pods[simulated.pods()[".a.onExit"]]
    assert hook["metadata"]["labels"]["workflows.argoproj.io/on-exit"] == "true"
    simulated.complete_all()

    assert simulated.phase == ("Failed" if fails else "Succeeded")
    assert simulated.nodes()[".a.onExit"]["nodeFlag"] == {"hooked": True}


class FullQuota(MemoryCluster):
    """A namespace whose quota is used up at first."""

    full = True

    def create_pod(self, pod):
        if self.full:
            name = pod["metadata"]["name"]
            message = f'pods "{name}" is forbidden: exceeded quota: q, requested: cpu=1'
            raise Refusal(403, "Forbidden", message)
        super().create_pod(pod)


def test_a_full_quota_leaves_the_step_pending_and_is_tried_again():
    cluster = FullQuota()
    simulated = SimulatedWorkflow(two_steps(), cluster=cluster)
    simulated.settle()
    node = simulated.nodes()["(0).a(0)"]
    assert node["phase"] == "Pending"
    assert "exceeded quota" in node["message"]
    assert simulated.requeue_seconds is not None

    cluster.full = False
    simulated.wait(5)
    assert list(simulated.pods()) == ["(0).a(0)"]
    simulated.complete_all()

    assert simulated.phase == "Succeeded"


def test_other_refusals_are_errors_and_retried_at_once():
    class Refusing(MemoryCluster):
        def create_pod(self, pod):
            raise Refusal(422, "Invalid", "spec.containers[1].image: Required value")

    simulated = SimulatedWorkflow(workflow(dag("main", task("a")), step()), cluster=Refusing())
    simulated.settle()

    assert simulated.phase == "Error"
    assert [name for name in phases(simulated) if name.startswith("(0).a(")] == [
        "(0).a(0)",
        "(0).a(1)",
        "(0).a(2)",
    ]
    assert phases(simulated)["(2)"] == "Error"


def test_a_claim_is_made_before_the_first_pod_and_removed_after_success():
    claim = {"metadata": {"name": "kfp-workspace"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    simulated = SimulatedWorkflow(two_steps(volumeClaimTemplates=[claim]))
    simulated.settle()
    assert list(simulated.cluster.claims) == ["wf-kfp-workspace"]
    made = simulated.cluster.claims["wf-kfp-workspace"]["metadata"]
    assert made["ownerReferences"][0]["name"] == "wf"
    assert simulated.workflow["status"]["persistentVolumeClaims"] == [
        {"name": "kfp-workspace", "persistentVolumeClaim": {"claimName": "wf-kfp-workspace"}}
    ]
    simulated.complete_all()

    assert not simulated.cluster.claims


def test_a_suspended_workflow_runs_its_pods_on_but_starts_none(simulated):
    simulated.workflow["spec"] = {**simulated.workflow["spec"], "suspend": True}
    simulated.complete(simulated.pods()["(0).a(0)"])
    assert list(simulated.pods()) == ["(0).a(0)"]
    assert phases(simulated)["(0).a(0)"] == "Succeeded"

    simulated.workflow["spec"] = {**simulated.workflow["spec"], "suspend": None}
    simulated.settle()

    assert list(simulated.pods()) == ["(0).a(0)", "(0).b(0)"]


def test_the_deadline_ends_what_runs_and_what_waits():
    simulated = SimulatedWorkflow(two_steps(activeDeadlineSeconds=60))
    simulated.settle()
    name = simulated.pods()["(0).a(0)"]
    assert simulated.cluster.pods[name]["spec"]["activeDeadlineSeconds"] == 60
    simulated.cluster.run(name)
    simulated.wait(61)

    assert simulated.cluster.ended == [name]
    assert simulated.nodes()["(0).a(0)"]["message"] == "Step exceeded its deadline"
    assert simulated.phase == "Failed"


def test_outputs_that_are_declared_are_waited_for():
    output = {"name": "x", "valueFrom": {"path": "/tmp/x"}}
    says = step("says", outputs={"parameters": [output]})
    hears = step("hears", inputs={"parameters": [{"name": "x"}]})
    hears["metadata"] = {"labels": {"heard": "{{inputs.parameters.x}}"}}
    value = "{{tasks.a.outputs.parameters.x}}"
    tasks = (
        task("a", "says"),
        task("b", "hears", depends="a.Succeeded", arguments=arguments(x=value)),
    )
    simulated = SimulatedWorkflow(workflow(dag("main", *tasks), says, hears), settings=NO_DEFAULTS)
    simulated.settle()
    name = simulated.pods()[".a"]
    ended = {"name": "main", "state": {"terminated": {"exitCode": 0}}}
    simulated.cluster.pods[name]["status"] = {"phase": "Succeeded", "containerStatuses": [ended]}
    simulated.settle()
    assert phases(simulated)[".a"] == "Pending", "its exit code is known, its outputs are not"

    simulated.cluster.report(name, {"x": "42"})
    simulated.settle()

    assert simulated.cluster.pods[simulated.pods()[".b"]]["metadata"]["labels"]["heard"] == "42"
