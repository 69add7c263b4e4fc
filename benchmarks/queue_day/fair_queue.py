"""Queues of several namespaces: the controller's own decision, with the runs that it stops."""

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.queue_day.admission import StepInterval, canonical, demand_of, moment, plan_of
from benchmarks.queue_day.runs import Amounts
from benchmarks.queue_day.simulation import StepWork
from benchmarks.queue_day.tenants import TenantRun
from kfp_placement_controller.queueing.builtin.decision import Decision
from kfp_placement_controller.queueing.run_queues import rules_of
from kfp_placement_controller.queueing.runs import AdmittedRun, WaitingRun
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE, RunQueueSpec
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.units.resources import add_to, with_pod

_PODS_PER_NODE = 110


class FairQueues:
    """Gatekeeper with a RunQueue for each namespace.

    Attributes:
        waited_seconds: time for which each run has waited in its queue, by its number.
        stops: number of stops of runs for others.
    """

    def __init__(
        self,
        runs: Sequence[TenantRun],
        nodes: Sequence[Amounts],
        weights: Sequence[float],
        *,
        apart: bool = True,
    ) -> None:
        """Start before the first run has arrived.

        Args:
            runs: runs of the day.
            nodes: nodes of the cluster.
            weights: weight of each namespace.
            apart: whether each namespace has a queue; else all are in one, which knows no shares.
        """
        self._runs, self._amounts, self._apart = runs, nodes, apart
        self._nodes = [{**canonical(node), "pods": _PODS_PER_NODE} for node in nodes]
        specs = [RunQueueSpec(weight=weight) for weight in weights]
        self._queues = [QueueKey(f"tenant-{n}", DEFAULT_QUEUE) for n in range(len(weights))]
        if not apart:
            self._queues = len(weights) * self._queues[:1]
        self._rules = dict(zip(self._queues, map(rules_of, specs), strict=True))
        self._idle_after = specs[0].idle_after_seconds
        self._plans: dict[int, list[StepInterval]] = {}
        self._working: dict[int, dict[tuple[int, int], tuple[Amounts, ...]]] = {}
        self._idle_since: dict[int, float] = {}
        self._waiting: dict[int, tuple[WaitingRun, float]] = {}
        self._admitted: dict[int, AdmittedRun] = {}
        self._stopped_for: dict[int, str] = {}
        self.waited_seconds = dict.fromkeys(range(len(runs)), 0.0)
        self.stops = 0

    @property
    def demanded(self) -> dict[int, Demand]:
        """Return the demand of each admitted run."""
        return {run: admitted.demand for run, admitted in self._admitted.items()}

    def arrived(self, run: int, now: float) -> list[int]:
        """Let a run wait, and return the runs that start now."""
        self._plans[run] = plan_of(self._runs[run].run, self._amounts)
        self._working[run] = {}
        self._wait(run, now)
        return self._decided(now)

    def worked(self, work: StepWork, now: float) -> None:
        """Take in that a step has pods that run."""
        if any(work.step.requests):
            self._working[work.run][work.stage, work.index] = work.requests
            self._idle_since.pop(work.run, None)

    def ended(self, run: int, stage: int, index: int, now: float) -> list[int]:
        """Lower the demand of a run by an ended step, and return the runs that start now."""
        left = [step for step in self._plans[run] if (step.stage, step.index) != (stage, index)]
        self._plans[run] = left
        self._working[run].pop((stage, index), None)
        if not left:
            self._admitted.pop(run, None)
            self._waiting.pop(run, None)
        elif run in self._admitted:
            self._admitted[run] = replace(self._admitted[run], demand=demand_of(left))
        else:
            waiting, since = self._waiting[run]
            self._waiting[run] = replace(waiting, demand=demand_of(left)), since
        return self._decided(now)

    def ticked(self, now: float) -> list[int]:
        """Return the runs that start now, since time has passed."""
        return self._decided(now)

    def is_stopped(self, run: int) -> bool:
        """Return whether a run was stopped and waits again."""
        return run in self._waiting

    def _wait(self, run: int, now: float) -> None:
        queue, priority = self._queues[self._runs[run].tenant], self._runs[run].priority
        if not self._apart:
            priority = 0
        waiting = WaitingRun(
            key=RunKey(queue.namespace, f"run-{run:05}"),
            queue=queue,
            priority=priority,
            submitted_at=moment(self._runs[run].run.submitted_seconds),
            demand=demand_of(self._plans[run]),
        )
        self._waiting[run] = waiting, now

    def _decided(self, now: float) -> list[int]:
        preemptors = {self._stopped_for[run] for run in self._waiting if run in self._stopped_for}
        draining = {run for run in self._waiting if self._working[run]}
        numbers = {each.key: run for run, (each, _) in self._waiting.items()}
        waiting = [
            replace(each, has_victims=each.key.name in preemptors)
            for run, (each, _) in self._waiting.items()
            if run not in draining
        ]
        admitted = [self._as_admitted(run, now) for run in self._admitted]
        admitted += [self._as_draining(run) for run in draining]
        uids = {each.key: each.key.name for each in waiting}
        decision = Decision.of(waiting, admitted, uids, self._rules, self._nodes, moment(now))
        for key, stop in decision.stops.items():
            self._stop(int(key.name.removeprefix("run-")), stop.preempted_for, now)
        begun = [numbers[each.key] for each in decision.verdicts if each.is_admitted]
        for run in begun:
            each, since = self._waiting.pop(run)
            self._stopped_for.pop(run, None)
            self.waited_seconds[run] += now - since
            self._admitted[run] = each.as_admitted(moment(now))
        return begun

    def _stop(self, run: int, preempted_for: str, now: float) -> None:
        self.stops += 1
        del self._admitted[run]
        self._stopped_for[run] = preempted_for
        self._wait(run, now)

    def _as_admitted(self, run: int, now: float) -> AdmittedRun:
        """Return the run; it sleeps if its step at hand needs no pod for long."""
        if self._working[run] or not self._pauses(run):
            self._idle_since.pop(run, None)
            return self._admitted[run]
        since = self._idle_since.setdefault(run, now)
        sleeps = now - since >= self._idle_after
        return replace(self._admitted[run], in_use={} if sleeps else None)

    def _pauses(self, run: int) -> bool:
        """Return whether the steps at hand have no pods."""
        first = min(step.stage for step in self._plans[run])
        return not any(any(step.requests) for step in self._runs[run].run.stages[first])

    def _as_draining(self, run: int) -> AdmittedRun:
        taken: dict[str, int] = {}
        for pods in self._working[run].values():
            for pod in pods:
                add_to(taken, with_pod(canonical(pod)))
        waiting, since = self._waiting[run]
        admitted = waiting.as_admitted(moment(since))
        return replace(admitted, demand=Demand(peak=taken), suspended=True)
