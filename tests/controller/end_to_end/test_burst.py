"""A hundred runs that are submitted within seconds: each is planned before its first step."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from kfp_placement_controller.runs.planner_parameters import PlanningParams
from tests.controller.cluster_bench.recorder import SeenPlan
from tests.controller.end_to_end.history import History, RunWrites
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.end_to_end.taxi_runs import is_marked
from tests.controlplane import housekeeping, objects
from tests.controlplane.argo.state import LABEL_WORKFLOW
from tests.controlplane.waiting import wait_until
from tests.support.installation import PLANNER, Installation

RUNS = 100
STEPS = 2
MOST_WRITES_PER_STAGE = 3
"""A stage: the plan that is made at once, or an improvement."""

MOST_NEWS = 2
"""Limit of changes of state that an undisturbed run reports: it runs, it has ended."""

NEWS_OF_A_HOLD = 2
"""Additional changes of state where Argo's stand-in starts a run late: it waits, it runs."""

MOST_ROWS = STEPS * 3
"""Limit of writes of rows: a step waits, runs and ends; the same seconds make one write."""

SECONDS_BETWEEN_ROWS = PlanningParams().status_seconds
SEEN_LATE_SECONDS = 3.0
"""Delay with which a watch may show the first write after the last one."""

LEAST_SHARE_IN_TIME = 0.99
MOST_SECONDS_TO_SUBMIT = 30.0
ROOMY = "roomy-node"


@dataclass(frozen=True)
class Burst:
    """What has been seen of it.

    Attributes:
        submitted_seconds: from the first submission to the last.
        phases: of the Workflows at their end.
        in_time: runs whose plan was there before the first pod of a step.
        delays_seconds: from the end of a submission to the first sight of the plan.
        writes: of each run's placement.
    """

    submitted_seconds: float
    phases: Sequence[str]
    in_time: int
    delays_seconds: Sequence[float]
    writes: Sequence[RunWrites]


@pytest.fixture(scope="module")
def burst(installation):
    """One burst of runs, submitted once for all tests."""
    labels = {"kfp-placement.dev/store-bandwidth": "1T"}
    room = {"cpu": "200", "memory": "500Gi", "pods": "2000"}
    housekeeping.add_nodes(installation.api, objects.node(ROOMY, room, labels))
    with installation.namespace() as team, History(installation.api) as history:
        yield submit_burst(installation, team, history)
    housekeeping.remove_nodes(installation.api, ROOMY)


def submit_burst(installation: Installation, team: str, history: History) -> Burst:
    workflow = chain("tiny", *[0.1] * STEPS, cpu="100m")
    before = writes(installation)

    def submit(_: int) -> tuple[str, float]:
        return installation.submit(workflow, team), time.monotonic()

    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        submitted = dict(pool.map(submit, range(RUNS)))
    ended = [installation.wait_for_end(run, team, timeout_seconds=240) for run in submitted]
    first_pods: dict[str, int] = {}
    for pod in filter(is_marked, installation.pods(team)):
        run = pod["metadata"]["labels"][LABEL_WORKFLOW]
        first_pods[run] = min(first_pods.get(run, 2**63), history.pod(pod).created_version)
    first_plans = {run: first_plan(history.written(run, team)) for run in submitted}
    return Burst(
        submitted_seconds=max(submitted.values()) - began,
        phases=[each["status"]["phase"] for each in ended],
        in_time=sum(first_plans[run].version < first_pods[run] for run in submitted),
        delays_seconds=sorted(first_plans[run].seconds - at for run, at in submitted.items()),
        writes=all_writes(installation, history, team, list(submitted), before),
    )


def first_plan(written: Sequence[SeenPlan]) -> SeenPlan:
    """The first version that says of steps where they go."""
    return next(each for each in written if each.placement.spec.steps)


def all_writes(
    installation: Installation, history: History, team: str, runs: Sequence[str], before: float
) -> list[RunWrites]:
    """Those of every run up to its end; the history has missed none that the planner counts."""

    def has_succeeded(run: str) -> bool:
        status = history.written(run, team)[-1].placement.status
        return status is not None and status.phase == "Succeeded"

    wait_until(lambda: all(map(has_succeeded, runs)), "all placements to say the end")

    def seen() -> int:
        return sum(len(history.written(run, team)) for run in runs)

    def counted() -> float:
        return writes(installation) - before

    wait_until(
        lambda: seen() == counted(), "all writes to be seen", state=lambda: (seen(), counted())
    )
    return [RunWrites.of(history.written(run, team)) for run in runs]


def writes(installation: Installation) -> float:
    """Of placements and their status, as the planner counts them."""
    return installation.metric(PLANNER, "api_writes_total", kind="PipelinePlacement")


def test_every_run_ends(burst):
    assert burst.submitted_seconds <= MOST_SECONDS_TO_SUBMIT
    assert set(burst.phases) == {"Succeeded"}


def test_runs_are_planned_before_their_first_step(burst):
    delays = burst.delays_seconds
    print(f"plans after {delays[len(delays) // 2]:.2f} s (median), {delays[-2]:.2f} s (p99)")
    assert burst.in_time >= LEAST_SHARE_IN_TIME * RUNS


def test_few_writes_are_needed(burst):
    writes = burst.writes
    stages = [count for each in writes for count in each.stages.values()]
    print(
        f"{sum(each.total for each in writes) / RUNS:.1f} writes a run: of {len(stages) / RUNS:.1f}"
        f" stages at most {max(stages)} each, rows at most {max(each.rows for each in writes)},"
        f" news at most {max(len(each.news) for each in writes)}"
        f" in {max(each.seconds for each in writes):.0f} s"
    )
    assert max(stages) <= MOST_WRITES_PER_STAGE
    for each in writes:
        assert len(each.news) <= MOST_NEWS + NEWS_OF_A_HOLD * each.holds, each.news
        assert each.rows <= MOST_ROWS
        assert each.rows <= (each.seconds + SEEN_LATE_SECONDS) / SECONDS_BETWEEN_ROWS
