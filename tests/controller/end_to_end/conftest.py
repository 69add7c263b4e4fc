"""Installations for end-to-end tests, each on the three nodes of the taxi sample."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.controller.end_to_end.history import History
from tests.controller.end_to_end.teams import tidy_team
from tests.controlplane import housekeeping
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.support.installation import Installation, InstallationOptions
from tests.support.taxi_cluster import taxi_nodes

AtWork = Callable[..., AbstractContextManager[Installation]]
"""Given names of features, and by keyword what the policy is to have, an installation at work.

`beside` starts what else works there, and `more` has further options of the installation.
"""

Beside = Callable[[ControlPlane], AbstractContextManager[object]]
"""Function that starts what else works on the control plane."""

_RUNNING: pytest.StashKey[list[Installation]] = pytest.StashKey()

POLICY = {
    # Runs are short here, so planning must be too.
    "engine": {"budget": "300ms"},
    "defaults": {"driver": "100ms"},
}


@pytest.hookimpl(tryfirst=True)  # Before pytest chooses by markers.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder, each of which takes runs to their end, and begin with them.

    The control plane that the others share would take CPU from them all the time.
    """
    folder = Path(__file__).parent
    items.sort(key=lambda item: folder not in item.path.parents)
    for item in items:
        if folder in item.path.parents:
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show the processes' logs with a test that failed."""
    report: Any = yield
    if report.failed:
        for running in item.config.stash.get(_RUNNING, []):
            for name, text in running.logs().items():
                report.sections.append((f"end of {name}'s log", text))
    return report


@pytest.fixture(scope="session")
def at_work(request, control_plane_programs, argo_program):
    """Starts the shipped installation, on a control plane of its own."""

    @contextlib.contextmanager
    def start(
        *features: str,
        beside: Beside = contextlib.nullcontext,
        more: Mapping[str, Any] = MappingProxyType({}),
        **policy: Any,
    ) -> Iterator[Installation]:
        options = InstallationOptions(
            features=features, policy={**POLICY, **policy}, argo=argo_program, **more
        )
        with ControlPlane(PlaneOptions(simulate_pods=False)) as plane, beside(plane):
            housekeeping.add_nodes(plane.api, *taxi_nodes())
            with Installation(plane, options) as running:
                request.config.stash.setdefault(_RUNNING, []).append(running)
                yield running
                request.config.stash[_RUNNING].remove(running)

    return start


@pytest.fixture(scope="module")
def installation(at_work):
    """Installation of a file whose tests leave its processes and nodes as they were."""
    with at_work() as running:
        yield running


@pytest.fixture(scope="module")
def gated_installation(at_work):
    """Installation with `features/gates`, for a file like that of `installation`."""
    with at_work("gates") as running:
        yield running


@pytest.fixture(scope="module")
def choosy_installation(at_work):
    """Installation with `features/opt-in`, and with queues in the namespaces that ask for both."""
    with at_work("opt-in", "queue") as running:
        yield running


@pytest.fixture
def own_installation(request, at_work):
    """Installation that a test may take apart, with the features that it names and the extender."""
    with at_work(*request.param, actuator="extender") as running:
        yield running


@pytest.fixture
def history(installation):
    """Watches plans and pods of the installation."""
    with History(installation.api) as watched:
        yield watched


@pytest.fixture
def team(installation):
    """A namespace of the test's own that runs can be submitted to."""
    yield from tidy_team(installation)


@pytest.fixture
def gated_team(gated_installation):
    """A namespace of the test's own where pods are gated."""
    yield from tidy_team(gated_installation)
