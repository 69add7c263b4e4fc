"""The control plane in pytest: option, reasons to skip, fixtures, logs of what failed."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.controlplane import housekeeping
from tests.controlplane.argo.program import ArgoProgram
from tests.controlplane.build import binaries, kustomize
from tests.controlplane.exceptions import ControlPlaneUnavailableError
from tests.controlplane.housekeeping import temporary_namespace
from tests.controlplane.kueue.program import KueueProgram
from tests.controlplane.objects import JsonObject

if TYPE_CHECKING:
    from tests.controlplane.plane import ControlPlane

_NOT_ASKED = "starts a control plane: run `make test-cluster`, or pytest with --cluster"
_NO_KUEUE = "needs Kueue itself: name its folder with --kueue, see CONTRIBUTING.md"
_RUNNING: pytest.StashKey["ControlPlane"] = pytest.StashKey()
_LOG_LINES = 30


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that ask for tests on a control plane, and for Argo's own controller."""
    parser.addoption(
        "--cluster",
        action="store_true",
        help="also run the tests that start a real control plane (marker `cluster`)",
    )

    parser.addoption(
        "--argo-controller",
        type=Path,
        metavar="PATH",
        help="Argo's own workflow-controller for end-to-end tests, in place of the stand-in",
    )
    parser.addoption(
        "--argo-crds",
        type=Path,
        metavar="DIR",
        help="the definitions of its kinds: manifests/base/crds/minimal of its sources",
    )
    parser.addoption(
        "--kueue",
        type=Path,
        metavar="DIR",
        help="also run the tests with Kueue itself: its sources with the program `kueue` built",
    )


@pytest.hookimpl(tryfirst=True)  # Before pytest chooses by markers.
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs a control plane, and skip it unless it is asked for."""
    for item in items:
        if "control_plane_programs" in getattr(item, "fixturenames", ()):
            item.add_marker("cluster")
        if item.get_closest_marker("cluster") and not config.getoption("--cluster"):
            item.add_marker(pytest.mark.skip(reason=_NOT_ASKED))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show the components' logs with a test on the shared control plane that failed."""
    report: Any = yield
    plane = item.config.stash.get(_RUNNING, None)
    if report.failed and plane is not None and "control_plane" in getattr(item, "fixturenames", ()):
        for name, text in plane.logs(_LOG_LINES).items():
            report.sections.append((f"end of {name}'s log", text))
    return report


@pytest.fixture(scope="session")
def control_plane_programs(request):
    """Build the programs before anything starts, showing how it goes.

    Whatever uses this fixture, also through others, is marked `cluster`.
    """
    capture = request.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    try:
        with capture.global_and_fixture_disabled():
            binaries()
            kustomize()
    except ControlPlaneUnavailableError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def argo_program(request):
    """Argo's own controller, if one is named; None = the stand-in works."""
    controller, definitions = map(request.config.getoption, ("--argo-controller", "--argo-crds"))
    if controller is None and definitions is None:
        return None
    if controller is None or definitions is None:
        raise pytest.UsageError("--argo-controller and --argo-crds go together")
    return ArgoProgram(controller, definitions)


@pytest.fixture(scope="session")
def kueue_program(request):
    """Kueue, if it is named; else the test is skipped."""
    folder = request.config.getoption("--kueue")
    if folder is None:
        pytest.skip(_NO_KUEUE)
    return KueueProgram(folder)


@pytest.fixture(scope="session")
def kueue(control_plane_programs, kueue_program):
    """Kueue at work, on a control plane that nobody else uses."""
    from tests.controlplane.kueue.running import Kueue
    from tests.controlplane.plane import ControlPlane, PlaneOptions

    with (
        ControlPlane(PlaneOptions(scheduler=None)) as plane,
        Kueue(plane, kueue_program) as running,
    ):
        yield running


@pytest.fixture(scope="session")
def control_plane(request, control_plane_programs):
    """The control plane that tests share.

    kwok simulates its pods. Every test has its own namespace and nodes (`namespace`, `add_nodes`)
    and leaves the components as they were. A test that needs another kind starts its own.
    """
    # Not above: every run of pytest imports this module, and few start a control plane.
    from tests.controlplane.plane import ControlPlane

    with ControlPlane() as plane:
        request.config.stash[_RUNNING] = plane
        yield plane
        del request.config.stash[_RUNNING]


@pytest.fixture
def api(control_plane):
    """The API server as the administrator sees it."""
    return control_plane.api


@pytest.fixture
def namespace(api):
    """A namespace of the test's own."""
    with temporary_namespace(api, f"test-{uuid.uuid4().hex[:8]}") as name:
        yield name


@pytest.fixture
def add_nodes(api, namespace):
    """Adds nodes, waits until they are ready, and removes them after the test.

    The namespace's pods are removed first, so that none of them is left on a node that is gone.
    """
    added: list[str] = []

    def add(*nodes: JsonObject) -> None:
        added.extend(node["metadata"]["name"] for node in nodes)
        housekeeping.add_nodes(api, *nodes)

    yield add
    housekeeping.delete_pods(api, namespace)
    housekeeping.remove_nodes(api, *added)
