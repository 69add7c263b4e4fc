"""Settings of all tests: the same examples every time, reasons to skip, and no network."""

import signal
import socket
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import find_chromium
from tests.support.drawing import draw_nothing_from_the_code, register_profiles
from tests.support.golden import Golden, forget_others, recording

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


@pytest.hookimpl(tryfirst=True)  # Before pytest chooses by markers and names.
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests with golden files; skip what this machine cannot run, with the reason."""
    golden: dict[Path, set[str]] = {item.path: set() for item in items}
    for item in items:
        if "golden" in getattr(item, "fixturenames", ()):
            item.add_marker("golden")
            golden[item.path].add(_name_of(item))
    # Only whole modules tell which tests there are no more.
    if recording() and not config.getoption("lf") and not any("::" in arg for arg in config.args):
        for module, tests in golden.items():
            forget_others(module, tests)
    skipped = pytest.mark.skipif(
        find_chromium() is None,
        reason="no Chromium found: install chromium, or name one in the variable CHROMIUM",
    )
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
            item.add_marker(skipped)


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The browser; tests that reach it are marked `browser`, and skipped where there is none."""
    path = find_chromium()
    assert path is not None
    return path


def _name_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[2]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """`golden(text)`: the text is the one kept for this test; see CONTRIBUTING.md."""
    return Golden(request.path, _name_of(request.node))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """A test that has passed has given all the texts kept for it."""
    result = yield
    compared = pyfuncitem.funcargs.get("golden")
    if isinstance(compared, Golden):
        compared.finish()
    return result


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def connect_within(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in LOOPBACK:
            pytest.fail(f"a test tried to connect to {address[0]}: tests need no network")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect_within)
