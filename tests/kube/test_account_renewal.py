"""Processes of the cluster read their credentials again; live commands say what is wrong."""

import http.server
import threading
from pathlib import Path

import pytest

from kfp_placement.live.connection import ClusterApi
from kfp_placement.live.exceptions import ClusterForbiddenError
from kfp_placement_controller.connection import connect
from kfp_placement_controller.settings import PlanSettings
from kfp_placement_kube.kinds import PODS
from tests.controlplane.kubeconfig import write_kubeconfig


class Server(http.server.ThreadingHTTPServer):
    """Knows one token, and keeps what it was asked with."""

    asked: list[str]
    kubeconfig: Path


@pytest.fixture
def server(tmp_path):
    """An API server that knows the token `new` only; the kubeconfig has `new` after one request."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            known = self.headers["Authorization"] == "Bearer new"
            server.asked.append(self.headers["Authorization"])
            write_kubeconfig(server.kubeconfig, address, authority, "new")
            self.send_response(200 if known else 401)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *arguments):
            """Say nothing."""

    with Server(("127.0.0.1", 0), Handler) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        authority = tmp_path / "none"
        authority.touch()
        server.asked = []
        server.kubeconfig = write_kubeconfig(tmp_path / "config", address, authority, "old")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_process_of_the_cluster_reads_its_credentials_again(server):
    assert connect(PlanSettings(kubeconfig=server.kubeconfig)).get(PODS, "p", "ns") == {}
    assert server.asked == ["Bearer old", "Bearer new"]


def test_a_live_command_says_at_once_that_the_account_is_unknown(server):
    cluster = ClusterApi.connect(server.kubeconfig)
    with pytest.raises(ClusterForbiddenError, match="does not know the account"):
        cluster.get(PODS, "p", "ns")
    assert server.asked == ["Bearer old"]
