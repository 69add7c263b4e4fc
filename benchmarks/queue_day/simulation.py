"""A day, event by event: runs arrive, are admitted, make pods, and pods run where there is room.

A step waits 5 s for its driver, then its pod is there and waits for a node. A step with workers
makes them when its own pod runs, keeps its room, and works from when all of them run.
"""

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random
from typing import Protocol

from benchmarks.queue_day.nodes import NODES, Cluster
from benchmarks.queue_day.runs import WORKER, Amounts, Run, Step

DRIVER_SECONDS = 5.0


class Gatekeeper(Protocol):
    """Decides when runs may start; runs are named by their number."""

    def arrived(self, run: int, now: float) -> list[int]:
        """Take in that a run was submitted, and return the runs that start now."""

    def worked(self, work: "StepWork", now: float) -> None:
        """Take in that a step has begun to work."""

    def ended(self, run: int, stage: int, index: int, now: float) -> list[int]:
        """Take in that a step of a run has ended, and return the runs that start now."""

    def ticked(self, now: float) -> list[int]:
        """Take in that time has passed, and return the runs that start now."""

    def is_stopped(self, run: int) -> bool:
        """Return whether a run that has begun must make no new pods until it starts again."""


class AtOnce:
    """Gatekeeper that starts every run when it is submitted."""

    def arrived(self, run: int, now: float) -> list[int]:
        """Start the run."""
        return [run]

    def worked(self, work: "StepWork", now: float) -> None:
        """Ignore that a step works."""

    def ended(self, run: int, stage: int, index: int, now: float) -> list[int]:
        """Return no runs: none waits."""
        return []

    def ticked(self, now: float) -> list[int]:
        """Return no runs: none waits."""
        return []

    def is_stopped(self, run: int) -> bool:
        """Return false: no run is stopped."""
        return False


@dataclass(frozen=True)
class PodOrder:
    """Order in which waiting pods are tried.

    Attributes:
        any_order: whether the order is drawn each time, as backoff makes it; else it is the order
            of creation.
        whole_gangs: whether a step and its workers get their nodes together or not at all.
        seed: seed of the drawn orders.
    """

    any_order: bool = False
    whole_gangs: bool = False
    seed: int = 0


@dataclass(eq=False)
class Pod:
    """A pod, or with `whole_gangs` all pods of a step.

    Attributes:
        work: step that has made it.
        requests: requests of each pod in it.
    """

    work: "StepWork"
    requests: tuple[Amounts, ...]


@dataclass(eq=False)
class StepWork:
    """A step at work.

    Attributes:
        run, stage, index: number of the run, stage of the step, and index in the stage.
        step: the step with its needs.
        created: time at which its pod was created.
        placed: nodes and requests of its pods that run.
        started: time at which it began to work; infinite before that.
        ended: time at which it ended; infinite before that.
    """

    run: int
    stage: int
    index: int
    step: Step
    created: float
    placed: list[tuple[int, Amounts]] = field(default_factory=list)
    started: float = math.inf
    ended: float = math.inf

    @property
    def requests(self) -> tuple[Amounts, ...]:
        """Requests of all its pods, its own first."""
        return (self.step.requests, *(self.step.workers * [WORKER]))


@dataclass(frozen=True)
class Outcome:
    """Result of a simulated day.

    Attributes:
        completion_seconds: time from submission to end of each run that ended, by its number.
        unfinished: number of runs that never end: their steps wait for each other.
        waiting_pods: mean number of waiting pods over time.
        works: steps that have had a pod.
    """

    completion_seconds: dict[int, float]
    unfinished: int
    waiting_pods: float
    works: list[StepWork]


def simulate(
    runs: Sequence[Run],
    gatekeeper: Gatekeeper,
    order: PodOrder | None = None,
    observe: Callable[[Cluster], None] = lambda cluster: None,
    *,
    nodes: Sequence[Amounts] = NODES,
    tick_seconds: float = 0.0,
) -> Outcome:
    """Simulate until nothing happens any more.

    Args:
        runs: runs in the order of submission.
        gatekeeper: object that decides when runs start.
        order: order in which pods are tried.
        observe: function called with the cluster after every event.
        nodes: nodes of the cluster.
        tick_seconds: time between two decisions without an event; 0 = there are none.
    """
    simulation = _Simulation(runs, gatekeeper, order or PodOrder(), nodes)
    return simulation.outcome(observe, tick_seconds)


class _Simulation:
    def __init__(
        self,
        runs: Sequence[Run],
        gatekeeper: Gatekeeper,
        order: PodOrder,
        nodes: Sequence[Amounts],
    ) -> None:
        self._runs = runs
        self._gatekeeper = gatekeeper
        self._order = order
        self._rng = Random(order.seed)
        self._cluster = Cluster(nodes)
        self._now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._pods: list[Pod] = []
        self._works: list[StepWork] = []
        self._left = [0] * len(runs)
        self._next = [0] * len(runs)
        self._completed: dict[int, float] = {}
        self._pod_seconds = 0.0

    def outcome(self, observe: Callable[[Cluster], None], tick_seconds: float) -> Outcome:
        if tick_seconds:
            self._at(tick_seconds, partial(self._tick, tick_seconds))
        for number, run in enumerate(self._runs):
            self._at(run.submitted_seconds, partial(self._arrive, number))
        while self._events:
            then, _, happen = heapq.heappop(self._events)
            self._pod_seconds += len(list(self._waiting())) * (then - self._now)
            self._now = then
            happen()
            self._try_pods()
            observe(self._cluster)
        return Outcome(
            completion_seconds={
                number: ended - self._runs[number].submitted_seconds
                for number, ended in self._completed.items()
            },
            unfinished=len(self._runs) - len(self._completed),
            waiting_pods=self._pod_seconds / self._now if self._now else 0.0,
            works=self._works,
        )

    def _waiting(self) -> Iterator[Amounts]:
        return (requests for pod in self._pods for requests in pod.requests)

    def _at(self, seconds: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (seconds, next(self._numbers), happen))

    def _arrive(self, run: int) -> None:
        self._begin(self._gatekeeper.arrived(run, self._now))

    def _tick(self, seconds: float) -> None:
        if self._events:
            self._at(self._now + seconds, partial(self._tick, seconds))
            self._begin(self._gatekeeper.ticked(self._now))

    def _begin(self, runs: Sequence[int]) -> None:
        for run in runs:
            # One that was stopped may go on with steps that have pods already.
            if not self._left[run]:
                self._drive(run, self._next[run])

    def _drive(self, run: int, stage: int) -> None:
        """Run the drivers of a stage, which create its pods."""
        self._left[run], self._next[run] = len(self._runs[run].stages[stage]), stage + 1
        self._at(self._now + DRIVER_SECONDS, lambda: self._create(run, stage))

    def _create(self, run: int, stage: int) -> None:
        for index, step in enumerate(self._runs[run].stages[stage]):
            work = StepWork(run, stage, index, step, self._now)
            self._works.append(work)
            requests = work.requests if self._order.whole_gangs else work.requests[:1]
            self._pods.append(Pod(work, requests))

    def _try_pods(self) -> None:
        """Give nodes to pods, and to those that they make when they run."""
        made = self._pods
        while made:
            tried, self._pods, made = self._pods, [], []
            if self._order.any_order:
                self._rng.shuffle(tried)
            for pod in tried:
                if self._place(pod):
                    made += self._run(pod.work)
                else:
                    self._pods.append(pod)
            self._pods += made

    def _place(self, pod: Pod) -> bool:
        """Give nodes to all pods in it, or to none."""
        placed: list[tuple[int, Amounts]] = []
        for requests in pod.requests:
            node = self._cluster.place(requests)
            if node is None:
                for taken, amounts in placed:
                    self._cluster.leave(taken, amounts)
                return False
            placed.append((node, requests))
        pod.work.placed += placed
        return True

    def _run(self, work: StepWork) -> list[Pod]:
        """Run a pod of a step, and return the workers that it makes."""
        if len(work.placed) == len(work.requests):
            work.started = self._now
            self._gatekeeper.worked(work, self._now)
            self._at(self._now + work.step.actual_seconds, lambda: self._end(work))
        elif len(work.placed) == 1:
            return [Pod(work, (requests,)) for requests in work.requests[1:]]
        return []

    def _end(self, work: StepWork) -> None:
        work.ended = self._now
        for node, requests in work.placed:
            self._cluster.leave(node, requests)
        run = work.run
        self._left[run] -= 1
        if not self._left[run]:
            if work.stage + 1 == len(self._runs[run].stages):
                self._completed[run] = self._now
            elif not self._gatekeeper.is_stopped(run):
                self._drive(run, work.stage + 1)
        self._begin(self._gatekeeper.ended(run, work.stage, work.index, self._now))
