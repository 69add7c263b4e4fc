"""The search finds the optimum of tiny runs: against all plans, and against a solver of others."""

import importlib.util
import random
from typing import Any

import pytest

from benchmarks import cp_sat
from kfp_placement_engine import Cluster, MaxRuntime, PlacementProblem, RunGraph, Schedule, solve
from kfp_placement_engine.bounds.lower_bound import lower_bounds
from kfp_placement_engine.search.baselines.brute_force import brute_force
from tests.support.builders import (
    SEARCH,
    a_cluster,
    a_kfp_run,
    a_node,
    a_problem,
    a_run,
    a_step,
    a_workflow,
    cluster_of,
)

SECONDS = 1e-6
KINDS = ("direct", "store", "memory", "speeds", "devices", "selectors", "drivers")
CASES = 100
CP_SAT_CASES = 30


def a_case(kind: str, number: int) -> tuple[RunGraph, Cluster]:
    """A random run of at most 6 steps on at most 3 nodes; all times are whole seconds."""
    rng = random.Random(f"{kind} {number}")
    steps = []
    for index in range(rng.randint(4, 5 if kind == "drivers" else 6)):
        before = [f"s{other}" for other in range(index) if rng.random() < 0.3]
        extended = {"example.com/gpu": 1} if kind == "devices" and rng.random() < 0.4 else None
        zone = {"zone": rng.choice("ab")} if kind == "selectors" and rng.random() < 0.4 else {}
        steps.append(
            a_step(
                f"s{index}",
                *before,
                cpu=rng.choice([1, 1, 2, 3]),
                memory=rng.choice([2, 4, 6, 8]) if kind == "memory" else 0,
                seconds=2 * rng.randint(1, 12),
                reads=[(name, 100 * rng.choice([0, 1, 3, 6])) for name in before],
                extended=extended,
                image=rng.choice(["", "tool:1", "model:2"]) if kind == "store" else "",
                node_selector=zone,
            )
        )
    members = [
        a_node(
            f"n{node}",
            cpu=3 if kind in ("devices", "selectors") else rng.choice([3, 4]),
            memory=8,
            speed=rng.choice([0.5, 1.0, 2.0]) if kind in ("speeds", "drivers") else 1.0,
            extended={"example.com/gpu": 1} if kind == "devices" and node != 1 else {},
            labels={"zone": "ab"[node % 2]},
            images={"tool:1": 400} if kind == "store" and node == 0 else {},
            store_bytes_per_second=rng.choice([50.0, 100.0]) if kind == "store" else None,
        )
        for node in range(rng.randint(2, 3))
    ]
    make = {"direct": a_workflow, "speeds": a_workflow, "drivers": a_kfp_run}.get(kind, a_run)
    return make(*steps), a_cluster(*members)


def searched(problem: PlacementProblem, wanted: Schedule) -> Schedule:
    """The search's schedule: after 2 s, or as soon as shorter searches find what is wanted.

    A longer search is never worse, so a hit of a shorter one stands for it.
    """
    for seconds in (0.02, 0.1, 0.4, 2.0):
        schedule = solve(problem, MaxRuntime(seconds), 0, SEARCH, threads=1).schedule
        if schedule.makespan_seconds <= wanted.makespan_seconds + SECONDS:
            break
    return schedule


@pytest.mark.parametrize("number", range(CASES))
def test_the_search_equals_brute_force(dispatch, number):
    """All assignments, and for ordered dispatch all orders as well."""
    kind = KINDS[number % len(KINDS)]
    problem = a_problem(*a_case(kind, number), dispatch=dispatch)
    best = brute_force(problem, 0)
    schedule = searched(problem, best)
    assert schedule.finished.all()
    if kind == "drivers":
        # A plan may also hold its starts, which no order says where driver pods are about.
        assert schedule.makespan_seconds <= best.makespan_seconds + SECONDS
    else:
        assert schedule.makespan_seconds == pytest.approx(best.makespan_seconds, abs=SECONDS)


def as_integers(run: RunGraph, cluster: Cluster) -> dict[str, Any]:
    """The case for CP-SAT: direct transfers of 100 B/s, no pulls, no drivers."""
    number = {step.name: index for index, step in enumerate(run.steps)}
    names = ("cpu", "memory", "example.com/gpu")
    steps = []
    for step in run.steps:
        seconds: list[int | None] = []
        assert step.duration_seconds is not None
        for node in cluster.nodes:
            takes = all(node.labels[key] == value for key, value in step.node_selector.items())
            takes &= all(
                amount <= node.allocatable.get(name, 0) for name, amount in step.requests.items()
            )
            run_time = step.duration_seconds / node.speed
            assert run_time == int(run_time)
            seconds.append(int(run_time) if takes else None)
        lags = {each.producer: (each.size_bytes or 0) // 100 for each in step.inputs}
        steps.append(
            {
                "requests": [step.requests.get(name, 0) for name in names],
                "seconds": seconds,
                "after": [[number[name], lags.get(name, 0)] for name in step.depends_on],
            }
        )
    capacities = [[node.allocatable.get(name, 0) for name in names] for node in cluster.nodes]
    return {"capacities": capacities, "steps": steps}


def cp_sat_cases() -> list[tuple[RunGraph, Cluster]]:
    """What CP-SAT can model: data moves directly, or there is none to move."""
    made = []
    for number in range(CP_SAT_CASES):
        kind = ("direct", "speeds", "memory", "devices", "selectors")[number % 5]
        run, cluster = a_case(kind, 1000 + number)
        made.append((a_workflow(*run.steps), cluster))
    return made


@pytest.fixture(scope="module")
def optima():
    """CP-SAT's makespans, from a process of its own."""
    if importlib.util.find_spec("ortools") is None:
        pytest.skip("ortools is not installed")
    return cp_sat.optima([as_integers(run, cluster) for run, cluster in cp_sat_cases()])


@pytest.mark.parametrize("number", range(CP_SAT_CASES))
def test_the_search_and_brute_force_equal_cp_sat(number, optima):
    """The order of starts on each node can express the optimum."""
    problem = a_problem(*cp_sat_cases()[number], dispatch="ordered")
    best = brute_force(problem, 0)
    assert best.makespan_seconds == pytest.approx(optima[number], abs=SECONDS)
    assert all(bound.seconds <= optima[number] for bound in lower_bounds(problem))
    assert searched(problem, best).makespan_seconds == pytest.approx(optima[number], abs=SECONDS)


def test_some_of_these_optima_need_more_than_ready_dispatch(optima):
    """Else the cases would not tell the two ways of dispatch apart."""
    ready = [
        brute_force(a_problem(run, cluster, dispatch="ready"), 0).makespan_seconds
        for run, cluster in cp_sat_cases()
    ]
    assert all(least <= seconds for least, seconds in zip(optima, ready, strict=True))
    assert sum(least < seconds for least, seconds in zip(optima, ready, strict=True)) >= 2


def test_a_step_waits_on_purpose_where_that_ends_the_run_earlier():
    """`long` fits at once, beside `short`; then `wide` would have to wait for it until 10."""
    run = a_run(
        a_step("long", cpu=1, seconds=10),
        a_step("short", cpu=1, seconds=1),
        a_step("wide", "short", cpu=2, seconds=10),
        a_step("last", "wide", cpu=1, seconds=10),
    )
    problem = a_problem(run, cluster_of(1, cpu=2), dispatch="ordered")
    best = brute_force(problem, 0)
    assert best.makespan_seconds == 21
    assert best.start.tolist() == [11, 0, 1, 11]
    assert searched(problem, best).start.tolist() == [11, 0, 1, 11]
    ready = a_problem(run, cluster_of(1, cpu=2), dispatch="ready")
    assert brute_force(ready, 0).makespan_seconds == 30
