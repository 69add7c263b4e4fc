"""Faults that nobody means: runs end, no quota is exceeded, and nothing is done without end."""

import resource
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kfp_placement_engine.contract.placement import ConditionType
from tests.controller.end_to_end.queues import set_queue
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.end_to_end.teams import Team, team_of
from tests.controller.hold_cases import is_held
from tests.controlplane import housekeeping
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.controlplane.waiting import wait_until
from tests.support.attacks import run_of_steps
from tests.support.installation import PLANNER, Installation, InstallationOptions
from tests.support.process_usage import descendants
from tests.support.settable_clock import SettableClock
from tests.support.taxi_cluster import taxi_nodes

HOUR = 3600
POLICY = {"engine": {"budget": "300ms"}, "defaults": {"driver": "100ms"}}
FEATURES = ("gates", "queue", "history")


class ClockedInstallation(Installation):
    """An installation whose processes have a time of day of their own.

    Attributes:
        clock: time of day of our processes.
    """

    clock: SettableClock

    def _account_variables(self, account: str) -> dict[str, str]:
        if not hasattr(self, "clock"):
            self.clock = SettableClock(self._plane.folder)
        return {**super()._account_variables(account), **self.clock.variables}


@pytest.fixture(scope="module")
def installation(control_plane_programs) -> Iterator[ClockedInstallation]:
    options = InstallationOptions(features=FEATURES, policy=POLICY)
    with ControlPlane(PlaneOptions(simulate_pods=False)) as plane:
        housekeeping.add_nodes(plane.api, *taxi_nodes())
        with ClockedInstallation(plane, options) as running:
            yield running


@pytest.fixture
def team(installation) -> Iterator[Team]:
    """A namespace whose queue lets two runs go at a time."""
    with team_of(installation) as made:
        set_queue(made, quota={"runs": 2})
        yield made
        made.tidy()


def at_work(team: Team, runs: list[str]) -> int:
    """How many runs have been let go and have not ended."""
    workflows = [team.workflow(run) for run in runs]
    return sum(
        not is_held(each)
        and each["metadata"].get("labels", {}).get("workflows.argoproj.io/completed") != "true"
        for each in workflows
    )


def all_end(team: Team, runs: list[str], timeout_seconds: float = 60.0) -> None:
    """Wait until all runs have ended well, two at a time at most."""
    left = list(runs)

    def ended() -> bool:
        assert at_work(team, runs) <= 2
        for run in tuple(left):
            labels: Mapping[str, Any] = team.workflow(run)["metadata"].get("labels", {})
            if labels.get("workflows.argoproj.io/completed") == "true":
                left.remove(run)
        return not left

    wait_until(ended, "all runs to end", timeout_seconds, lambda: left)
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


def searcher_of(planner: int) -> int | None:
    """The process that searches for the planner."""
    for pid in descendants(planner):
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
    wait_until(lambda: searcher_of(planner) not in (searcher, None), "another search process", 60)
    wait_until(lambda: planned(team, "large"), "the plan of the large run", 60)
    team.wait_for_success(run)


def planned(team: Team, run: str) -> bool:
    placement = team.placement(run)
    status = None if placement is None else placement.status
    condition = None if status is None else status.condition(ConditionType.PLANNED)
    return condition is not None and condition.status == "True"
