"""What holds for all tests: reasons to skip, and no network."""

import signal
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.browser import find_chromium

# How long an example takes says more about the machine than about the code.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# The control plane's option and fixtures.
pytest_plugins = ["tests.controlplane.fixtures"]

LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def pytest_configure() -> None:
    """Let programs that tests start be interrupted: in the background, shells ignore Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this machine cannot run, with the reason."""
    if find_chromium() is not None:
        return
    reason = "no Chromium found: install chromium, or name one in the variable CHROMIUM"
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def chromium() -> Path:
    """The browser; tests that use it are marked `browser`."""
    found = find_chromium()
    assert found is not None, "a test that uses a browser needs the marker `browser`"
    return found


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def connect_within(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in LOOPBACK:
            pytest.fail(f"a test tried to connect to {address[0]}: tests need no network")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect_within)
