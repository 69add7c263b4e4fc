"""Attacks of tenants and of accounts that were taken over, on a real control plane."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controller.end_to_end.queues import set_queue
from tests.controller.end_to_end.teams import Team, tidy_team
from tests.controlplane import housekeeping
from tests.controlplane.api import Api
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.support.attacks import tenant_account
from tests.support.installation import Installation, InstallationOptions
from tests.support.taxi_cluster import taxi_nodes

_POLICY = {"engine": {"budget": "300ms"}, "defaults": {"driver": "100ms"}}


@pytest.hookimpl(tryfirst=True)  # Before pytest chooses by markers.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the attacks: `make test-cluster PYTEST_ARGS="-m hostile"` runs them alone."""
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker("hostile")


@pytest.fixture(scope="module")
def queueing(control_plane_programs, argo_program) -> Iterator[Installation]:
    """Queues on the three nodes of the taxi sample."""
    options = InstallationOptions(features=("queue",), policy=_POLICY, argo=argo_program)
    with ControlPlane(PlaneOptions(simulate_pods=False)) as plane:
        housekeeping.add_nodes(plane.api, *taxi_nodes())
        with Installation(plane, options) as running:
            yield running


@pytest.fixture
def team(queueing) -> Iterator[Team]:
    """A namespace whose queue admits nobody yet; nobody is hurried by a deadline."""
    for made in tidy_team(queueing):
        set_queue(made, quota={"runs": 0}, holdDeadline="1s")
        yield made


@pytest.fixture
def tenant(team) -> Api:
    """The API server as the tenant sees it."""
    return tenant_account(team.api, team.name)
