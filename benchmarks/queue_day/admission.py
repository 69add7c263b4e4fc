"""The queue of the day: the controller's own decision, asked whenever a run arrives or a step ends.

A run's demand is the peak of its own plan, which is the run alone on the empty cluster with planned
durations; steps that have ended are taken out of it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from benchmarks.queue_day.nodes import NODES
from benchmarks.queue_day.runs import Amounts, Run
from benchmarks.queue_day.simulation import AtOnce, StepWork, simulate
from kfp_placement_controller.queueing.builtin.admission import waiting_verdicts
from kfp_placement_controller.queueing.builtin.simulation import QueueSimulation
from kfp_placement_controller.queueing.run_queues import rules_of
from kfp_placement_controller.queueing.runs import AdmittedRun, WaitingRun
from kfp_placement_engine.contract.run_queue import RunQueueSpec
from kfp_placement_engine.model.demand import Demand, PodGroup
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.units.resources import (
    Resources,
    add_to,
    raise_to,
    subtract_from,
    with_pod,
)

GPU = "nvidia.com/gpu"
QUEUE = QueueKey("team", "default")
"""The RunQueue of the day."""

_MIDNIGHT = datetime(2026, 1, 5, tzinfo=UTC)
_PODS_PER_NODE = 110


def canonical(amounts: Amounts) -> dict[str, int]:
    """Return amounts in the units in which pods request them."""
    named = {"cpu": 1000 * amounts.cpu, "memory": amounts.memory_gib * 2**30, GPU: amounts.gpu}
    return {name: amount for name, amount in named.items() if amount}


@dataclass(frozen=True)
class StepInterval:
    """A step of a run, with its interval in the plan of the run alone.

    Attributes:
        stage, index: stage of the step, and index in the stage.
        start_seconds, end_seconds: interval in which it works.
        pods: requests of its pods, its own first.
    """

    stage: int
    index: int
    start_seconds: float
    end_seconds: float
    pods: tuple[Resources, ...]


def plan_of(run: Run, nodes: Sequence[Amounts] = NODES) -> list[StepInterval]:
    """Return the plan of a run alone on the empty cluster.

    Args:
        run: the run.
        nodes: nodes of the cluster.
    """
    return [_planned(work) for work in simulate([run.as_planned()], AtOnce(), nodes=nodes).works]


def _planned(work: StepWork) -> StepInterval:
    if math.isinf(work.ended):
        raise ValueError(f"step {work.index} of stage {work.stage} does not fit the empty cluster")
    pods = tuple(canonical(requests) for requests in work.requests)
    return StepInterval(work.stage, work.index, work.started, work.ended, pods)


def demand_of(steps: Sequence[StepInterval]) -> Demand:
    """Return the demand of steps: the peak of each resource, and the gangs among them."""
    ends = [(step.end_seconds, False, step) for step in steps]
    starts = [(step.start_seconds, True, step) for step in steps]
    now: dict[str, int] = {}
    peak: dict[str, int] = {}
    # What ends makes room for what begins at the same moment.
    for _, begins, step in sorted(starts + ends, key=lambda event: event[:2]):
        for pod in step.pods:
            (add_to if begins else subtract_from)(now, with_pod(pod))
        raise_to(peak, now)
    # No two steps of a run here have workers.
    gangs = [PodGroup(1, pod) for step in steps if len(step.pods) > 1 for pod in step.pods]
    return Demand(peak=peak, gangs=tuple(gangs))


class Queue:
    """Runs wait until the controller's decision admits them."""

    def __init__(self, runs: Sequence[Run], overcommit: float, *, packs_gangs: bool = True) -> None:
        """Start before the first run has arrived.

        Args:
            runs: runs of the day.
            overcommit: overcommit of the RunQueue.
            packs_gangs: whether the decision knows which pods must run together.
        """
        self._runs = runs
        self._packs_gangs = packs_gangs
        self._plans: dict[int, list[StepInterval]] = {}
        self._waiting: dict[int, WaitingRun] = {}
        self._admitted: dict[int, AdmittedRun] = {}
        # All other rules are the defaults of a RunQueue.
        self._rules = {QUEUE: rules_of(RunQueueSpec(overcommit=overcommit))}
        self._nodes = [{**canonical(node), "pods": _PODS_PER_NODE} for node in NODES]

    def arrived(self, run: int, now: float) -> list[int]:
        """Let a run wait, and return the runs that start now."""
        self._plans[run] = plan_of(self._runs[run])
        self._waiting[run] = WaitingRun(
            key=RunKey(QUEUE.namespace, f"run-{run:04}"),
            queue=QUEUE,
            priority=0,
            submitted_at=moment(now),
            demand=self._demand(run),
            makespan_seconds=max(step.end_seconds for step in self._plans[run]),
        )
        return self._decided(now)

    def worked(self, work: StepWork, now: float) -> None:
        """Ignore that a step works: its demand counted already."""

    def ended(self, run: int, stage: int, index: int, now: float) -> list[int]:
        """Lower the demand of a run by an ended step, and return the runs that start now."""
        left = [step for step in self._plans[run] if (step.stage, step.index) != (stage, index)]
        self._plans[run] = left
        if left:
            self._admitted[run] = replace(self._admitted[run], demand=self._demand(run))
        else:
            del self._admitted[run]
        return self._decided(now)

    def ticked(self, now: float) -> list[int]:
        """Return the runs that start now, since time has passed."""
        return self._decided(now)

    def is_stopped(self, run: int) -> bool:
        """Return false: without namespaces and priorities no run is stopped."""
        return False

    def simulation(self, ends_seconds: Mapping[int, float]) -> QueueSimulation:
        """Return the simulation that forecasts starts.

        Args:
            ends_seconds: ends of admitted runs by the plan in force.
        """
        return QueueSimulation(
            waiting=list(self._waiting.values()),
            admitted=[
                replace(admitted, ends_at=moment(ends_seconds[run]))
                for run, admitted in self._admitted.items()
            ],
            rules=self._rules,
            nodes=self._nodes,
        )

    @property
    def waiting(self) -> Mapping[int, WaitingRun]:
        """The runs that wait."""
        return self._waiting

    @property
    def admitted(self) -> Mapping[int, AdmittedRun]:
        """The runs that were admitted and have not ended."""
        return self._admitted

    def _demand(self, run: int) -> Demand:
        demand = demand_of(self._plans[run])
        return demand if self._packs_gangs else replace(demand, gangs=())

    def _decided(self, now: float) -> list[int]:
        runs = {waiting.key: number for number, waiting in self._waiting.items()}
        verdicts = waiting_verdicts(
            self._waiting.values(),
            list(self._admitted.values()),
            self._rules,
            self._nodes,
            moment(now),
        )
        admitted = [runs[each.key] for each in verdicts if each.is_admitted]
        for run in admitted:
            waiting = self._waiting.pop(run)
            self._admitted[run] = AdmittedRun(
                waiting.key, waiting.queue, waiting.priority, moment(now), waiting.demand
            )
        return admitted


def moment(seconds: float) -> datetime:
    """Return a time of the day."""
    return _MIDNIGHT + timedelta(seconds=seconds)
