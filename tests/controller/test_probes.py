"""/healthz, /readyz and /metrics."""

import urllib.error
import urllib.request

import pytest

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
