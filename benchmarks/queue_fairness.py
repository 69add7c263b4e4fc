"""Fairness between namespaces: days of three, of which one is hostile, and shares by weights."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmarks.queue_day.fair_queue import FairQueues
from benchmarks.queue_day.runs import DAY_SECONDS
from benchmarks.queue_day.simulation import simulate
from benchmarks.queue_day.tenants import (
    LARGE_NODES,
    TENANTS,
    Attack,
    draw_backlog,
    draw_tenants,
)
from benchmarks.queue_report import Target, target_lines
from benchmarks.tables import Table, machine

WEIGHTS = (1.0, 2.0, 1.0)
_RUNS_EACH = (200, 380, 200)
_TICK_SECONDS = 300.0
_WARM_SECONDS = 7200.0
_MOST_LONGER = 0.03
_MOST_FROM_SHARE = 0.05
_MOST_WAIT = 1.3
_MOST_BEYOND = 0.03


@dataclass(frozen=True)
class FairDay:
    """Days of three namespaces.

    Attributes:
        attack: way in which the first namespace harms the others.
        apart: whether each namespace has a queue; else all runs are in one.
        runs: number of runs of the others, over all days.
        wait_seconds: mean time that runs of the others wait in their queues.
        completion_seconds: mean time from submission to end of these.
        all_completion_seconds: mean time from submission to end of all runs.
        stops: number of times that a run was stopped for another.
        unfinished: number of runs that never end.
    """

    attack: Attack
    apart: bool
    runs: int
    wait_seconds: float
    completion_seconds: float
    all_completion_seconds: float
    stops: int
    unfinished: int


@dataclass(frozen=True)
class Shares:
    """Shares of namespaces that always had runs waiting.

    Attributes:
        weights: weight of each namespace.
        shares: part of the day's GPU time that each has got, the mean over seeds.
        furthest: the largest distance of a share from that by weight, as a part of the latter.
    """

    weights: tuple[float, ...]
    shares: tuple[float, ...]
    furthest: float


def measure_fair_days(seeds: int, progress: Callable[[str], None]) -> list[FairDay]:
    """Simulate the days: in one queue, in a queue each, and with each attack.

    Args:
        seeds: number of days of each.
        progress: callback for the progress.
    """
    days = []
    for attack, apart in [(Attack.NONE, False), *((each, True) for each in Attack)]:
        progress(f"three namespaces, {attack}, {'a queue each' if apart else 'one queue'}")
        days.append(_fair_day(attack, seeds, apart=apart))
    return days


def _fair_day(attack: Attack, seeds: int, *, apart: bool) -> FairDay:
    waits: list[float] = []
    completions: list[float] = []
    alls: list[float] = []
    stops = unfinished = 0
    for seed in range(seeds):
        runs = draw_tenants(seed, attack)
        queues = FairQueues(runs, LARGE_NODES, TENANTS * [1.0], apart=apart)
        outcome = simulate(
            [each.run for each in runs], queues, nodes=LARGE_NODES, tick_seconds=_TICK_SECONDS
        )
        others = [number for number, each in enumerate(runs) if each.tenant]
        waits += [queues.waited_seconds[number] for number in others]
        took = outcome.completion_seconds
        completions += [took[number] for number in others if number in took]
        alls += took.values()
        stops, unfinished = stops + queues.stops, unfinished + outcome.unfinished
    return FairDay(
        attack, apart, len(waits), fmean(waits), fmean(completions), fmean(alls), stops, unfinished
    )


def measure_shares(seeds: int) -> Shares:
    """Simulate a day on which all namespaces always have runs waiting.

    The first two hours, in which the cluster fills, do not count.
    """
    wanted = [weight / sum(WEIGHTS) for weight in WEIGHTS]
    by_seed = [_shares(seed) for seed in range(seeds)]
    furthest = max(
        abs(share / want - 1)
        for shares in by_seed
        for share, want in zip(shares, wanted, strict=True)
    )
    means = tuple(fmean(shares[n] for shares in by_seed) for n in range(TENANTS))
    return Shares(WEIGHTS, means, furthest)


def _shares(seed: int) -> Sequence[float]:
    runs = draw_backlog(seed, _RUNS_EACH)
    queues = FairQueues(runs, LARGE_NODES, WEIGHTS)
    outcome = simulate([each.run for each in runs], queues, nodes=LARGE_NODES)
    last_starts = [
        max(work.started for work in outcome.works if runs[work.run].tenant == tenant)
        for tenant in range(TENANTS)
    ]
    if min(last_starts) < DAY_SECONDS:
        raise ValueError("a namespace has no runs left before the day ends")
    gpu_seconds = [0.0] * TENANTS
    for work in outcome.works:
        began, ended = max(work.started, _WARM_SECONDS), min(work.ended, DAY_SECONDS)
        gpu_seconds[runs[work.run].tenant] += work.step.requests.gpu * max(0.0, ended - began)
    return [each / sum(gpu_seconds) for each in gpu_seconds]


def fairness_targets(days: Sequence[FairDay], shares: Shares) -> list[Target]:
    """Return the aims, and the reached values."""
    one_queue, honest, *attacked = days
    targets = [
        Target(
            "three namespaces: runs take longer in a queue each than in one",
            honest.all_completion_seconds / one_queue.all_completion_seconds - 1,
            _MOST_LONGER,
        ),
        Target(
            "always waiting, weights 1:2:1: furthest from its part of the GPU time",
            shares.furthest,
            _MOST_FROM_SHARE,
        ),
    ]
    for each in attacked:
        beyond_seconds = each.wait_seconds - _MOST_WAIT * honest.wait_seconds
        targets += [
            Target(
                f"{each.attack}: waits of the others beyond {_MOST_WAIT:g} times those without it,"
                " beside their completion",
                max(0.0, beyond_seconds) / honest.completion_seconds,
                _MOST_BEYOND,
            ),
            Target(
                f"{each.attack}: runs of the others take longer than without it",
                each.completion_seconds / honest.completion_seconds - 1,
                _MOST_WAIT - 1,
            ),
        ]
    return targets


def fairness_parts(
    days: Sequence[FairDay], shares: Shares, targets: Sequence[Target], seeds: int
) -> list[Table | Sequence[str]]:
    """Return the page: the method, a table of attacks, and the targets.

    Args:
        days: days of three namespaces.
        shares: shares of namespaces that always had runs waiting.
        targets: aims for both.
        seeds: number of days of each.
    """
    rows = [
        [
            str(each.attack),
            "yes" if each.apart else "no",
            str(each.runs),
            f"{each.wait_seconds / 60:.2f}",
            f"{each.completion_seconds / 60:.1f}",
            f"{each.all_completion_seconds / 60:.1f}",
            str(each.stops),
            str(each.unfinished),
        ]
        for each in days
    ]
    headings = [
        "attack", "a queue each", "runs", "wait (min)", "completion (min)", "of all (min)", "stops",
        "unfinished",
    ]  # fmt: skip
    parts = ", ".join(f"{share:.1%}" for share in shares.shares)
    return [
        [
            f"{machine()}. Seeds 0 to {seeds - 1}, each until its last run has ended.",
            "Three namespaces on three times the nodes. Each asks for 60% of its third of the GPUs,"
            " at a steady rate, in runs of at",
            "most half of its third, whose pods take at most half of a node. Then the first one"
            " harms the others: with hundreds of",
            "runs at a time, with runs of the size of the cluster, with three times as many runs of"
            " the highest priority, or with",
            "giants that pause. `wait` and `completion` are means over the runs of the two others:"
            " the time in the queue, and all",
            "time from submission to end.",
        ],
        Table("Three namespaces, one of them hostile", headings, rows, words=1),
        [f"Always waiting, weights 1:2:1, each run 1/24 of the GPUs: {parts} of the GPU time."],
        target_lines(targets),
    ]
