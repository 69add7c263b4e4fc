"""The API server as a client sees it."""

import pytest

from tests.support.api_client import a_client


@pytest.fixture
def client(control_plane):
    """A client with the administrator's rights."""
    return a_client(control_plane.kubeconfig)
