"""Fairness between namespaces: days of three, of which one is hostile, and shares by weights."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean

from benchmarks.queue_day.fair_queue import FairQueues
from benchmarks.queue_day.nodes import NODES
from benchmarks.queue_day.runs import DAY_SECONDS, Amounts
from benchmarks.queue_day.simulation import simulate
from benchmarks.queue_day.tenants import (
    LARGE_NODES,
    TENANTS,
    Attack,
    TenantRun,
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
_MOST_LONGER_ATTACKED = 0.2
_MOST_BEYOND = 0.01


class Sharing(StrEnum):
    """Ways in which three namespaces use nodes."""

    ONE_QUEUE = "one queue"
    QUEUES = "a queue each"
    APART = "nodes of its own"


@dataclass(frozen=True)
class Spread:
    """Distribution of times in seconds."""

    median: float
    mean: float
    p99: float
    longest: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Spread":
        """Return the distribution of these times."""
        ordered = sorted(seconds)
        last = len(ordered) - 1
        median, p99 = (ordered[min(last, int(share * len(ordered)))] for share in (0.5, 0.99))
        return cls(median, fmean(ordered), p99, ordered[last])

    def minutes(self, digits: int) -> str:
        """Return median, mean, 99th percentile and maximum in minutes, as a cell of a table."""
        times = (self.median, self.mean, self.p99, self.longest)
        return " / ".join(f"{each / 60:.{digits}f}" for each in times)


@dataclass(frozen=True)
class FairDay:
    """Days of three namespaces.

    Attributes:
        attack: way in which the first namespace harms the others.
        sharing: way in which they use the nodes.
        runs: number of runs of the others, over all days.
        waits: times that runs of the others wait in their queues.
        completions: times from submission to end of these.
        all_completion_seconds: mean time from submission to end of all runs.
        stops: number of times that a run was stopped for another.
        unfinished: number of runs that never end.
    """

    attack: Attack
    sharing: Sharing
    runs: int
    waits: Spread
    completions: Spread
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


def measure_fair_days(seeds: Sequence[int], progress: Callable[[str], None]) -> list[FairDay]:
    """Simulate the days without an attack, in each way to share, and then with each attack.

    Args:
        seeds: seeds of the days.
        progress: callback for the progress.
    """
    honest = [(Attack.NONE, sharing) for sharing in Sharing]
    attacked = [(each, Sharing.QUEUES) for each in Attack if each is not Attack.NONE]
    days = []
    for attack, sharing in honest + attacked:
        progress(f"three namespaces, {attack}, {sharing}")
        days.append(_fair_day(attack, sharing, seeds))
    return days


def _fair_day(attack: Attack, sharing: Sharing, seeds: Sequence[int]) -> FairDay:
    times = _Times()
    for seed in seeds:
        runs = draw_tenants(seed, attack)
        if sharing is Sharing.APART:
            for tenant in range(TENANTS):
                times.simulate([each for each in runs if each.tenant == tenant], NODES)
        else:
            times.simulate(runs, LARGE_NODES, apart=sharing is Sharing.QUEUES)
    return FairDay(
        attack,
        sharing,
        len(times.waits),
        Spread.of(times.waits),
        Spread.of(times.completions),
        fmean(times.all_completions),
        times.stops,
        times.unfinished,
    )


@dataclass
class _Times:
    """Times of all runs that were simulated; `waits` and `completions` of those of the others."""

    waits: list[float] = field(default_factory=list)
    completions: list[float] = field(default_factory=list)
    all_completions: list[float] = field(default_factory=list)
    stops: int = 0
    unfinished: int = 0

    def simulate(
        self, runs: Sequence[TenantRun], nodes: Sequence[Amounts], *, apart: bool = True
    ) -> None:
        queues = FairQueues(runs, nodes, TENANTS * [1.0], apart=apart)
        outcome = simulate(
            [each.run for each in runs], queues, nodes=nodes, tick_seconds=_TICK_SECONDS
        )
        others = [number for number, each in enumerate(runs) if each.tenant]
        self.waits += [queues.waited_seconds[number] for number in others]
        took = outcome.completion_seconds
        self.completions += [took[number] for number in others if number in took]
        self.all_completions += took.values()
        self.stops += queues.stops
        self.unfinished += outcome.unfinished


def measure_shares(seeds: Sequence[int]) -> Shares:
    """Simulate days on which all namespaces always have runs waiting.

    The first two hours, in which the cluster fills, do not count.
    """
    wanted = [weight / sum(WEIGHTS) for weight in WEIGHTS]
    by_seed = [_shares(seed) for seed in seeds]
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
    one_queue, honest, _, *attacked = days
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
        beyond_seconds = each.waits.mean - _MOST_WAIT * honest.waits.mean
        targets += [
            Target(
                f"{each.attack}: waits of the others beyond {_MOST_WAIT:g} times those without it,"
                " beside their completion",
                max(0.0, beyond_seconds) / honest.completions.mean,
                _MOST_BEYOND,
            ),
            Target(
                f"{each.attack}: runs of the others take longer than without it",
                each.completions.mean / honest.completions.mean - 1,
                _MOST_LONGER_ATTACKED,
            ),
        ]
    return targets


def fairness_parts(
    days: Sequence[FairDay], shares: Shares, targets: Sequence[Target], seeds: Sequence[int]
) -> list[Table | Sequence[str]]:
    """Return the page: the method, a table of attacks, and the targets.

    Args:
        days: days of three namespaces.
        shares: shares of namespaces that always had runs waiting.
        targets: aims for both.
        seeds: seeds of the days.
    """
    rows = [
        [
            str(each.attack),
            str(each.sharing),
            str(each.runs),
            each.waits.minutes(2),
            each.completions.minutes(1),
            f"{each.all_completion_seconds / 60:.1f}",
            str(each.stops),
            str(each.unfinished),
        ]
        for each in days
    ]
    headings = [
        "attack", "sharing", "runs", "wait (min)", "completion (min)", "of all (min)", "stops",
        "unfinished",
    ]  # fmt: skip
    parts = ", ".join(f"{share:.1%}" for share in shares.shares)
    return [
        [
            f"{machine()}. Seeds {', '.join(map(str, seeds))}, each until its last run has ended.",
            "Three namespaces on three times the nodes. Each asks for 60% of its third of the GPUs,"
            " at a steady rate, in runs of at",
            "most half of its third, whose pods take at most half of a node. Then the first one"
            " harms the others: with hundreds of",
            "runs at a time, with runs of the size of the cluster, with three times as many runs of"
            " the highest priority, or with",
            "giants that pause. `wait` and `completion` are of the runs of the two others: the time"
            " in the queue, and all time from",
            "submission to end; each as median / mean / 99th percentile / maximum. With"
            f" `{Sharing.APART}` each namespace has a third",
            "of the nodes, and nobody can harm it. Without an attack hardly a run waits, so 1.3"
            " times these waits is nearly 0 too; aims",
            "for waits are therefore beside the completion.",
        ],
        Table("Three namespaces, one of them hostile", headings, rows, words=2),
        [f"Always waiting, weights 1:2:1, each run 1/24 of the GPUs: {parts} of the GPU time."],
        target_lines(targets),
    ]
