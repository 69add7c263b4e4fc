"""Faults that nobody means: runs end, no quota is exceeded, and nothing is done without end."""

import contextlib
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from kfp_placement_engine.contract.placement import ConditionType
from kfp_placement_engine.readers.argo.keys import COMPLETED_LABEL
from kfp_placement_kube.client import Listing
from kfp_placement_kube.exceptions import ExpiredError
from kfp_placement_kube.kinds import PODS, JsonObject, Kind
from kfp_placement_kube.watch import Watcher
from tests.controller.end_to_end.queues import set_queue
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.end_to_end.teams import Team, team_of
from tests.controller.hold_cases import is_held
from tests.controlplane import housekeeping
from tests.controlplane.argo.crds import VERSION as ARGO_VERSION
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.controlplane.waiting import wait_until
from tests.support.attacks import run_of_steps
from tests.support.breaking_proxy import BreakingProxy
from tests.support.installation import PLANNER, Installation, InstallationOptions
from tests.support.process_usage import cpu_seconds, descendants
from tests.support.scripted_api import ScriptedApi, ScriptedStream, an_object
from tests.support.settable_clock import SettableClock
from tests.support.taxi_cluster import taxi_nodes

HOUR, MINUTE = 3600, 60
LIST_SECONDS = 1.1
"""Time that a list takes: longer than a watch must live that counts as one that works."""

POLICY = {"engine": {"budget": "300ms"}, "defaults": {"driver": "100ms"}}
FEATURES = ("gates", "queue", "history")


class FaultyInstallation(Installation):
    """An installation whose processes have a clock and a way to the API server of their own.

    Attributes:
        clock: time of day of our processes.
        proxy: way to the API server.
    """

    clock: SettableClock
    proxy: BreakingProxy

    def _account_variables(self, account: str) -> dict[str, str]:
        variables = super()._account_variables(account)
        if not hasattr(self, "proxy"):
            self.clock = SettableClock(self._plane.folder)
            port = int(variables["KUBERNETES_SERVICE_PORT"])
            self.proxy = self._cleanup.enter_context(BreakingProxy(port))
        way = {"KUBERNETES_SERVICE_PORT": str(self.proxy.port)}
        return {**variables, **way, **self.clock.variables}


@pytest.fixture(scope="module")
def installation(control_plane_programs, argo_program) -> Iterator[FaultyInstallation]:
    options = InstallationOptions(features=FEATURES, policy=POLICY, argo=argo_program)
    with ControlPlane(PlaneOptions(simulate_pods=False)) as plane:
        housekeeping.add_nodes(plane.api, *taxi_nodes())
        with FaultyInstallation(plane, options) as running:
            yield running


@pytest.fixture
def team(installation) -> Iterator[Team]:
    """A namespace whose queue lets two runs go at a time."""
    with team_of(installation) as made:
        set_queue(made, quota={"runs": 2})
        yield made
        made.tidy()


def left_of(team: Team) -> list[JsonObject]:
    """The runs that have not ended, all as they are at one moment."""
    return [
        each
        for each in team.api.list(ARGO_VERSION, "Workflow", team.name)
        if each["metadata"].get("labels", {}).get(COMPLETED_LABEL) != "true"
    ]


def all_end(team: Team, runs: list[str], timeout_seconds: float = 120.0) -> None:
    """Wait until all runs have ended well, two at a time at most."""

    def ended() -> bool:
        left = left_of(team)
        assert sum(not is_held(each) for each in left) <= 2
        return not left

    wait_until(ended, "all runs to end", timeout_seconds, lambda: left_of(team))
    for run in runs:
        team.wait_for_success(run)


def test_a_clock_that_jumps_by_an_hour(installation, team):
    """Forward, and then back to an hour before the true time."""
    for offset in (HOUR, -HOUR, 0):
        runs = [team.submit(chain(f"jump{number}", 0.5, 0.5)) for number in range(3)]
        time.sleep(0.7)
        installation.clock.set(offset)
        all_end(team, runs)
    assert "Traceback" not in "".join(installation.logs(1000).values())


def test_connections_that_are_reset_at_random(installation, team):
    """For half a minute, three in ten of them every 200 ms."""
    planner = installation.processes[PLANNER].pid
    before, resets = cpu_seconds(planner), installation.proxy.resets
    runs = []
    with installation.proxy.storm():
        for number in range(6):
            runs.append(team.submit(chain(f"storm{number}", 0.3, 0.3)))
            time.sleep(5)
    all_end(team, runs)
    assert installation.proxy.resets - resets > 100
    assert cpu_seconds(planner) - before < 20
    assert installation.processes[PLANNER].pid == planner


def searcher_of(planner: int) -> int | None:
    """The process that searches for the planner."""
    for pid in descendants(planner):
        with contextlib.suppress(OSError):  # It has just ended.
            if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
    return None


def address_space(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmSize:"):
            return 1024 * int(line.split()[1])
    raise AssertionError("no VmSize")


def test_a_search_that_reaches_its_memory_limit(installation, team):
    """Its process ends for lack of memory; the plan made at once holds, and another searches on."""
    planner = installation.processes[PLANNER].pid
    searcher = wait_until(lambda: searcher_of(planner), "a process that searches")
    assert searcher is not None
    most = address_space(searcher) + 2**20
    resource.prlimit(searcher, resource.RLIMIT_AS, (most, most))
    large = run_of_steps(3000, "large", team.name, lines=100)
    team.api.create(large)
    run = team.submit(chain("beside", 0.3, 0.3))
    wait_until(lambda: searcher_of(planner) not in (searcher, None), "another search process", 120)
    wait_until(lambda: planned(team, "large"), "the plan of the large run", 120)
    team.wait_for_success(run)


def planned(team: Team, run: str) -> bool:
    placement = team.placement(run)
    status = None if placement is None else placement.status
    condition = None if status is None else status.condition(ConditionType.PLANNED)
    return condition is not None and condition.status == "True"


def as_of_others(run: JsonObject, padding: int = 0) -> JsonObject:
    """The same run, larger by this number of bytes, for a controller that does not exist."""
    labels = run["metadata"].setdefault("labels", {})
    labels["workflows.argoproj.io/controller-instanceid"] = "nobody"
    parameters = [{"name": "padding", "value": "x" * padding}]
    return {**run, "spec": {**run["spec"], "arguments": {"parameters": parameters}}}


def test_objects_of_the_largest_size(installation, team):
    """Workflows of 1.4 MB, and one of 6,000 steps, whose plan has nearly a megabyte."""
    with team_of(installation) as other:
        names = [f"padded-{number}" for number in range(3)]
        for name in names:
            team.api.create(as_of_others(run_of_steps(5, name, other.name), 1_400_000))
        team.api.create(as_of_others(run_of_steps(6000, "steps", other.name, lines=500)))
        begun = time.monotonic()
        run = team.submit(chain("beside", 0.3))
        team.wait_for_success(run, 60)
        assert time.monotonic() - begun < 60
        wait_until(lambda: all(map(other.placement, (*names, "steps"))), "plans of them", 120)
        placement = other.placement("steps")
        assert placement is not None
        assert len(placement.planned_rows().rows) == 6000
        other.tidy()


def test_a_watch_that_is_too_old_for_a_minute():
    """It lists less and less often, though lists take long, and reports no change twice."""
    version, seen, lists = 0, [], []
    api = ScriptedApi()

    def listing(kind: Kind, **selection: Any) -> Listing:
        nonlocal version
        version += 1
        lists.append(time.monotonic())
        time.sleep(LIST_SECONDS)
        return Listing(iter([an_object("stays", 1), an_object("changes", version)]), str(version))

    def stream(kind: Kind, resource_version: str, **selection: Any) -> ScriptedStream:
        if time.monotonic() - lists[0] < MINUTE:
            raise ExpiredError(410, "Expired", "too old resource version")
        return ScriptedStream([], ends=False)

    api.list, api.stream = listing, stream  # type: ignore[method-assign]
    watcher = Watcher(cast("Any", api), PODS, dict, lambda change: seen.append(change.key[1]))
    watcher.start()
    try:
        wait_until(lambda: lists and time.monotonic() - lists[0] > MINUTE + 15, "it to be over", 90)
    finally:
        watcher.stop()
    assert len(lists) <= 16
    assert lists[-1] - lists[0] > MINUTE
    assert seen.count("stays") == 1
    assert seen.count("changes") == len(lists)
