"""A tenant asks so much of the planner that the plans of another namespace come late, or never."""

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import pytest

from kfp_placement_controller.connection import COMPONENT
from kfp_placement_engine.contract.keys import API_VERSION, PLAN_GATE
from kfp_placement_engine.contract.policy import NamespaceLimits
from kfp_placement_kube.kinds import JsonObject
from tests.controlplane import housekeeping
from tests.controlplane.argo.watching import Watched, key_of
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.controlplane.waiting import wait_until
from tests.support.attacks import (
    Attack,
    annotations,
    costly_run,
    incompressible_run,
    marked_pod,
    planner_memory_bytes,
    recorded_run,
    run_of_steps,
    seconds_to_plan,
)
from tests.support.installation import PLANNER, Installation, InstallationOptions
from tests.support.process_usage import cpu_seconds
from tests.support.taxi_cluster import taxi_nodes

LARGE_STEPS = 6_000
FITTING = NamespaceLimits().planned_steps // LARGE_STEPS
"""Large runs that the budget of a namespace lets in."""

MOST_MEMORY_BYTES = 300e6
TIMEOUT_SECONDS = 240.0

_CREATORS = 8
_NUMBERS = itertools.count()


@dataclass
class Besieged:
    """An installation, with a tenant that attacks and a team that waits for its plans.

    Attributes:
        installation: the installation.
        tenant, team: their namespaces.
        planned: keys of the runs that have got a plan, in that order.
    """

    installation: Installation
    tenant: str
    team: str
    planned: list[tuple[str, str]] = field(default_factory=list)

    def placement_changed(self, item: JsonObject) -> None:
        """Note a run that has got a plan."""
        if item["spec"]["revision"] and key_of(item) not in self.planned:
            self.planned.append(key_of(item))

    def create(self, items: Sequence[JsonObject], *last: JsonObject) -> None:
        """Create objects a few at a time, and `last`; the planner hears of all of them at once."""
        create = self.installation.api.create
        with self.installation.paused(PLANNER), ThreadPoolExecutor(_CREATORS) as pool:
            list(pool.map(create, items))
            list(map(create, last))

    def large_runs(self, count: int) -> list[JsonObject]:
        """Runs of the tenant that nobody begins."""
        return [
            run_of_steps(LARGE_STEPS, f"large-{next(_NUMBERS)}", self.tenant) for _ in range(count)
        ]

    def small_run(self) -> JsonObject:
        """One more run of the team."""
        return run_of_steps(10, f"small-{next(_NUMBERS)}", self.team)

    def planned_before(self, run: JsonObject) -> int:
        """How many runs of the tenant get a plan before a run of the team."""
        wait_until(lambda: key_of(run) in self.planned, "a plan of the team", TIMEOUT_SECONDS)
        before = self.planned[: self.planned.index(key_of(run))]
        return sum(namespace == self.tenant for namespace, _ in before)

    def plan_seconds(self) -> float:
        """How long the team waits for the plan of one more run."""
        return seconds_to_plan(self.installation, self.small_run(), TIMEOUT_SECONDS)

    def events(self, *reasons: str) -> list[str]:
        """Names of the tenant's objects that our events are about, those with these reasons."""
        events = self.installation.api.list("events.k8s.io/v1", "Event", self.tenant)
        return sorted(
            each["regarding"]["name"]
            for each in events
            if each["reportingController"] == COMPONENT
            and (not reasons or each["reason"] in reasons)
        )

    def wait_for_runs_over_budget(self, count: int) -> None:
        """Wait until so many runs of the tenant go on without a plan."""
        metric = partial(
            self.installation.metric, PLANNER, "runs_over_budget", namespace=self.tenant
        )
        wait_until(lambda: metric() == count, f"{count} runs over budget", TIMEOUT_SECONDS, metric)

    def gated_pods(self, namespace: str) -> int:
        """How many pods of a namespace have our gate."""
        pods = self.installation.api.list("v1", "Pod", namespace)
        return sum({"name": PLAN_GATE} in pod["spec"].get("schedulingGates", ()) for pod in pods)

    def planner_cpu_seconds(self) -> float:
        """What the planner has computed, without its searches."""
        return cpu_seconds(self.installation.processes[PLANNER].pid)


@pytest.fixture(scope="module")
def gated_installation(control_plane_programs) -> Iterator[Installation]:
    """Gates, and nobody who begins runs or binds pods."""
    options = InstallationOptions(features=("gates",), stand_ins=False)
    with ControlPlane(PlaneOptions(simulate_pods=False)) as plane:
        housekeeping.add_nodes(plane.api, *taxi_nodes())
        with Installation(plane, options) as running:
            yield running


@pytest.fixture
def besieged(gated_installation) -> Iterator[Besieged]:
    running = gated_installation
    with running.namespace() as tenant, running.namespace() as team:
        seen = Besieged(running, tenant, team)
        watch = Watched(running.api, API_VERSION, "PipelinePlacement", seen.placement_changed)
        watch.start()
        try:
            yield seen
        finally:
            watch.stop()
            for namespace in (tenant, team):
                for run in running.api.list("argoproj.io/v1alpha1", "Workflow", namespace):
                    running.api.delete(run)
    assert planner_memory_bytes(running) < MOST_MEMORY_BYTES


def test_large_runs_are_planned_after_the_small_run_of_another_namespace(besieged):
    """The tenant gains the time of what is under way: of one of its runs, however many wait."""
    small = besieged.small_run()
    besieged.create(besieged.large_runs(6), small)
    assert besieged.planned_before(small) <= 1


def test_a_thousand_steps_in_tiny_runs_are_planned_after_the_run_of_another_namespace(besieged):
    """The tenant gains a slice of the planner's time, some 0.1 s."""
    tiny = [run_of_steps(1, f"tiny-{number}", besieged.tenant) for number in range(150)]
    small = besieged.small_run()
    besieged.create(tiny, small)
    assert besieged.planned_before(small) <= 50


def test_what_is_beyond_the_budget_of_a_namespace_goes_on_without_a_plan(besieged):
    """The tenant gains the steps of the budget, and its pods beyond that wait for nobody."""
    large = besieged.large_runs(FITTING + 3)
    besieged.create(large)
    beyond = sorted(run["metadata"]["name"] for run in large)
    wait_until(lambda: len(besieged.events("OverBudget")) == 3, "three events", TIMEOUT_SECONDS)
    names = besieged.events("OverBudget")
    assert set(names) < set(beyond)
    besieged.wait_for_runs_over_budget(3)
    running = besieged.installation
    owner = running.workflow(names[0], besieged.tenant)
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": "Workflow",
        "name": names[0],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    for number in range(20):
        running.api.create(marked_pod(f"p-{number}", besieged.tenant, names[0], reference))
    # Far before the deadline of a gate, which is 60 s.
    wait_until(lambda: not besieged.gated_pods(besieged.tenant), "no gate is left", 30)
    assert besieged.events("OverBudget") == names
    assert besieged.plan_seconds() < TIMEOUT_SECONDS
    wait_until(lambda: len(besieged.planned) > FITTING, "plans", TIMEOUT_SECONDS)
    for run in large:
        if run["metadata"]["name"] not in names:
            running.api.delete(run)
    besieged.wait_for_runs_over_budget(3 - FITTING)


def test_few_steps_in_large_objects_use_up_the_budget(besieged):
    """The tenant gains plans of as many bytes as runs of ordinary steps have."""
    padding = [{"name": f"p{number}", "value": f"{number:08}"} for number in range(6_000)]
    padded = [run_of_steps(1, f"padded-{number}", besieged.tenant) for number in range(160)]
    for run in padded:
        run["spec"]["arguments"] = {"parameters": padding}
    besieged.create(padded)
    wait_until(
        lambda: besieged.installation.metric(
            PLANNER, "runs_over_budget", namespace=besieged.tenant
        ),
        "runs over budget",
        TIMEOUT_SECONDS,
    )
    assert besieged.plan_seconds() < TIMEOUT_SECONDS


def test_few_steps_that_take_long_come_after_the_small_run_of_another_namespace(besieged):
    """The tenant gains the time of one of its runs, as by runs of thousands of steps."""
    costly = [costly_run(2_000, f"costly-{number}", besieged.tenant) for number in range(5)]
    small = besieged.small_run()
    besieged.create(costly, small)
    assert besieged.planned_before(small) <= 1


def test_records_of_many_steps_take_little_time_and_memory(besieged):
    """The tenant gains 0.5 s of CPU for each patch, in its turn, and no memory for records."""
    recorded = [recorded_run(20_000, f"recorded-{number}", besieged.tenant) for number in range(8)]
    before = besieged.planner_cpu_seconds()
    besieged.create(recorded)
    patches = 40
    with Attack(annotations(besieged.installation, recorded, patches)) as attack:
        besieged.plan_seconds()
        attack.wait(TIMEOUT_SECONDS)
    besieged.plan_seconds()
    assert besieged.planner_cpu_seconds() - before < 0.5 * (len(recorded) + patches)


def test_objects_that_cannot_be_compressed_are_forgotten(besieged):
    """The tenant gains the memory of its budget, however many objects of 1 MB it creates."""
    count, size = 120, 1_000_000
    fat = [incompressible_run(size, f"fat-{number}", besieged.tenant) for number in range(count)]
    before = planner_memory_bytes(besieged.installation)
    besieged.create(fat)
    metric = partial(
        besieged.installation.metric, PLANNER, "runs_over_budget", namespace=besieged.tenant
    )
    wait_until(lambda: metric() > count / 2, "runs over budget", TIMEOUT_SECONDS, metric)
    besieged.plan_seconds()
    assert planner_memory_bytes(besieged.installation) - before < 0.8 * size * count


def test_patches_of_large_runs_cost_little(besieged):
    """The tenant gains 0.3 s of the planner's CPU for each patch, and no reading of its runs."""
    large = besieged.large_runs(FITTING)
    besieged.create(large)
    wait_until(lambda: len(besieged.planned) == FITTING, "plans", TIMEOUT_SECONDS)
    before = besieged.planner_cpu_seconds()
    patches = 20
    with Attack(annotations(besieged.installation, large, patches)) as attack:
        besieged.plan_seconds()
        attack.wait(TIMEOUT_SECONDS)
    besieged.plan_seconds()
    assert besieged.planner_cpu_seconds() - before < 0.3 * patches


def test_gates_of_pods_of_no_run_come_off_beside_plans(besieged):
    """The tenant gains nothing: before its gates are off, another namespace has its plan."""
    stray = [marked_pod(f"stray-{number}", besieged.tenant, "none") for number in range(500)]
    small = besieged.small_run()
    besieged.create(stray, small)
    wait_until(lambda: key_of(small) in besieged.planned, "a plan of the team", TIMEOUT_SECONDS)
    assert besieged.gated_pods(besieged.tenant)
    wait_until(lambda: not besieged.gated_pods(besieged.tenant), "no gate is left", TIMEOUT_SECONDS)
    assert not besieged.events()


def test_pods_that_say_much_take_little_memory(besieged):
    """The tenant gains less than 0.1 MB of the planner's memory for each pod of 240 kB."""
    api = besieged.installation.api
    run = api.create(run_of_steps(1, "own", besieged.tenant))
    wait_until(lambda: key_of(run) in besieged.planned, "a plan", TIMEOUT_SECONDS)
    owner = {
        **{key: run[key] for key in ("apiVersion", "kind")},
        **{key: run["metadata"][key] for key in ("name", "uid")},
        "controller": True,
    }
    before = planner_memory_bytes(besieged.installation)

    def make(number: int) -> None:
        pod = marked_pod(f"fat-{number}", besieged.tenant, "own", owner)
        del pod["spec"]["schedulingGates"]
        name = next(iter(pod["metadata"]["annotations"]))
        pod["metadata"]["annotations"][name] = f"{number}-" + "x" * 240_000
        made = api.create(pod)
        if number % 2:
            api.patch(made, {"status": {"phase": "Failed"}}, part="status")
            api.delete(made, 0)

    count = 300
    with ThreadPoolExecutor(_CREATORS) as pool:
        list(pool.map(make, range(count)))
    besieged.plan_seconds()
    assert planner_memory_bytes(besieged.installation) - before < 0.1e6 * count
    for pod in api.list("v1", "Pod", besieged.tenant):
        api.delete(pod, 0)


def test_a_run_that_cannot_be_read_is_read_once(besieged):
    """The tenant gains one reading of at most 10,000 steps for each change of what it asks for."""
    wide = run_of_steps(12_000, "too-wide", besieged.tenant)
    templates = [
        {
            "name": f"level-{level}",
            "dag": {
                "tasks": [
                    {"name": f"t{number}", "template": f"level-{level + 1}"} for number in range(10)
                ]
            },
        }
        for level in range(40)
    ]
    work = run_of_steps(1, "too-deep", besieged.tenant)["spec"]["templates"][1]
    deep = run_of_steps(1, "too-deep", besieged.tenant) | {
        "spec": {
            "entrypoint": "level-0",
            "templates": [*templates, {**work, "name": "level-40"}],
        }
    }
    refused = [wide, deep]
    before = besieged.planner_cpu_seconds()
    besieged.create(refused)
    wait_until(
        lambda: besieged.events("Misconfigured") == ["too-deep", "too-wide"],
        "events",
        TIMEOUT_SECONDS,
    )
    with Attack(annotations(besieged.installation, refused, 30)) as attack:
        attack.wait(TIMEOUT_SECONDS)
    besieged.plan_seconds()
    assert besieged.planner_cpu_seconds() - before < 15
    assert besieged.events("Misconfigured") == ["too-deep", "too-wide"]


def test_large_runs_that_end_leave_nothing_behind(besieged):
    """The tenant gains no memory by runs that it ends for others to come in."""
    for _ in range(3):
        large = besieged.large_runs(FITTING)
        for run in large:
            besieged.installation.api.create(run)
        keys = set(map(key_of, large))
        wait_until(lambda: keys <= set(besieged.planned), "plans", TIMEOUT_SECONDS)  # noqa: B023
        for run in large:
            besieged.installation.api.patch(
                run,
                {
                    "metadata": {"labels": {"workflows.argoproj.io/completed": "true"}},
                    "status": {"phase": "Failed", "finishedAt": "2026-01-01T00:00:00Z"},
                },
            )
    besieged.plan_seconds()
    assert planner_memory_bytes(besieged.installation) < MOST_MEMORY_BYTES
