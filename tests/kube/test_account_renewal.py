"""Processes of the cluster read their credentials again; live commands say what is wrong."""

from pathlib import Path
from typing import NamedTuple
from unittest.mock import Mock

import pytest

from kfp_placement.live.connection import ClusterApi
from kfp_placement.live.exceptions import ClusterForbiddenError
from kfp_placement_controller import connection
from kfp_placement_controller.connection import connect
from kfp_placement_controller.settings import PlanSettings
from kfp_placement_kube.exceptions import ConfigurationError, KubernetesError
from kfp_placement_kube.kinds import PODS
from tests.controlplane.kubeconfig import write_kubeconfig
from tests.support.web_server import sending, web_server


class Server(NamedTuple):
    """Knows one token, and keeps what it was asked with."""

    asked: list[str]
    kubeconfig: Path


@pytest.fixture
def server(tmp_path):
    """An API server that knows the token `new` only; the kubeconfig has `new` after one request."""
    asked, authority = [], tmp_path / "none"
    authority.touch()

    def answer(request):
        asked.append(request.headers["Authorization"])
        write_kubeconfig(tmp_path / "config", address, authority, "new")
        sending(b"{}", status=200 if asked[-1] == "Bearer new" else 401)(request)

    with web_server({PODS.path("ns", "p"): answer}) as address:
        yield Server(asked, write_kubeconfig(tmp_path / "config", address, authority, "old"))


def test_a_process_of_the_cluster_reads_its_credentials_again(server):
    assert connect(PlanSettings(kubeconfig=server.kubeconfig)).get(PODS, "p", "ns") == {}
    assert server.asked == ["Bearer old", "Bearer new"]


def test_an_account_that_cannot_be_read_now_is_a_refusal(server, monkeypatch):
    client = connect(PlanSettings(kubeconfig=server.kubeconfig))
    with monkeypatch.context() as unreadable:
        missing = Mock(side_effect=ConfigurationError("no file"))
        unreadable.setattr(connection, "load_kubeconfig", missing)
        with pytest.raises(KubernetesError, match="no file"):
            client.get(PODS, "p", "ns")
    assert client.get(PODS, "p", "ns") == {}


def test_a_live_command_says_at_once_that_the_account_is_unknown(server):
    cluster = ClusterApi.connect(server.kubeconfig)
    with pytest.raises(ClusterForbiddenError, match="does not know the account"):
        cluster.get(PODS, "p", "ns")
    assert server.asked == ["Bearer old"]
