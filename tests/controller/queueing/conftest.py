"""Kueue itself for the cases of backends, with what our feature installs for it."""

from contextlib import ExitStack
from functools import partial

import pytest

from tests.controller.queueing.backend_worlds import KueueWorld
from tests.controller.queueing.scene import TEAM
from tests.controlplane import housekeeping
from tests.controlplane.objects import an_object
from tests.support.api_client import a_client
from tests.support.checkout import ROOT
from tests.support.custom_resources import installed_crds
from tests.support.structural_schemas import crds, documents

_FEATURE = ROOT / "deploy" / "features" / "kueue"
_OURS = "kfp-placement"


@pytest.fixture(scope="session")
def kueue_client(kueue):
    """Client with no more rights than the feature gives to the queue for Kueue's kinds."""
    api = kueue.plane.api
    account = an_object("v1", "ServiceAccount", "queue", _OURS)
    with (
        installed_crds(api, [crds()["RunRequest"]]),
        housekeeping.temporary_namespace(api, TEAM),
        housekeeping.temporary_namespace(api, _OURS),
    ):
        for each in (account, *documents(_FEATURE / "rights.yaml")):
            api.create(each)
        for each in documents(_FEATURE / "check.yaml"):
            api.create(each)
        token = housekeeping.account_token(api, _OURS, "queue")
        yield a_client(kueue.plane.kubeconfig_for("queue", token))


@pytest.fixture
def make():
    """Makes worlds, which are cleaned at the end of the test."""
    with ExitStack() as worlds:

        def make_world(kind, *access, **quota):
            world = kind(*access, **quota)
            worlds.callback(world.clean)
            return world

        yield make_world


@pytest.fixture
def on_kueue(kueue, kueue_client, make):
    """Makes worlds in which Kueue admits runs."""
    return partial(make, KueueWorld, kueue.plane.api, kueue_client)
