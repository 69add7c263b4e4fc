"""The installation on a real API server: taken as it is, run by real controllers, gone again."""

import pytest

from tests.controlplane import objects
from tests.controlplane.waiting import wait_until
from tests.support import manifests
from tests.support.manifests import NAMESPACE, of_kind


@pytest.mark.parametrize("name", ["plan", "scheduler"])
def test_pods_are_admitted_and_run(installed, add_nodes, namespace, name):
    """The namespace admits restricted pods only; the Deployments' are. Nothing is in their way."""
    add_nodes(objects.node(f"{namespace}-1"), objects.node(f"{namespace}-2"))

    def status():
        return installed.get("apps/v1", "Deployment", name, NAMESPACE)["status"]

    wait_until(lambda: status().get("availableReplicas") == 2, f"two pods of {name}", state=status)
    pods = installed.list(
        "v1", "Pod", NAMESPACE, labelSelector=f"app.kubernetes.io/component={name}"
    )
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"default-scheduler"}


def test_everything_can_be_applied_again(installed):
    """An upgrade: the same manifests once more, and what admins have set is kept."""
    policy = installed.get(f"{manifests.GROUP}/v1alpha1", "PlacementPolicy", "default")
    installed.patch(policy, {"spec": {"paused": True}})
    manifests.apply(installed, manifests.rendered("gates"))
    after = installed.get(f"{manifests.GROUP}/v1alpha1", "PlacementPolicy", "default")
    assert after["spec"]["paused"]
    assert after["spec"]["actuator"] == "gates"
    installed.patch(policy, {"spec": {"paused": False}})


def test_gates_that_are_left_out_give_new_pods_to_our_scheduler(installed):
    """The policy changes with the apply; the right to take gates off stays until it is deleted."""
    manifests.apply(installed, manifests.rendered())
    policy = installed.get(f"{manifests.GROUP}/v1alpha1", "PlacementPolicy", "default")
    assert policy["spec"]["actuator"] == "extender"
    rights = "rbac.authorization.k8s.io/v1"
    assert installed.get(rights, "ClusterRoleBinding", "kfp-placement-gates")
    plan = installed.get("apps/v1", "Deployment", "plan", NAMESPACE)
    (container,) = plan["spec"]["template"]["spec"]["containers"]
    assert "KFP_PLACEMENT_GATES" not in {each["name"] for each in container["env"]}
    manifests.apply(installed, manifests.rendered("gates"))


def test_disruptions_are_allowed(installed, add_nodes, namespace):
    """A budget that allows none would hold up every drain."""
    add_nodes(objects.node(f"{namespace}-1"), objects.node(f"{namespace}-2"))
    for item in of_kind(manifests.rendered(), "PodDisruptionBudget"):
        name = item["metadata"]["name"]

        def allowed(name=name):
            budget = installed.get("policy/v1", "PodDisruptionBudget", name, NAMESPACE)
            # More while Pods of an earlier rollout are still there.
            return budget.get("status", {}).get("disruptionsAllowed") == 1

        assert wait_until(allowed, f"{name} to allow a disruption")


@pytest.mark.parametrize(
    "features",
    [
        ("webhook",),
        ("gates", "webhook", "opt-in"),
        ("queue", "queue-webhook", "webhook"),
        ("opt-in",),
    ],
)
def test_variants_are_accepted(installed, features):
    for item in manifests.rendered(*features):
        installed.patch(item, item, how="apply", dryRun="All")
