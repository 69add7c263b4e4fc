"""What tests of readers share."""

from collections.abc import Callable

import pytest

from kfp_placement_engine import RunGraph
from tests.support.packages import read_as_workflow, read_package

Reader = Callable[..., RunGraph]


@pytest.fixture(params=[read_package, read_as_workflow])
def read(request):
    """Each of the two ways to read a package: itself, and the Workflow that KFP makes of it."""
    reader: Reader = request.param
    return reader
