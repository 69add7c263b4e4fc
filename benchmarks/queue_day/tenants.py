"""Runs of several namespaces on one day, and what one of them submits to harm the others."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from random import Random
from typing import NamedTuple

from benchmarks.queue_day.nodes import NODES
from benchmarks.queue_day.runs import DAY_SECONDS, Amounts, Run, Step, draw_run

LARGE_NODES = 3 * NODES
"""The cluster that three namespaces share: three times that of the day."""

TENANTS = 3
_ASKED_SHARE = 0.6
_MOST_GPUS = 4
"""Half of what is the part of each namespace."""

_MOST_GPUS_OF_POD = 2
"""Half of a node: kube-scheduler gives no whole node to a pod while smaller ones come."""

_HIGHEST = 1_000_000
_BIG = Amounts(4, 12, 1)
_NOTHING = Amounts(0, 0)
_HOUR_SECONDS = 3600.0


class Attack(StrEnum):
    """Ways in which the first namespace harms the others, beside its runs."""

    NONE = "none"
    ARRIVALS = "arrivals"
    SIZE = "size"
    PRIORITIES = "priorities"
    SUSPENDED = "suspended giants"


class TenantRun(NamedTuple):
    """A run with its namespace and priority.

    Attributes:
        run: the run.
        tenant: number of its namespace.
        priority: priority that it asks for.
    """

    run: Run
    tenant: int
    priority: int = 0


def draw_tenants(seed: int, attack: Attack) -> list[TenantRun]:
    """Draw the runs of a day, in the order in which they are submitted.

    Each namespace asks for 60% of its third of what is scarce, the GPUs. Runs of the others are the
    same whatever the first one does.

    Args:
        seed: seed of the day.
        attack: way in which the first namespace harms the others.
    """
    runs = [
        TenantRun(run, tenant)
        for tenant in range(TENANTS)
        for run in _steady(Random(f"{seed} {tenant}"))
    ]
    if attack is Attack.PRIORITIES:
        runs = [each._replace(priority=_HIGHEST * (each.tenant == 0)) for each in runs]
        # It asks for three times as much, too.
        runs += [
            TenantRun(run, 0, _HIGHEST)
            for n in range(3)
            for run in _steady(Random(f"{seed} {n} more"))
        ]
    runs += [TenantRun(run, 0) for run in _attack(attack, Random(f"{seed} {attack}"))]
    return sorted(runs, key=lambda each: each.run.submitted_seconds)


def _steady(rng: Random) -> Iterator[Run]:
    """Yield runs at a steady rate until they have asked for their part of the day."""
    gpus = sum(node.gpu for node in LARGE_NODES)
    asked = _ASKED_SHARE * gpus / TENANTS * DAY_SECONDS
    runs = []
    while asked > 0:
        run = draw_run(rng)
        if run.most_gpus > _MOST_GPUS or _largest_pod(run) > _MOST_GPUS_OF_POD:
            continue
        asked -= sum(
            step.requests.gpu * step.actual_seconds for stage in run.stages for step in stage
        )
        runs.append(run)
    moments = sorted(rng.uniform(0, DAY_SECONDS) for _ in runs)
    for run, moment in zip(runs, moments, strict=True):
        yield replace(run, submitted_seconds=moment)


def _largest_pod(run: Run) -> int:
    return max(step.requests.gpu for stage in run.stages for step in stage)


def _attack(attack: Attack, rng: Random) -> Iterator[Run]:
    if attack is Attack.ARRIVALS:
        # Nearly as much as the whole cluster can do in a day, in four bursts of small runs.
        for hour in (1, 7, 13, 19):
            for _ in range(100):
                yield Run(hour * _HOUR_SECONDS, (_steps(1, 2400 * rng.uniform(0.5, 1.5)),) * 2)
    elif attack is Attack.SIZE:
        for hour in range(0, 24, 2):
            yield Run(hour * _HOUR_SECONDS, (_steps(24, 1800.0),) * 4)
    elif attack is Attack.SUSPENDED:
        pause = (Step(_NOTHING, 2 * DAY_SECONDS, 2 * DAY_SECONDS),)
        for hour in range(0, 24, 2):
            yield Run(hour * _HOUR_SECONDS, (pause, _steps(24, 600.0)))


def _steps(count: int, seconds: float) -> tuple[Step, ...]:
    return count * (Step(_BIG, seconds, seconds),)


def draw_backlog(seed: int, runs_each: Sequence[int]) -> list[TenantRun]:
    """Draw runs of one step and at most 5% of the cluster, more than a day can do.

    Args:
        seed: seed of the runs.
        runs_each: number of runs of each namespace, all submitted at the beginning.
    """
    rng = Random(seed)
    runs = []
    for tenant, number in enumerate(runs_each):
        for _ in range(number):
            seconds = rng.uniform(2400, 4800)
            step = Step(Amounts(rng.choice([2, 4, 8]), 16, 1), seconds, seconds)
            runs.append(TenantRun(Run(0.0, ((step,),)), tenant))
    rng.shuffle(runs)
    return runs
