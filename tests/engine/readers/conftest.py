"""Fixtures of the readers' tests."""

from collections.abc import Callable

import pytest

from kfp_placement_engine import RunGraph
from tests.support.packages import read_as_workflow, read_package

Reader = Callable[..., RunGraph]


@pytest.fixture(params=[read_package, read_as_workflow])
def read(request):
    """Reader of packages; tests read them directly and as the Workflow that KFP makes of them."""
    reader: Reader = request.param
    return reader
