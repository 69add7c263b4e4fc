"""Kueue where a RunQueue asks for it: that it is missing, or may not be used, ends no process."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from kfp_placement_controller.actuators.kueue_workloads import KueueWriter
from kfp_placement_controller.kinds import (
    ADMISSION_CHECKS,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    WORKLOADS,
)
from kfp_placement_controller.loops.kueue_following import RETRY_SECONDS, KueueFollowing
from kfp_placement_kube.kinds import Kind
from tests.controller.queueing.scene import Scene, a_queue
from tests.controlplane import housekeeping
from tests.controlplane.argo.crds import free_definition
from tests.support.api_client import a_client
from tests.support.checkout import ROOT
from tests.support.custom_resources import installed_crds
from tests.support.structural_schemas import documents

_RIGHTS = ROOT / "deploy" / "features" / "kueue" / "rights.yaml"


class FollowedScene(Scene):
    """A queue of Kueue, which is followed with the rights of an account."""

    def __init__(self, kubeconfig) -> None:
        super().__init__(a_queue(backend="kueue", localQueue="team"))
        self.begun: list[str] = []
        writer = KueueWriter(a_client(kubeconfig), lambda: self.now)
        self.following = KueueFollowing(
            self.kueue.objects,
            writer.check,
            writer.read,
            self.monotonic,
            began=lambda: self.begun.append("followed"),
            ended=lambda: self.begun.append("not followed"),
        )

    def backend_ready(self) -> tuple[str, str]:
        """What the queue says once it has looked again."""
        self.pass_time(RETRY_SECONDS + 1)
        self.following.follow(self.coordinator)
        (status,) = self.statuses()
        (condition,) = [each for each in status["conditions"] if each["type"] == "BackendReady"]
        return condition["status"], condition["message"]


@pytest.fixture
def scene(control_plane, namespace):
    token = housekeeping.account_token(control_plane.api, namespace, "default")
    return FollowedScene(control_plane.kubeconfig_for("kueue-follower", token))


@pytest.fixture
def kueue_kinds(api):
    """Kueue's kinds as far as we use them, without Kueue."""
    kinds = (WORKLOADS, LOCAL_QUEUES, RESOURCE_FLAVORS, ADMISSION_CHECKS)
    with installed_crds(api, [a_definition(each) for each in kinds]):
        yield


def a_definition(kind: Kind) -> dict[str, Any]:
    made = free_definition(kind.api_version, kind.kind, kind.plural, namespaced=kind.namespaced)
    made["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, for a test"}
    made["spec"]["versions"][0]["subresources"] = {"status": {}}
    return made


@pytest.fixture
def rights(api, namespace):
    """The shipped rights, for an account of the test's own."""
    items = [*documents(_RIGHTS)]
    for each in items:
        each["metadata"]["name"] = f"{each['metadata']['name']}-{namespace}"
    role, binding = items
    binding["roleRef"]["name"] = role["metadata"]["name"]
    binding["subjects"] = [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}]
    yield items
    for each in items:
        api.delete(each)


def give(api, rights: Sequence[dict[str, Any]], without: str) -> None:
    """All rights but those for one resource."""
    role, binding = copy.deepcopy(rights)
    role["rules"] = [each for each in role["rules"] if without not in each["resources"]]
    for each in (role, binding):
        api.create(each)


@pytest.mark.parametrize(
    ("without", "missing"),
    [
        ("workloads/status", "update, patch workloads/status"),
        ("admissionchecks/status", "patch admissionchecks/status"),
    ],
)
def test_a_right_that_is_missing_is_named_until_it_is_given(
    api, scene, kueue_kinds, rights, without, missing
):
    give(api, rights, without)
    status, message = scene.backend_ready()
    assert status == "False"
    assert message == (
        f"nobody new begins: Kueue cannot be used: this account may not {missing} in the whole"
        " cluster: bind the role that is shipped for it"
    )
    assert scene.begun == []
    role = rights[0]
    api.patch(role, {"rules": role["rules"]})
    assert scene.backend_ready() == (
        "False",
        "nobody new begins: there is no LocalQueue team in namespace team",
    )
    assert scene.begun == ["followed"]


def test_where_kueue_is_not_installed_the_queue_says_so(scene):
    assert scene.backend_ready() == (
        "False",
        "nobody new begins: Kueue cannot be used: its kinds are not installed in this cluster",
    )
    assert scene.begun == []
