"""The installation on the control plane that tests share."""

import pytest

from tests.controlplane.argo.crds import custom_resource_definitions
from tests.support import manifests
from tests.support.custom_resources import remove_crds
from tests.support.hold_webhook import WITH_POLICY


@pytest.fixture(scope="module")
def installed(control_plane):
    """The API server with everything applied; gone again after the module's tests."""
    items = manifests.rendered(*WITH_POLICY, "history")
    manifests.apply(control_plane.api, items)
    yield control_plane.api
    manifests.remove(control_plane.api, items)


@pytest.fixture(scope="module")
def argo(installed):
    """The API server with everything and with Argo's kinds; gone again after the module's tests."""
    manifests.apply(installed, custom_resource_definitions())
    yield installed
    remove_crds(installed, custom_resource_definitions())
