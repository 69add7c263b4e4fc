import pytest

from kfp_placement.live.exceptions import (
    ClusterConflictError,
    ClusterForbiddenError,
    ClusterUnreachableError,
)
from kfp_placement.live.kinds import POLICIES, RUN_QUEUES, WORKFLOWS
from kfp_placement_engine.contract.keys import PREEMPTED_ANNOTATION, PREEMPTED_LABEL
from kfp_placement_kube.kinds import PODS
from tests.cli.live.conftest import placement
from tests.support.fake_cluster import executor_pod

OURS, THEIRS = "kfp-placement.dev/plan", "kueue.x-k8s.io/topology"


def a_policy(**spec):
    return {"kind": "PlacementPolicy", "metadata": {"name": "default"}, "spec": spec}


@pytest.fixture
def cluster(cluster):
    cluster.put(a_policy(paused=False))
    cluster.put(executor_pod("fetch", node="n1", phase="Running"))
    cluster.put(executor_pod("train", gates=(OURS, THEIRS)))
    cluster.put(executor_pod("other", run="other", namespace="team-b", gates=(OURS,)))
    return cluster


def gates(cluster, step, run="taxi-x7k2p", namespace="team-a"):
    spec = cluster.get(PODS, f"{run}-{step}", namespace)["spec"]
    return [gate["name"] for gate in spec.get("schedulingGates", [])]


def before_writing_train(cluster, happens):
    """Let this happen each time before the pod of `train` is written."""
    write = cluster.patch

    def patch(kind, name, *rest, **options):
        if name.endswith("train"):
            happens()
        return write(kind, name, *rest, **options)

    cluster.patch = patch


def paused(cluster):
    return cluster.get(POLICIES, "default")["spec"]["paused"]


def test_everything(live, cluster, golden):
    golden(live.output("release"), "first")
    assert paused(cluster)
    assert gates(cluster, "train") == [THEIRS]
    assert gates(cluster, "other", "other", "team-b") == []
    golden(live.output("release"), "again")
    assert paused(cluster)


def requiring(host):
    """Affinity as the planner gives it to a pod under a hard limit."""
    by_host = {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [by_host]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def test_a_pod_that_no_node_is_near_enough_for_is_named_since_nothing_frees_it(
    live, cluster, golden
):
    for step, host in (("near", "n1"), ("far", "no-node-within-1ms")):
        pod = executor_pod(step)
        pod["spec"]["affinity"] = requiring(host)
        cluster.put(pod)
    live("release")
    for arguments in ((), ("taxi-x7k2p", "-n", "team-a")):
        again = live("release", *arguments)
        assert again.exit_code == 1
        golden(again.stderr)
        assert again.stdout.endswith("0 pods released.\n")


def test_the_policy_is_paused_before_gates_come_off(live, cluster):
    live("release")
    assert [path.rpartition("/")[2] for path, _ in cluster.writes] == [
        "default",
        "taxi-x7k2p-train",
        "other-other",
    ]


def test_resume(live, cluster, golden):
    live("release")
    golden(live("release", "--resume").stdout, "first")
    assert not paused(cluster)
    golden(live("release", "--resume").stdout, "again")
    assert not paused(cluster)


def test_dry_run(live, cluster, golden):
    golden(live.output("release", "--dry-run"))
    assert not paused(cluster)
    assert gates(cluster, "train") == [OURS, THEIRS]
    live("release")
    golden(live("release", "--resume", "--dry-run").stdout, "--resume")
    assert paused(cluster)


def test_one_run(live, cluster, golden):
    assert (
        live.output("release", "taxi-x7k2p")
        == "released team-a/taxi-x7k2p-train\n1 pod released.\n"
    )
    assert not paused(cluster)
    assert gates(cluster, "train") == [THEIRS]
    assert gates(cluster, "other", "other", "team-b") == [OURS]
    assert live("release", "nothing").exit_code == 3
    golden(live.output("release", "taxi-x7k2p"))
    cluster.put(placement("other", "team-b"))
    assert "other-other" in live("release", "-n", "team-b", "other").stdout


@pytest.mark.parametrize(
    "arguments", [["--resume", "taxi-x7k2p"], ["-n", "team-a"], ["-A"]], ids=" ".join
)
def test_what_makes_no_sense(live, cluster, arguments):
    assert live("release", *arguments).exit_code == 2
    assert not cluster.writes


def test_there_was_no_policy(live, cluster, golden):
    cluster.remove(POLICIES, "default")
    golden(live("release", "--resume").stdout, "--resume")
    golden(live.output("release"))
    assert paused(cluster)


def test_a_policy_is_made_without_the_right_to_list_policies(live, cluster, monkeypatch):
    cluster.remove(POLICIES, "default")
    listed = cluster.pages

    def pages(kind, **chosen):
        if kind == POLICIES:
            raise ClusterForbiddenError("cannot list placementpolicies")
        return listed(kind, **chosen)

    monkeypatch.setattr(cluster, "pages", pages)
    assert live("release").exit_code == 0
    assert paused(cluster)


def test_there_is_no_controller(live, cluster, golden):
    """Gates that one has left behind are taken off all the same."""
    cluster.remove(POLICIES, "default")
    cluster.forget(POLICIES)
    result = live("release")
    assert result.exit_code == 3
    golden(result.stderr)
    assert gates(cluster, "train") == [THEIRS]
    assert live("release", "--resume").exit_code == 3


def test_the_controller_is_gone_and_gates_are_left(live, cluster, golden):
    cluster.remove(POLICIES, "default")
    cluster.create = lambda *_, **__: pytest.fail("created")
    cluster.refused[POLICIES.path()] = ClusterForbiddenError("placementpolicies is forbidden")
    result = live("release")
    assert result.exit_code == 1
    golden(result.stderr)
    assert gates(cluster, "train") == [THEIRS]


def test_pods_that_may_not_be_changed(live, cluster, golden):
    def refuse():
        raise ClusterForbiddenError("pods train is forbidden")

    before_writing_train(cluster, refuse)
    result = live("release")
    assert result.exit_code == 1
    assert "1 pod released." in result.stdout
    golden(result.stderr)


def test_somebody_else_writes_the_pod(live, cluster):
    conflicts = [ClusterConflictError("modified")] * 2

    def conflict():
        if conflicts:
            raise conflicts.pop()

    before_writing_train(cluster, conflict)
    assert live("release").exit_code == 0
    assert gates(cluster, "train") == [THEIRS]


def test_a_later_pod_of_the_same_name_is_not_the_one_that_was_listed(live, cluster, golden):
    """Another run's may have come in its place while we worked."""

    def replace_train():
        later = executor_pod("train", gates=(OURS,))
        later["metadata"]["uid"] = "later"
        cluster.put(later)
        raise ClusterConflictError("modified")

    before_writing_train(cluster, replace_train)
    stdout = live.output("release", "--dry-run")
    assert "taxi-x7k2p-train" not in stdout
    golden(stdout)


def test_somebody_else_never_stops(live, cluster, golden):
    def patch(kind, name, *rest, **options):
        if kind is PODS:
            raise ClusterConflictError("modified")
        return {}

    cluster.patch = patch
    result = live("release")
    assert result.exit_code == 1
    golden(result.stderr)


def test_pods_gated_while_we_worked(live, cluster):
    """Admission learns of the pause a moment later."""
    late = executor_pod("late", gates=(OURS,))
    before_writing_train(cluster, lambda: cluster.put(late))
    result = live("release")
    assert "released team-a/taxi-x7k2p-late" in result.stdout
    assert "3 pods released." in result.stdout


def test_no_answer(live, cluster):
    cluster.refused["/"] = ClusterUnreachableError("no answer")
    assert live("release").exit_code == 1


INSTANCE = "workflows.argoproj.io/controller-instanceid"


def put_workflow(cluster, metadata, **fields):
    """Put a Workflow into a cluster that has queues."""
    cluster.serve(RUN_QUEUES)
    uid = {"uid": f"uid-{metadata['name']}"}
    cluster.put(
        {"kind": "Workflow", "metadata": metadata | uid, "spec": {}, "status": {}, **fields}
    )


def held(cluster, name, namespace="team-a", **status):
    labels = {INSTANCE: "kfp-placement-queue", "mine": "stays"}
    put_workflow(cluster, {"name": name, "namespace": namespace, "labels": labels}, status=status)


def workflow(cluster, name, namespace="team-a"):
    run = cluster.get(WORKFLOWS, name, namespace)
    return run["metadata"]["labels"], run["status"]


def test_runs_that_wait_in_queues_begin(live, cluster, golden):
    held(cluster, "first", phase="Pending", message="waits in RunQueue default")
    held(cluster, "second", "team-b")
    golden(live.output("release"))
    assert workflow(cluster, "first") == ({"mine": "stays"}, {})
    assert workflow(cluster, "second", "team-b") == ({"mine": "stays"}, {})


def suspended(cluster, name, annotations):
    metadata = {
        "name": name,
        "namespace": "team-a",
        "labels": {PREEMPTED_LABEL: "true"},
        "annotations": annotations,
    }
    put_workflow(cluster, metadata, spec={"suspend": True})


@pytest.mark.parametrize("arguments", [(), ("low",)])
def test_runs_that_their_queue_has_suspended_go_on_and_no_others(live, cluster, arguments):
    suspended(cluster, "low", {PREEMPTED_ANNOTATION: "uid-of-another"})
    suspended(cluster, "by-hand", {})
    assert "team-a/low begins" in live.output("release", *arguments)
    low = cluster.get(WORKFLOWS, "low", "team-a")
    assert (low["spec"], low["metadata"]["annotations"], low["metadata"]["labels"]) == ({}, {}, {})
    assert cluster.get(WORKFLOWS, "by-hand", "team-a")["spec"] == {"suspend": True}


def test_a_dry_run_lets_no_run_begin(live, cluster):
    held(cluster, "first", phase="Pending", message="waits")
    assert "team-a/first would begin" in live("release", "--dry-run").stdout
    assert INSTANCE in workflow(cluster, "first")[0]


def test_a_run_that_may_not_be_released_is_named(live, cluster, golden):
    held(cluster, "first")
    cluster.refused[WORKFLOWS.path("team-a", "first")] = ClusterForbiddenError("may not patch")
    result = live("release")
    assert result.exit_code == 1
    golden(result.stderr)


def test_who_may_not_see_queues_still_frees_pods(live, cluster):
    cluster.refused[RUN_QUEUES.path()] = ClusterForbiddenError("may not list runqueues")
    result = live("release")
    assert result.exit_code == 1
    assert "no run that waits in a queue is released: may not list runqueues" in result.stderr
    assert gates(cluster, "train") == [THEIRS]


def test_a_run_is_released_by_who_may_see_the_queues_of_its_namespace_alone(live, cluster):
    cluster.refused[RUN_QUEUES.path()] = ClusterForbiddenError("may not list runqueues")
    held(cluster, "first")
    assert "team-a/first begins" in live.output("release", "-n", "team-a", "first")
    assert INSTANCE not in workflow(cluster, "first")[0]


def test_a_held_run_is_released_by_who_may_not_see_pods_and_a_message_says_what_is_left(
    live, cluster
):
    cluster.refused[PODS.path("team-a")] = ClusterForbiddenError("may not list pods")
    held(cluster, "first")
    result = live("release", "-n", "team-a", "first")
    assert result.exit_code == 1
    assert "no pod is released: may not list pods" in result.stderr
    assert INSTANCE not in workflow(cluster, "first")[0]
