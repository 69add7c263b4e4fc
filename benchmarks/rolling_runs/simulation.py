"""Runs that arrive, event by event: plans, gates and their deadlines, and true run times.

A step's pod is there when all before it have ended, and is ready when its data is on the planned
node, as the engine's `ordered` simulation has it. A pod whose gate is overdue goes where the most
CPU is free, and its data moves while it takes its room, as under kube-default.
"""

import heapq
import math
from collections.abc import Callable
from itertools import count

from benchmarks.rolling_runs.arms import Arm
from benchmarks.rolling_runs.draws import Series
from benchmarks.rolling_runs.drift import Drift
from benchmarks.rolling_runs.outcomes import Outcome, SimulatedStep
from benchmarks.rolling_runs.plans import Planner
from benchmarks.rolling_runs.tasks import State, Task, tasks_of
from kfp_placement_engine import MaxGenerations
from kfp_placement_engine.planning.starts.expected_times import (
    ExpectedTimes,
    StepOrder,
    StepSpan,
    expected_times,
)
from kfp_placement_engine.planning.starts.node_queue import QueuedStep, RunningStep
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.search.stop import StoppingCriterion
from kfp_placement_engine.units.resources import add_to, fits, free_room, subtract_from, with_pod

GENERATIONS = 20


def twenty_generations() -> StoppingCriterion:
    """Return the criterion that ends a search of `benchmarks.rolling` without a budget."""
    return MaxGenerations(GENERATIONS)


def simulate_series(
    series: Series,
    arm: Arm,
    seed: int = 0,
    stop: Callable[[], StoppingCriterion] = twenty_generations,
) -> Outcome:
    """Simulate a series until all its runs have ended.

    Args:
        series: runs that arrive, and their cluster.
        arm: way in which runs are planned and started.
        seed: seed of the searches.
        stop: function that makes the stopping criterion of a search.
    """
    graphs = series.true_runs() if arm.knows_times else series.runs
    assumptions = Assumptions(overrun_share=arm.overrun_share)
    planner = Planner(graphs, series.arrivals, series.cluster, seed, stop, assumptions)
    return _Simulation(series, arm, planner).outcome()


class _Simulation:
    """A series at a moment."""

    def __init__(self, series: Series, arm: Arm, planner: Planner) -> None:
        self._series, self._arm, self._planner = series, arm, planner
        self._orders = [StepOrder.of(graph) for graph in planner.graphs]
        self._tasks = tasks_of(series)
        self._left = [len(tasks) for tasks in self._tasks]
        self._ends = [math.inf] * len(self._tasks)
        nodes = series.cluster.nodes
        self._free = [free_room(node.allocatable, node.used) for node in nodes]
        self._running: list[dict[Task, None]] = [{} for _ in nodes]
        self._queues: list[list[Task]] = [[] for _ in nodes]
        self._freed: list[Task] = []
        self._active: list[int] = []
        self._planned: dict[Task, float] = {}
        self._drift, self._drifted = Drift(), False
        self._replan_at, self._must_plan, self._plans = math.inf, False, 0
        self._now = 0.0
        self._order = count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []

    def outcome(self) -> Outcome:
        """Simulate the series to its end."""
        for number, at in enumerate(self._series.arrivals):
            self._at(at, lambda number=number: self._arrive(number))  # type: ignore[misc]
        while self._events:
            self._now = self._events[0][0]
            while self._events and self._events[0][0] <= self._now:
                heapq.heappop(self._events)[2]()
            if self._must_plan:
                self._plan()
            self._start_freed()
            self._open_gates()
            self._watch_drift()
        arrivals = self._series.arrivals
        return Outcome(
            tuple(end - at for end, at in zip(self._ends, arrivals, strict=True)),
            self._plans,
            tuple(self._simulated()),
        )

    # What happens.

    def _at(self, seconds: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (seconds, next(self._order), event))

    def _arrive(self, number: int) -> None:
        self._active.append(number)
        self._must_plan = self._arm.rule is not None
        for task in self._tasks[number].values():
            if not task.missing:
                self._create(task)

    def _create(self, task: Task) -> None:
        task.state, task.created = State.GATED, self._now
        self._await_data(task)
        if self._arm.gate_deadline_seconds < math.inf:
            self._at(
                self._now + self._arm.gate_deadline_seconds, lambda: self._free_from_gate(task)
            )

    def _await_data(self, task: Task) -> None:
        """Note when the data of a pod is on its planned node, and look at its gate then."""
        if task.planned_node >= 0:
            task.ready = task.data_arrives(task.planned_node)
            if task.ready > self._now:
                self._at(task.ready, lambda: None)

    def _free_from_gate(self, task: Task) -> None:
        if task.state is State.GATED:
            task.state = State.FREED
            self._freed.append(task)

    def _start(self, task: Task, node: int) -> None:
        if task.planned_node >= 0:
            self._queues[task.planned_node].remove(task)
        is_apart = self._drift.is_apart(task, self._now, task.start)
        self._drifted |= node != task.planned_node or is_apart
        self._planned[task] = task.start
        task.state, task.node = State.RUNS, node
        task.start, task.finish = self._now, self._now + task.finish - task.start
        subtract_from(self._free[node], with_pod(task.requests))
        self._running[node][task] = None
        begin = max(self._now, task.data_arrives(node))
        speed = self._series.cluster.nodes[node].speed
        self._at(begin + task.true_seconds / speed, lambda: self._end(task))

    def _end(self, task: Task) -> None:
        task.state, task.ended = State.DONE, self._now
        add_to(self._free[task.node], with_pod(task.requests))
        del self._running[task.node][task]
        self._drifted |= self._drift.is_apart(task, self._now, task.finish)
        for each in task.after:
            each.missing -= 1
            if not each.missing:
                self._create(each)
        self._left[task.run] -= 1
        if not self._left[task.run]:
            self._ends[task.run] = self._now
            self._active.remove(task.run)

    # What is decided.

    def _plan(self) -> None:
        self._must_plan, self._replan_at = False, math.inf
        if not self._active:
            return
        active = {number: self._tasks[number] for number in self._active}
        before = {task: task.planned_node for tasks in active.values() for task in tasks.values()}
        self._planner.plan(active, self._now)
        self._plans += 1
        for queue in self._queues:
            queue.clear()
        for task, node in before.items():
            if task.state in (State.RUNS, State.DONE):
                continue
            self._queues[task.planned_node].append(task)
            if task.state is State.GATED and task.planned_node != node:
                self._await_data(task)
        for queue in self._queues:
            queue.sort(key=lambda task: (task.start, task.run, task.name))
        arrivals = self._series.arrivals
        self._drift.planned(
            {
                number: max(task.finish for task in tasks.values()) - arrivals[number]
                for number, tasks in active.items()
            }
        )

    def _start_freed(self) -> None:
        """Place pods as the default scheduler: in the order of creation, where most CPU is free."""
        for task in sorted(self._freed, key=lambda each: each.created):
            fitting = [at for at, free in enumerate(self._free) if fits(task.requests, free)]
            if fitting:
                self._freed.remove(task)
                # Of several the first, as in the other benchmarks on such clusters.
                self._start(task, max(fitting, key=self._free_share))

    def _free_share(self, node: int) -> float:
        return self._free[node]["cpu"] / self._series.cluster.nodes[node].allocatable["cpu"]

    def _open_gates(self) -> None:
        if self._arm.rule is None:
            return
        expected: dict[int, ExpectedTimes] = {}
        for node, queue in enumerate(self._queues):
            free = self._free[node]
            if not any(self._is_ready(task) and fits(task.requests, free) for task in queue):
                continue
            expected = expected or {number: self._expected(number) for number in self._active}
            steps = [self._queued(task, expected[task.run]) for task in queue]
            running = [
                RunningStep(each.requests, each.start, each.finish) for each in self._running[node]
            ]
            for task in [queue[at] for at in self._arm.rule(steps, running, free, self._now)]:
                self._start(task, node)

    def _is_ready(self, task: Task) -> bool:
        return task.state is State.GATED and task.ready <= self._now

    def _queued(self, task: Task, expected: ExpectedTimes) -> QueuedStep:
        return QueuedStep(
            task.requests,
            task.start,
            task.finish - task.start,
            expected.starts[task.name],
            expected.latest_starts[task.name],
            is_ready=self._is_ready(task),
            is_allowed=task.state is State.FREED,
        )

    def _expected(self, number: int) -> ExpectedTimes:
        planned = {
            task.name: StepSpan(task.start, task.finish, task.state is State.RUNS)
            for task in self._tasks[number].values()
            if task.state is not State.DONE
        }
        return expected_times(self._orders[number], planned, self._now)

    def _watch_drift(self) -> None:
        """Plan again a while after drift, as the controller waits for more changes."""
        drifted, self._drifted = self._drifted, False
        if not self._arm.replans or self._replan_at < math.inf:
            return
        late = [self._drift.is_overdue(each, self._tasks[each], self._now) for each in self._active]
        if drifted or any(late):
            self._replan_at = self._now + self._drift.params.debounce_seconds
            self._at(self._replan_at, self._replan)

    def _replan(self) -> None:
        self._must_plan |= self._replan_at <= self._now

    def _simulated(self) -> list[SimulatedStep]:
        names = [node.name for node in self._series.cluster.nodes]
        steps = [
            SimulatedStep(
                task.run,
                task.name,
                task.requests.get("cpu", 0) / 1000,
                names[task.node],
                task.created,
                task.start,
                task.ended,
                self._planned[task],
            )
            for tasks in self._tasks
            for task in tasks.values()
        ]
        return sorted(steps, key=lambda each: (each.start, each.run, each.name))
