"""Fixtures of the planner's tests."""

import pytest


@pytest.fixture(params=["ready", "ordered"])
def dispatch(request):
    """Way in which steps that are ready start; tests run with both ways."""
    way: str = request.param
    return way
