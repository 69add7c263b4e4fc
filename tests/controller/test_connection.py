"""How a process finds its API server, and by which name it is known there."""

import http.server
import threading

import pytest

from kfp_placement_controller.connection import connect
from kfp_placement_controller.exceptions import SettingsError
from kfp_placement_controller.settings import PlanSettings
from tests.controlplane.kubeconfig import write_kubeconfig


def test_requests_name_the_program(tmp_path):
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.headers["User-Agent"])
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *arguments):
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        authority = tmp_path / "none"
        authority.touch()
        address = f"http://127.0.0.1:{server.server_port}"
        kubeconfig = write_kubeconfig(tmp_path / "config", address, authority, "t")
        assert connect(PlanSettings(kubeconfig=kubeconfig)).get_path("/version") == {}
    assert asked[0].startswith("kfp-placement-controller/")


@pytest.mark.parametrize("kubeconfig", ["missing", "empty", "list", None])
def test_without_a_configuration_the_message_says_what_to_do(tmp_path, kubeconfig):
    (tmp_path / "empty").touch()
    (tmp_path / "list").write_text("[]")
    path = None if kubeconfig is None else tmp_path / kubeconfig
    with pytest.raises(SettingsError, match="--kubeconfig"):
        connect(PlanSettings(kubeconfig=path))
