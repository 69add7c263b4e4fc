"""What tests of views share."""

import time

import pytest


@pytest.fixture(autouse=True)
def zone(monkeypatch):
    """Whoever looks is in UTC, unless a test says otherwise."""

    def be_in(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    be_in("UTC")
    yield be_in
    monkeypatch.undo()
    time.tzset()
