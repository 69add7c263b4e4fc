"""Outages: an API server that fails, a store that stands still, leaders that hang, planners killed.

Two namespaces submit runs all the time. Each test looks at everything that was stored: what runs
took at any moment, and how often they and their steps began.
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.queues import set_queue, status
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.end_to_end.teams import Team, team_of
from tests.controller.hold_cases import is_held
from tests.controlplane import housekeeping
from tests.controlplane.argo.crds import VERSION as ARGO_VERSION
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.controlplane.waiting import wait_until
from tests.support.faulty_proxy import Fault, FaultyProxy
from tests.support.installation import SCHEDULER, Installation, InstallationOptions
from tests.support.run_record import Quota, RunRecord
from tests.support.taxi_cluster import taxi_nodes

POLICY = {"engine": {"budget": "300ms"}, "defaults": {"driver": "100ms"}}
STEP_SECONDS = (1.0, 1.0)
QUOTAS = (Quota(2, 100_000), Quota(3, 1_500))
"""The first lets two runs go at a time; the second has CPU for some, by what they need."""


class FaultyInstallation(Installation):
    """An installation whose processes reach the API server by a proxy.

    Attributes:
        proxy: the proxy.
    """

    proxy: FaultyProxy

    def _account_variables(self, account: str) -> dict[str, str]:
        variables = super()._account_variables(account)
        if not hasattr(self, "proxy"):
            port = int(variables["KUBERNETES_SERVICE_PORT"])
            self.proxy = self._cleanup.enter_context(FaultyProxy(port, self._plane.folder))
        return {**variables, "KUBERNETES_SERVICE_PORT": str(self.proxy.port)}

    @contextlib.contextmanager
    def store_paused(self) -> Iterator[None]:
        """The store of the API server stands still for a while."""
        etcd = self._plane.processes["etcd"]
        etcd.pause()
        try:
            yield
        finally:
            etcd.resume()

    def leader(self, process: str, *hung: str) -> str:
        """Wait until one replica of a process leads; returns it. Those that hang do not say."""
        names = [name for name in self.processes if name.startswith(f"{process}-")]

        def one() -> list[str]:
            leading = [name for name in names if name not in hung and self._leads(name)]
            # One that has just gone on may not know yet that another leads.
            return leading if len(leading) == 1 else []

        (leading,) = wait_until(one, f"one {process} to lead")
        return leading

    def _leads(self, name: str) -> bool:
        try:
            return bool(self.metric(name, "leading"))
        except OSError:
            return False


@pytest.fixture(scope="module")
def installation(control_plane_programs, argo_program) -> Iterator[FaultyInstallation]:
    """Two replicas of `plan` and `queue`, with queues and gates."""
    options = InstallationOptions(
        features=("gates", "queue"), planners=2, queues=2, policy=POLICY, argo=argo_program
    )
    with ControlPlane(PlaneOptions(simulate_pods=False)) as plane:
        housekeeping.add_nodes(plane.api, *taxi_nodes())
        with FaultyInstallation(plane, options) as running:
            yield running


@dataclass
class Load:
    """Runs of two namespaces.

    Attributes:
        teams: the namespaces, and their quotas.
        workflow: the Workflow of every run.
        runs: runs that were submitted.
    """

    teams: dict[Team, Quota]
    workflow: JsonObject
    runs: list[tuple[Team, str]] = field(default_factory=list)

    def submit(self, number: int = 1) -> None:
        """Submit so many runs in each namespace."""
        self.runs += [
            (team, team.submit(self.workflow)) for team in self.teams for _ in range(number)
        ]

    def end(self, record: RunRecord) -> None:
        """Wait until all have ended well; nothing may be left, and no quota have been exceeded."""
        for team, run in self.runs:
            team.wait_for_success(run)
        wait_until(lambda: not any(map(left_of, self.teams)), "all to be done", 90)
        quotas = {team.name: quota for team, quota in self.teams.items()}
        steps = {(team.name, run): len(STEP_SECONDS) for team, run in self.runs}
        record.check(quotas, steps)


def left_of(team: Team) -> list[str]:
    """What still waits or counts in a namespace."""
    gated = [pod for pod in team.pods() if pod["spec"].get("schedulingGates")]
    held = [run for run in team.api.list(ARGO_VERSION, "Workflow", team.name) if is_held(run)]
    counted = [key for key in ("waiting", "admitted") if status(team).get(key)]
    return [*(each["metadata"]["name"] for each in (*gated, *held)), *counted]


@pytest.fixture(scope="module")
def workflow() -> JsonObject:
    return chain("outage", *STEP_SECONDS)


@pytest.fixture
def load(installation, workflow) -> Iterator[Load]:
    """Two namespaces with quotas, in which nothing has been submitted."""
    installation.wait_at_work()
    with team_of(installation) as first, team_of(installation) as second:
        teams = dict(zip((first, second), QUOTAS, strict=True))
        for team, quota in teams.items():
            cpu = {"name": "cpu", "amount": f"{quota.cpu_milli}m"}
            set_queue(team, quota={"runs": quota.runs, "resources": [cpu]})
        yield Load(teams, workflow)
        for team in teams:
            team.tidy()


@pytest.fixture
def record(load, installation) -> Iterator[RunRecord]:
    with RunRecord(installation.api) as recording:
        yield recording


def test_an_api_server_that_fails_two_of_five_requests(installation, load, record):
    """For a minute; half of the requests that fail have been done."""
    before = installation.proxy.writes.copy()
    with installation.proxy.failing(0.4):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            load.submit()
            time.sleep(5)
    load.end(record)
    failed = installation.proxy.writes - before
    print(f"writes that failed: {failed}")
    assert min(failed[fault] for fault in Fault) >= 10


def test_a_store_that_stands_still(installation, load, record):
    load.submit(4)
    time.sleep(2)
    with installation.store_paused():
        time.sleep(25)
    load.submit()
    # It ends when it loses its Lease; a Deployment starts it again.
    time.sleep(2)
    load.submit()
    if not installation.processes[SCHEDULER].running:
        installation.restart(SCHEDULER)
    load.submit()
    load.end(record)


def test_leaders_that_hang_until_others_lead(installation, load, record):
    load.submit(2)
    hung = [installation.leader("plan"), installation.leader("queue")]
    with contextlib.ExitStack() as hanging:
        for name in hung:
            hanging.enter_context(installation.paused(name))
        for _ in range(5):
            time.sleep(3)
            load.submit()
        for process in ("plan", "queue"):
            installation.leader(process, *hung)
    load.submit(2)
    load.end(record)


def test_planners_that_are_killed_five_times(installation, load, record):
    """Those who lead are; each second time one of them before it leads again."""
    killed = 0
    while killed < 5:
        load.submit()
        leader = installation.leader("plan")
        for _ in range(2):
            time.sleep(1)
            installation.kill(leader)
            installation.restart(leader)
            killed += 1
            load.submit()
    load.end(record)
