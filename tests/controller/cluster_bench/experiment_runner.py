"""One drawn experiment, run with one actuator on a cluster at work."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kfp_placement_engine.contract.keys import DEFAULT_SCHEDULER, LOCATION_LABEL, SCHEDULER_LABEL
from kfp_placement_kube.kinds import JsonObject
from tests.controller.cluster_bench.recorder import Recorder, SeenPod, SeenRun
from tests.controller.cluster_bench.runs import unmarked
from tests.controller.cluster_bench.scenarios import Drawn, ForeignPod
from tests.controlplane import housekeeping, objects
from tests.controlplane.argo.watching import Key
from tests.controlplane.waiting import wait_until
from tests.support.installation import Installation

TIMEOUT_SECONDS = 90.0
"""A run that takes longer counts as failed."""

_LOOK_SECONDS = 0.05


class Actuator(StrEnum):
    """What brings pods to nodes."""

    DEFAULT = "default-scheduler"
    EXTENDER = "extender"
    GATES = "gates"


@dataclass(frozen=True)
class Outcome:
    """What was measured; times in seconds.

    Attributes:
        makespan: from the submission to the end of the last run.
        planned: makespan by the runs' first plans; None without plans.
        waiting: mean over executors, from the creation of the pod until it runs.
        latencies_ms: round trip of every step that serves a place.
        executors: pods of steps that were bound.
        off_plan: of these, how many elsewhere than planned when they were bound.
        rejected: pods that a kubelet had no room for, other people's included: who had placed
            them, and why in the kubelet's words.
        failed_runs: runs that did not succeed in time.
    """

    makespan: float
    planned: float | None
    waiting: float
    latencies_ms: tuple[float, ...]
    executors: int
    off_plan: int
    rejected: tuple[str, ...]
    failed_runs: int


class ExperimentRunner:
    """Runs experiments, one at a time: others at work would be part of what is measured."""

    def __init__(self, installation: Installation, recorder: Recorder) -> None:
        self._installation = installation
        self._recorder = recorder
        self._nodes = {
            node["metadata"]["name"]: node for node in installation.api.list("v1", "Node")
        }

    def run(self, drawn: Drawn, actuator: Actuator) -> Outcome:
        """Run what was drawn to its end, and tidy up."""
        with self._installation.namespace() as team, self._installation.namespace() as others:
            self._choose(actuator, team)
            self._settle(drawn, others)
            started = time.monotonic()
            runs = [self._submit(each, actuator, team) for each in drawn.workflows]
            self._until_ended(runs, drawn, others, started)
            outcome = self._outcome(runs, others, started)
            self._tidy(runs, others)
        return outcome

    def _choose(self, actuator: Actuator, namespace: str) -> None:
        """Make admission follow; it looks at the policy by a watch of its own."""
        if actuator is Actuator.DEFAULT:
            return
        self._installation.set_policy(actuator=str(actuator))
        probe = objects.pod("probe", namespace, labels={SCHEDULER_LABEL: DEFAULT_SCHEDULER})

        def follows() -> bool:
            admitted = self._installation.api.create(probe, dryRun="All")["spec"]
            gated = bool(admitted.get("schedulingGates"))
            ours = admitted["schedulerName"] == DEFAULT_SCHEDULER
            return (gated, ours) == (actuator is Actuator.GATES, actuator is Actuator.EXTENDER)

        wait_until(follows, f"admission to place by {actuator}")

    def _settle(self, drawn: Drawn, namespace: str) -> None:
        """Pods that are there before the runs."""
        there = [each for each in drawn.foreign if each.node]
        for each in there:
            self._installation.api.create(each.manifest(namespace))

        def run() -> bool:
            seen = list(self._recorder.pods(namespace))
            return len(seen) == len(there) and all(pod.running_at for pod in seen)

        wait_until(run, "pods of other people to run")

    def _submit(self, marked: JsonObject, actuator: Actuator, namespace: str) -> Key:
        workflow = unmarked(marked) if actuator is Actuator.DEFAULT else marked
        return namespace, self._installation.submit(workflow, namespace)

    def _until_ended(self, runs: list[Key], drawn: Drawn, namespace: str, started: float) -> None:
        """Let other people's pods come in their time meanwhile."""
        coming = sorted(
            (each for each in drawn.foreign if not each.node), key=lambda each: -each.at_seconds
        )
        while not all(self._recorder.run(key).ended_at for key in runs):
            elapsed = time.monotonic() - started
            if elapsed > TIMEOUT_SECONDS:
                return
            while coming and coming[-1].at_seconds <= elapsed:
                self._arrive(coming.pop(), namespace)
            time.sleep(_LOOK_SECONDS)

    def _arrive(self, pod: ForeignPod, namespace: str) -> None:
        self._installation.api.create(pod.manifest(namespace))

    def _outcome(self, keys: list[Key], others: str, started: float) -> Outcome:
        runs = [self._recorder.run(key) for key in keys]
        team = keys[0][0]
        executors = [
            (pod, self._recorder.run((team, pod.workflow)))
            for pod in self._recorder.pods(team)
            if pod.is_executor and pod.bound_version
        ]
        ends = [run.ended_at or time.monotonic() for run in runs]
        waits = [pod.running_at - pod.created_at for pod, _ in executors if pod.running_at]
        seen = self._recorder.pods(team, others)
        return Outcome(
            makespan=max(ends) - started,
            planned=_planned(runs),
            waiting=sum(waits) / max(1, len(waits)),
            latencies_ms=tuple(self._latencies(pod for pod, _ in executors)),
            executors=len(executors),
            off_plan=sum(_is_deviating(pod, run) for pod, run in executors if run.plans),
            rejected=tuple(_rejection(pod) for pod in seen if pod.was_rejected),
            failed_runs=sum(run.phase != "Succeeded" for run in runs),
        )

    def _latencies(self, pods: Iterator[SeenPod]) -> Iterator[float]:
        for pod in pods:
            place = pod.latest["metadata"]["labels"].get(LOCATION_LABEL)
            if place:
                yield float(self._nodes[pod.node]["metadata"]["labels"][place])

    def _tidy(self, runs: list[Key], others: str) -> None:
        """Nothing of this experiment may be there in the next one."""
        for namespace, name in runs:
            self._installation.api.delete(self._installation.workflow(name, namespace))
        with contextlib.ExitStack() as stack:
            for namespace in {key[0] for key in runs} | {others}:
                stack.callback(housekeeping.delete_pods, self._installation.api, namespace)


def _rejection(pod: SeenPod) -> str:
    scheduler, message = pod.latest["spec"]["schedulerName"], pod.latest["status"].get("message")
    return f"{pod.latest['metadata']['name']} on {pod.node} by {scheduler}: {message}"


def _planned(runs: list[SeenRun]) -> float | None:
    first = [run.plans[-1].placement.spec.first_makespan_seconds for run in runs if run.plans]
    makespans = [seconds for seconds in first if seconds is not None]
    return max(makespans, default=None)


def _is_deviating(pod: SeenPod, run: SeenRun) -> bool:
    return run.planned_node(pod.step(), pod.bound_version) != pod.node
