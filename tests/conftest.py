"""What holds for all tests: the same examples every time, reasons to skip, and no network."""

import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import find_chromium
from tests.support.drawing import draw_nothing_from_the_code, register_profiles

register_profiles()

# The control plane's option and fixtures.
pytest_plugins = ["tests.controlplane.fixtures"]

LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@pytest.hookimpl(trylast=True)  # After hypothesis, which loads the profile that was asked for.
def pytest_configure() -> None:
    """Settle what is drawn, and let programs be interrupted: in the background shells forbid it."""
    draw_nothing_from_the_code()
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
