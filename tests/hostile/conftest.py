"""Attacks of tenants and of accounts that were taken over, on a real control plane."""

from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)  # Before pytest chooses by markers.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the attacks: `make test-cluster PYTEST_ARGS="-m hostile"` runs them alone."""
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker("hostile")
