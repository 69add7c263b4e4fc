"""One installation for all end-to-end tests, on the three nodes of the taxi sample."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane import housekeeping
from tests.controlplane.argo.crds import VERSION as ARGO_VERSION
from tests.controlplane.argo.program import ArgoProgram
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.support.installation import Installation, InstallationOptions
from tests.support.taxi_cluster import taxi_nodes

_RUNNING: pytest.StashKey[list[Installation]] = pytest.StashKey()

POLICY = {
    # Runs are short here, so planning must be too.
    "engine": {"budget": "300ms"},
    "defaults": {"driver": "100ms"},
}


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
def installation(
    request: pytest.FixtureRequest, control_plane_programs: None, argo_program: ArgoProgram | None
) -> Iterator[Installation]:
    """The shipped installation at work; tests leave its processes and nodes as they were."""
    yield from _at_work(request, InstallationOptions(policy=POLICY, argo=argo_program))


def _at_work(
    request: pytest.FixtureRequest, options: InstallationOptions
) -> Iterator[Installation]:
    with ControlPlane(PlaneOptions(play_pods=False)) as plane:
        housekeeping.add_nodes(plane.api, *taxi_nodes())
        with Installation(plane, options) as running:
            request.config.stash.setdefault(_RUNNING, []).append(running)
            yield running
            request.config.stash[_RUNNING].remove(running)


@pytest.fixture(scope="module")
def gated_installation(
    request: pytest.FixtureRequest, control_plane_programs: None, argo_program: ArgoProgram | None
) -> Iterator[Installation]:
    """The same with `features/gates`, on a control plane of its own."""
    options = InstallationOptions(features=("gates",), policy=POLICY, argo=argo_program)
    yield from _at_work(request, options)


@pytest.fixture(scope="module")
def choosy_installation(
    request: pytest.FixtureRequest, control_plane_programs: None, argo_program: ArgoProgram | None
) -> Iterator[Installation]:
    """The same with `features/opt-in`, on a control plane of its own."""
    options = InstallationOptions(features=("opt-in",), policy=POLICY, argo=argo_program)
    yield from _at_work(request, options)


@pytest.fixture
def own_installation(
    request: pytest.FixtureRequest, control_plane_programs: None, argo_program: ArgoProgram | None
) -> Iterator[Installation]:
    """One that a test may take apart, with the features that it names, placed by the extender."""
    policy = {**POLICY, "actuator": "extender"}
    options = InstallationOptions(features=request.param, policy=policy, argo=argo_program)
    yield from _at_work(request, options)


@pytest.fixture
def team(installation: Installation) -> Iterator[str]:
    """A namespace of the test's own that runs can be submitted to."""
    yield from _namespace_of(installation)


@pytest.fixture
def gated_team(gated_installation: Installation) -> Iterator[str]:
    """The same where pods are gated."""
    yield from _namespace_of(gated_installation)


def _namespace_of(installation: Installation) -> Iterator[str]:
    # Whatever the test before has killed, or failed to tidy up.
    installation.wait_at_work()
    with installation.namespace() as name:
        yield name
        # First, for Argo makes pods of runs that go on again.
        for workflow in installation.api.list(ARGO_VERSION, "Workflow", name):
            installation.api.delete(workflow)
        housekeeping.delete_pods(installation.api, name)
