"""What tests of the planner share."""

import pytest


@pytest.fixture(params=["ready", "ordered"])
def dispatch(request):
    """Each of the two ways in which steps that are ready start."""
    way: str = request.param
    return way
