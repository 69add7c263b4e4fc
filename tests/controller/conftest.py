"""The API server as our client and as the administrator see it."""

import pytest

from tests.support.api_client import a_client
from tests.support.custom_resources import installed_crds


@pytest.fixture
def client(control_plane):
    """Our client, with the administrator's rights."""
    return a_client(control_plane.kubeconfig)


@pytest.fixture(scope="module")
def our_kinds(control_plane):
    """Our custom resources are installed."""
    with installed_crds(control_plane.api):
        yield
