"""The API server as our client and as the administrator see it."""

import pytest

from kfp_placement_controller.kube.client import KubeClient
from kfp_placement_controller.kube.transport import Transport
from tests.support.custom_resources import installed_crds


@pytest.fixture
def client(control_plane):
    """Our client, with the administrator's rights."""
    return KubeClient(Transport(control_plane.kubeconfig, 10.0))


@pytest.fixture(scope="module")
def our_kinds(control_plane):
    """Our custom resources are installed."""
    with installed_crds(control_plane.api):
        yield
