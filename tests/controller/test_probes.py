"""/healthz, /readyz and /metrics."""

import contextlib
import socket
import urllib.error
import urllib.request

import pytest

from kfp_placement_controller import probes
from kfp_placement_controller.exceptions import SettingsError
from kfp_placement_controller.probes import ProbeServer


@pytest.fixture
def wrong():
    return {"healthz": "", "readyz": ""}


@pytest.fixture
def server(wrong):
    made = ProbeServer("127.0.0.1", 0, lambda: wrong["healthz"], lambda: wrong["readyz"])
    made.start()
    yield made
    made.stop()


def ask(server, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}") as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.parametrize("path", ["healthz", "readyz"])
def test_what_is_wrong_is_said(server, wrong, path):
    assert ask(server, f"/{path}") == (200, "ok\n")
    wrong[path] = "pods: nothing heard"
    assert ask(server, f"/{path}?verbose") == (503, "pods: nothing heard\n")


def test_metrics_are_served(server):
    status, text = ask(server, "/metrics")
    assert status == 200
    assert "python_info" in text


def test_a_port_in_use_is_an_error_of_settings(server):
    with pytest.raises(SettingsError, match="cannot listen on 127"):
        ProbeServer("127.0.0.1", server.port, str, str)


def test_nothing_else_is(server):
    assert ask(server, "/secrets")[0] == 404


def begun(server):
    return socket.create_connection(("127.0.0.1", server.port), 5)


def test_a_head_that_is_long_or_late_is_not_read(server, monkeypatch):
    monkeypatch.setattr(probes, "MOST_HEAD_SECONDS", 0.2)
    with begun(server) as late, begun(server) as long:
        late.sendall(b"GET /healthz HTTP/1.1\r\n")
        long.sendall(b"GET /healthz HTTP/1.1\r\nA: " + b"a" * probes.MOST_HEAD_BYTES)
        assert late.recv(1) == b""
        with contextlib.suppress(ConnectionResetError):
            assert long.recv(9) in (b"HTTP/1.0 ", b"")
    assert ask(server, "/healthz") == (200, "ok\n")
