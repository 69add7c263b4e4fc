"""`release` on a real API server."""

from datetime import UTC, datetime, timedelta

import pytest

from kfp_placement_controller.kinds import POLICIES
from kfp_placement_controller.main import main
from kfp_placement_controller.release_process import release
from kfp_placement_controller.settings import ReleaseSettings
from kfp_placement_engine.contract.keys import HINTS_ANNOTATION
from kfp_placement_kube.exceptions import ForbiddenError
from kfp_placement_kube.kinds import PODS
from tests.controlplane import objects
from tests.controlplane.housekeeping import wait_until_none_is_gated

pytestmark = pytest.mark.usefixtures("our_kinds")

OURS = {"name": "kfp-placement.dev/plan"}
KUEUE = {"name": "kueue.x-k8s.io/admission"}


@pytest.fixture
def client(client):
    yield client
    client.delete(POLICIES, "default")


@pytest.fixture
def pods(client, api, namespace):
    """Gated pods: two of ours, one of them held by another too, and one of others only."""
    wait_until_none_is_gated(api, OURS["name"])
    for name, gates in (("a", [OURS]), ("b", [KUEUE, OURS]), ("c", [KUEUE])):
        client.create(PODS, objects.pod(name, namespace, schedulingGates=gates))

    def gates_now():
        return {
            name: client.get(PODS, name, namespace)["spec"].get("schedulingGates", [])
            for name in "abc"
        }

    return gates_now


FREED = {"a": [], "b": [KUEUE], "c": [KUEUE]}
HELD = {"a": [OURS], "b": [KUEUE, OURS], "c": [KUEUE]}


def a_policy(client, **spec):
    client.create(POLICIES, {"metadata": {"name": "default"}, "spec": spec})


def now(later_seconds=0.0):
    return datetime.now(UTC) + timedelta(seconds=later_seconds)


def test_by_hand_the_policy_is_paused_and_our_gates_go(
    control_plane, client, namespace, pods, capsys
):
    arguments = ["release", "--kubeconfig", str(control_plane.kubeconfig)]
    assert main(arguments, {}) == 0
    assert pods() == FREED
    assert client.get(POLICIES, "default")["spec"]["paused"] is True
    lines = capsys.readouterr().out.splitlines()
    assert f"freed {namespace}/a" in lines
    assert f"freed {namespace}/c" not in lines
    # Tests before may have left gated pods elsewhere on this control plane.
    assert sum(line.startswith(f"freed {namespace}/") for line in lines) == 2
    assert lines[-1].endswith(" gates taken off, 0 failed")
    assert main(arguments, {}) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "0 gates taken off, 0 failed"


def test_a_dry_run_changes_nothing(client, namespace, pods):
    lines: list[str] = []
    assert release(client, now(), lines.append, ReleaseSettings(dry_run=True)) == 0
    assert pods() == HELD
    assert client.get(POLICIES, "default") is None
    assert f"would free {namespace}/a" in lines
    assert "would pause the policy" in lines


@pytest.mark.parametrize(
    ("later_seconds", "deadline", "expected"),
    [(30, None, HELD), (70, None, FREED), (70, "10m", HELD), (30, "5s", FREED)],
)
def test_overdue_frees_pods_past_the_deadline_only(client, pods, later_seconds, deadline, expected):
    if deadline is not None:
        a_policy(client, gateDeadline=deadline)
    settings = ReleaseSettings(overdue=True)
    assert release(client, now(later_seconds), lambda line: None, settings) == 0
    assert pods() == expected
    policy = client.get(POLICIES, "default")
    assert policy is None or not policy["spec"].get("paused")


def test_it_says_of_which_pods_a_hard_limit_is_not_kept(client, namespace, pods):
    limited = objects.pod("near", namespace, labels={"OurLocation": "HOME"}, schedulingGates=[OURS])
    limited["metadata"]["annotations"] = {HINTS_ANNOTATION: '{"v": 1, "maxLatency": "20ms"}'}
    client.create(PODS, limited)
    lines: list[str] = []
    assert release(client, now(70), lines.append, ReleaseSettings(overdue=True)) == 0
    assert f"freed {namespace}/near; its limit of 20ms to HOME is not kept" in lines
    assert f"freed {namespace}/a" in lines


def test_a_policy_that_cannot_be_read_holds_nobody_up(client, pods):
    get = client.get

    def refuse(kind, *arguments, **options):
        if kind is POLICIES:
            raise ForbiddenError(403, "Forbidden", "may not get the policy")
        return get(kind, *arguments, **options)

    lines: list[str] = []
    client.get = refuse
    assert release(client, now(70), lines.append, ReleaseSettings(overdue=True)) == 0
    client.get = get
    assert pods() == FREED
    assert "may not get the policy" in lines[0]


def test_one_pod_that_cannot_be_freed_keeps_no_other_waiting(client, namespace, pods):
    patch = client.patch

    def refuse(kind, name, *arguments, **options):
        if name == "a":
            raise ForbiddenError(403, "Forbidden", "may not patch")
        return patch(kind, name, *arguments, **options)

    lines: list[str] = []
    client.patch = refuse
    assert release(client, now(), lines.append, ReleaseSettings()) == 1
    assert pods() == {**FREED, "a": [OURS]}
    assert lines[-1] == "1 gates taken off, 1 failed"


def test_without_a_cluster_the_message_says_what_to_do(capsys):
    assert main(["release"], {}) == 1
    assert "--kubeconfig" in capsys.readouterr().err
