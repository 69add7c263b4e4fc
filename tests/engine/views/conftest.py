"""Fixtures of the views' tests."""

import time

import pytest


@pytest.fixture(autouse=True)
def zone(monkeypatch):
    """Set the time zone to UTC, unless a test says otherwise."""

    def be_in(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    be_in("UTC")
    yield be_in
    monkeypatch.undo()
    time.tzset()
