"""Promises of made-up runs whose steps are tried again, before they start and while they run.

A chain of eight steps, of which two fail often and take long; and twenty steps side by side, of
which each fails now and then, so that some step does in half of the runs. A failed attempt takes
about as long as one that ends well. Each run is forecast from all runs before it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.learning_runs.experiments import Case, promised_case
from benchmarks.learning_runs.first_runs import side_by_side, wide_cluster
from benchmarks.learning_runs.live import KEY, PASSED, Begun, Mixture, begin, options_of
from kfp_placement_engine import RunGraph, Step
from kfp_placement_engine.history import Past
from kfp_placement_engine.model.history import PastRun, Retried
from kfp_placement_engine.search.list_scheduling import list_schedule
from kfp_placement_engine.search.simulation import simulate

SEEDS, RUNS, SEEN = 20, 12, 5
"""Of each pipeline this many runs are made up, and those forecast of which `SEEN` were before."""

ATTEMPTS = 4
"""At most, at each step."""

_RATIO, _RATIO_DEVIATION = 0.9, 0.3
"""What a failed attempt takes, over the one that ends well: median, deviation of its logarithm."""

_TIMES = Mixture("", 0.05, 0.08, 0.0)


@dataclass(frozen=True)
class Flaky:
    """A pipeline of which attempts fail.

    Attributes:
        name: for people.
        graph: its runs.
        tasks: of which attempts fail.
        chance: that one does.
    """

    name: str
    graph: RunGraph
    tasks: frozenset[str]
    chance: float


def retried_runs(progress: Callable[[str], None], seeds: int = SEEDS) -> Iterator[Case]:
    """A case for each run and each share of it that has passed; groups are pipelines and shares."""
    for flaky in (_chain(), _side_by_side()):
        progress(f"retries: {flaky.name}")
        for seed in range(seeds):
            yield from _runs_of(flaky, seed)


def _runs_of(flaky: Flaky, seed: int) -> Iterator[Case]:
    random, past, ends = np.random.default_rng(seed), Past(), list[float]()
    for number in range(RUNS):
        begun = begin(flaky.graph, wide_cluster(), options_of(seed), past, _TIMES, random)
        begun, ended = _with_failed_attempts(begun, flaky, number, random)
        if number >= SEEN:
            for passed in PASSED:
                now = passed * begun.end
                promise = begun.promise(now)
                assert promise is not None
                group = f"{flaky.name}: {passed:.0%}"
                yield promised_case(KEY, group, begun.end, ends, promise.later(now))
        past.observe(ended)
        ends.append(begun.end)


def _with_failed_attempts(
    begun: Begun, flaky: Flaky, number: int, random: np.random.Generator
) -> tuple[Begun, PastRun]:
    """What happens to a run, and what it teaches once it has ended."""
    seconds = begun.problem.arrays.duration_seconds.copy()
    failed, lost = Counter[str](), defaultdict[str, float](float)
    for index, activity in enumerate(begun.lowered.activities):
        if activity.step is None or activity.step.task not in flaky.tasks:
            continue
        attempts = min(int(random.geometric(1 - flaky.chance)) - 1, ATTEMPTS - 1)
        each = seconds[index] * _RATIO * random.lognormal(0.0, _RATIO_DEVIATION)
        if attempts:
            failed[activity.step.task] += attempts
            lost[activity.step.task] += attempts * each
            seconds[index] += attempts * each
    arrays = begun.problem.arrays._replace(duration_seconds=seconds)
    placement = list_schedule(begun.lowered.problem).placement
    tried = replace(begun, true=simulate(replace(begun.problem, arrays=arrays), placement))
    ended = replace(
        tried.past_run(number),
        replayed_seconds=begun.end,
        failed_seconds=tried.end - begun.end,
        retried=tuple(Retried(task, failed[task], lost[task]) for task in failed),
    )
    return tried, ended


def _chain() -> Flaky:
    seconds = (100.0, 200.0, 50.0, 40.0, 60.0, 100.0, 30.0, 200.0)
    steps = tuple(
        Step(
            f"step-{at}",
            f"step-{at}",
            depends_on=(f"step-{at - 1}",) if at else (),
            duration_seconds=each,
            attempt_limit=ATTEMPTS,
        )
        for at, each in enumerate(seconds)
    )
    graph = RunGraph("chain", "argo-workflow", steps)
    return Flaky("chain, 25% of attempts", graph, frozenset({"step-1", "step-7"}), 0.25)


def _side_by_side() -> Flaky:
    graph = side_by_side()
    steps = tuple(replace(each, attempt_limit=ATTEMPTS) for each in graph.steps)
    tasks = frozenset(each.task for each in steps[1:-1])
    return Flaky("20 side by side, 3%", replace(graph, steps=steps), tasks, 0.03)
