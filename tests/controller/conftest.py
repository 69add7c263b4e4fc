"""The API server as our client and as the administrator see it."""

import pytest

from tests.support.api_client import a_client
from tests.support.custom_resources import installed_crds


@pytest.fixture
def client(control_plane):
    """Client of the control plane, with the administrator's rights."""
    return a_client(control_plane.kubeconfig)


@pytest.fixture(scope="module")
def our_kinds(control_plane):
    """Install our custom resources while the tests of a module run."""
    with installed_crds(control_plane.api):
        yield
