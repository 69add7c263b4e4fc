"""What the recordings do not show: failures, retries, widths, limits, refusals, deadlines.

Expected from KFP's facts and Argo's documentation, by hand.
"""

import pytest

from tests.controlplane.argo.exceptions import Refusal
from tests.controlplane.argo.memory import MemoryCluster
from tests.controlplane.argo.playing import Player
from tests.controlplane.argo.small_workflows import (
    NO_DEFAULTS,
    arguments,
    dag,
    step,
    task,
    workflow,
)


def phases(player):
    return {name: node["phase"] for name, node in player.nodes().items()}


def two_steps(**spec):
    tasks = (task("a"), task("b", depends="a.Succeeded"))
    return workflow(dag("main", *tasks), step(), **spec)


def without_defaults(*tasks, template=None, **fields):
    """A player of a DAG that nobody has looked at yet; no step has a default retry strategy."""
    run = workflow(dag("main", *tasks, **fields), template or step())
    return Player(run, settings=NO_DEFAULTS)


@pytest.fixture
def player():
    """A player of two steps, of which the first waits for its node."""
    made = Player(two_steps())
    made.settle()
    return made


def run_first(player):
    """Let the only pod run; returns its name."""
    (name,) = player.cluster.pods
    player.cluster.run(name)
    player.settle()
    return name


def test_without_defaults_no_name_has_an_attempt():
    player = Player(two_steps(), settings=NO_DEFAULTS)

    player.play()

    assert list(player.pods()) == [".a", ".b"]
    assert phases(player) == {"": "Succeeded", ".a": "Succeeded", ".b": "Succeeded"}
    assert player.nodes()[""]["children"] == [player.nodes()[".a"]["id"]]
    assert player.nodes()[".a"]["children"] == [player.nodes()[".b"]["id"]]


def test_a_completed_workflow_is_left_alone():
    player = Player(two_steps(), settings=NO_DEFAULTS)
    player.play()
    looks = player.looks

    player.wait(60)

    assert player.looks == looks + 1


def test_a_held_workflow_gets_nothing():
    held = two_steps()
    held["metadata"]["labels"] = {"workflows.argoproj.io/controller-instanceid": "x"}
    player = Player(held)

    player.settle()

    assert not player.cluster.pods
    assert player.workflow["status"] == {}


def test_failure_of_user_code_is_not_retried_by_kfp_defaults(player):
    player.cluster.fail(player.pods()["(0).a(0)"])
    player.settle()

    assert player.phase == "Failed"
    assert phases(player)["(0).a(0)"] == "Failed"
    assert phases(player)["(0).b"] == "Omitted"
    assert "(0).a(1)" not in player.nodes()
    assert player.nodes()["(0).a"]["message"] == "main: Error (exit code 1)"


def test_a_pod_rejected_by_a_kubelet_is_failed_and_not_retried(player):
    player.cluster.fail(player.pods()["(0).a(0)"], "Pod was rejected: OutOfcpu")
    player.settle()

    assert player.nodes()["(0).a(0)"]["message"] == "Pod was rejected: OutOfcpu"
    assert player.phase == "Failed"


def test_a_running_pod_that_is_gone_is_an_error_and_retried(player):
    name = run_first(player)

    del player.cluster.pods[name]
    player.wait(11)

    assert phases(player)["(0).a(0)"] == "Error"
    assert player.nodes()["(0).a(0)"]["message"] == "pod deleted"
    assert list(player.pods()) == ["(0).a(1)"]
    player.play()
    assert player.phase == "Succeeded"
    assert list(player.pods()) == ["(0).a(1)", "(0).b(0)"]


def test_a_pod_that_the_garbage_collector_fails_and_removes_is_gone(player):
    name = run_first(player)

    pod = player.cluster.pods[name]
    pod["metadata"]["deletionTimestamp"] = "2026-01-05T08:00:01Z"
    pod["status"] = {"phase": "Failed"}
    player.wait(11)
    assert phases(player)["(0).a(0)"] == "Running"
    del player.cluster.pods[name]
    player.wait(1)
    assert player.nodes()["(0).a(0)"]["message"] == "pod deleted"
    assert list(player.pods()) == ["(0).a(1)"]


def test_a_pod_that_is_gone_seconds_after_its_start_is_created_again(player):
    """The controller takes it for one that its watch has not shown yet."""
    name = run_first(player)

    del player.cluster.pods[name]
    player.wait(5)

    assert list(player.pods()) == ["(0).a(0)"]
    assert phases(player)["(0).a(0)"] == "Pending"


def test_without_defaults_a_deleted_running_pod_ends_the_run():
    player = Player(two_steps(), settings=NO_DEFAULTS)
    player.settle()

    del player.cluster.pods[run_first(player)]
    player.wait(11)

    assert player.phase == "Error"
    assert phases(player)[".b"] == "Omitted"


def test_a_pending_pod_that_is_gone_is_created_again(player):
    name = player.pods()["(0).a(0)"]

    del player.cluster.pods[name]
    player.settle()

    assert list(player.cluster.pods) == [name]
    assert phases(player)["(0).a(0)"] == "Pending"


@pytest.mark.parametrize(
    ("policy", "attempts"), [(None, 3), ("Always", 3), ("OnFailure", 3), ("OnError", 1)]
)
def test_a_step_that_always_fails_is_tried_as_often_as_its_policy_says(policy, attempts):
    strategy = {"limit": "2"} | ({"retryPolicy": policy} if policy else {})
    player = without_defaults(task("a"), template=step(retryStrategy=strategy))
    player.settle()
    while player.open_pods():
        player.cluster.fail(player.open_pods()[0])
        player.settle()

    assert list(player.pods()) == [f".a({number})" for number in range(attempts)]
    assert player.phase == "Failed"


def test_backoff_grows_and_is_waited_for():
    strategy = {"limit": 2, "backoff": {"duration": "10", "factor": "2"}}
    player = without_defaults(task("a"), template=step(retryStrategy=strategy))
    player.settle()
    player.cluster.fail(player.pods()[".a(0)"])
    player.settle()
    assert player.requeue_seconds == 10
    assert player.nodes()[".a"]["message"] == "Backoff for 10 seconds"
    player.wait(9)
    assert ".a(1)" not in player.nodes()
    player.wait(1)
    player.cluster.fail(player.pods()[".a(1)"])
    player.settle()

    assert player.requeue_seconds == 20


@pytest.mark.parametrize("width", [0, 1, 5])
def test_loops_have_the_width_their_driver_says(width):
    loop = task("each", withSequence={"count": str(width)}, arguments=arguments(n="{{item}}"))
    player = without_defaults(loop, template=step(inputs={"parameters": [{"name": "n"}]}))

    player.play()

    assert list(player.pods()) == [f".each({n}:{n})" for n in range(width)]
    assert phases(player)[".each"] == ("Succeeded" if width else "Skipped")
    assert player.phase == "Succeeded"


def test_template_parallelism_limits_a_loop():
    loop = task("each", withSequence={"count": "3"})
    player = without_defaults(loop, parallelism=2)
    player.settle()
    assert list(player.pods()) == [".each(0:0)", ".each(1:1)"]

    player.complete(player.pods()[".each(1:1)"])
    assert list(player.pods()) == [".each(0:0)", ".each(1:1)", ".each(2:2)"]
    player.play()

    assert player.phase == "Succeeded"


@pytest.mark.parametrize(("decision", "runs"), [("true", False), ("false", True)])
def test_a_cached_step_has_no_pod_and_its_successors_go_on(decision, runs):
    inside = task("executor", when="{{inputs.parameters.cached-decision}} != true")
    cached = dag("cached", inside, inputs={"parameters": [{"name": "cached-decision"}]})
    tasks = (
        task("a", "cached", arguments=arguments(**{"cached-decision": decision})),
        task("b", depends="a.Succeeded"),
    )
    player = Player(workflow(dag("main", *tasks), cached, step()))

    player.play()

    assert ("(0).a(0).executor(0)" in player.pods()) == runs
    assert phases(player)["(0).a"] == "Succeeded"
    assert "(0).b(0)" in player.pods()
    if not runs:
        assert player.nodes()["(0).a(0).executor"]["type"] == "Skipped"
        message = "when 'true != true' evaluated false"
        assert player.nodes()["(0).a(0).executor"]["message"] == message


def test_a_false_condition_skips_and_what_needs_success_is_omitted():
    tasks = (
        task("a", when="false != false"),
        task("b", depends="a.Succeeded"),
        task("c", depends="a"),
    )
    player = without_defaults(*tasks)

    player.play()

    assert phases(player) == {"": "Succeeded", ".a": "Skipped", ".b": "Omitted", ".c": "Succeeded"}


@pytest.mark.parametrize("fails", [True, False])
def test_exit_hooks_run_however_their_task_ends(fails):
    watched = task("a", hooks={"exit": {"template": "work"}})
    player = without_defaults(watched)
    player.settle()
    name = player.pods()[".a"]
    if fails:
        player.cluster.fail(name)
    else:
        player.cluster.succeed(name)
    player.settle()
    assert list(player.pods()) == [".a", ".a.onExit"]
    assert player.phase == "Running"
    hook = player.cluster.pods[player.pods()[".a.onExit"]]
    assert hook["metadata"]["labels"]["workflows.argoproj.io/on-exit"] == "true"
    player.play()

    assert player.phase == ("Failed" if fails else "Succeeded")
    assert player.nodes()[".a.onExit"]["nodeFlag"] == {"hooked": True}


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
    player = Player(two_steps(), cluster=cluster)
    player.settle()
    node = player.nodes()["(0).a(0)"]
    assert node["phase"] == "Pending"
    assert "exceeded quota" in node["message"]
    assert player.requeue_seconds is not None

    cluster.full = False
    player.wait(5)
    assert list(player.pods()) == ["(0).a(0)"]
    player.play()

    assert player.phase == "Succeeded"


def test_other_refusals_are_errors_and_retried_at_once():
    class Refusing(MemoryCluster):
        def create_pod(self, pod):
            raise Refusal(422, "Invalid", "spec.containers[1].image: Required value")

    player = Player(workflow(dag("main", task("a")), step()), cluster=Refusing())
    player.settle()

    assert player.phase == "Error"
    assert [name for name in phases(player) if name.startswith("(0).a(")] == [
        "(0).a(0)",
        "(0).a(1)",
        "(0).a(2)",
    ]
    assert phases(player)["(2)"] == "Error"


def test_a_claim_is_made_before_the_first_pod_and_removed_after_success():
    claim = {"metadata": {"name": "kfp-workspace"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    player = Player(two_steps(volumeClaimTemplates=[claim]))
    player.settle()
    assert list(player.cluster.claims) == ["wf-kfp-workspace"]
    made = player.cluster.claims["wf-kfp-workspace"]["metadata"]
    assert made["ownerReferences"][0]["name"] == "wf"
    assert player.workflow["status"]["persistentVolumeClaims"] == [
        {"name": "kfp-workspace", "persistentVolumeClaim": {"claimName": "wf-kfp-workspace"}}
    ]
    player.play()

    assert not player.cluster.claims


def test_a_suspended_workflow_runs_its_pods_on_but_starts_none(player):
    player.workflow["spec"] = {**player.workflow["spec"], "suspend": True}
    player.complete(player.pods()["(0).a(0)"])
    assert list(player.pods()) == ["(0).a(0)"]
    assert phases(player)["(0).a(0)"] == "Succeeded"

    player.workflow["spec"] = {**player.workflow["spec"], "suspend": None}
    player.settle()

    assert list(player.pods()) == ["(0).a(0)", "(0).b(0)"]


def test_the_deadline_ends_what_runs_and_what_waits():
    player = Player(two_steps(activeDeadlineSeconds=60))
    player.settle()
    name = player.pods()["(0).a(0)"]
    assert player.cluster.pods[name]["spec"]["activeDeadlineSeconds"] == 60
    player.cluster.run(name)
    player.wait(61)

    assert player.cluster.ended == [name]
    assert player.nodes()["(0).a(0)"]["message"] == "Step exceeded its deadline"
    assert player.phase == "Failed"


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
    player = Player(workflow(dag("main", *tasks), says, hears), settings=NO_DEFAULTS)
    player.settle()
    name = player.pods()[".a"]
    ended = {"name": "main", "state": {"terminated": {"exitCode": 0}}}
    player.cluster.pods[name]["status"] = {"phase": "Succeeded", "containerStatuses": [ended]}
    player.settle()
    assert phases(player)[".a"] == "Pending", "its exit code is known, its outputs are not"

    player.cluster.report(name, {"x": "42"})
    player.settle()

    assert player.cluster.pods[player.pods()[".b"]]["metadata"]["labels"]["heard"] == "42"
