"""Requests of each rule, pod by pod in the order of submission, and the memory that it wasted.

A pod that was given too little wastes all it had, for as long as it runs, and is tried again.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from benchmarks.learning_runs.traces import Trace, TracedPod
from kfp_placement_engine.history.memory_use import MemoryHistory, after_kill
from kfp_placement_engine.model.history import PastRun

METHODS = ("authors", "largest + 10%", "ours")
EVERY = 8
"""Step between the runs of the group `one run`, each of which begins from nothing."""

_UNASKED_BYTES = 2**30
"""Memory that counts as the request of a pod without one."""

_BYTE_SECONDS_PER_GBH = 1e9 * 3600
_NEVER = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True)
class MemoryCase:
    """Result of one rule for the pods of one pipeline.

    Attributes:
        pipeline: pipeline of the pods.
        group: `all runs`, where all earlier runs are known, or `one run`, from nothing.
        method: the rule.
        pods: number of pods.
        failed: number of pods with too little memory at first.
        used_gbh, wasted_gbh: gigabytes times hours.
    """

    pipeline: str
    group: str
    method: str
    pods: int
    failed: int
    used_gbh: float
    wasted_gbh: float


def memory_cases(traces: Sequence[Trace]) -> Iterator[MemoryCase]:
    """Yield results by pipeline, group and rule; at first only the authors' requests are known."""
    for trace in traces:
        runs = [_submitted(run) for run in trace.pods]
        if not any(runs):
            continue
        single = [[run] for run in runs[::EVERY]]
        for group, parts in (("all runs", [runs]), ("one run", single)):
            for method in METHODS:
                yield _case(trace.pipeline, group, method, parts)


def _submitted(run: Iterable[TracedPod]) -> list[TracedPod]:
    """Return the pods with measured memory, in the order of submission."""
    measured = [pod for pod in run if pod.past.peak_bytes is not None]
    return sorted(measured, key=lambda pod: pod.submitted_seconds or pod.start_seconds or 0.0)


def _case(
    pipeline: str, group: str, method: str, parts: Sequence[Sequence[Sequence[TracedPod]]]
) -> MemoryCase:
    pods = failed = 0
    used = wasted = 0.0
    for runs in parts:
        rule = _Rule(method)
        for pod in (pod for run in runs for pod in run):
            peak, seconds = pod.past.peak_bytes or 0.0, pod.past.seconds or 0.0
            asked = rule.ask(pod)
            pods += 1
            failed += asked < peak
            while asked < peak:
                wasted += asked * seconds
                asked = rule.ask_again(pod, asked)
            used += peak * seconds
            wasted += (asked - peak) * seconds
            rule.learn(pod)
    gbh = _BYTE_SECONDS_PER_GBH
    return MemoryCase(pipeline, group, method, pods, failed, used / gbh, wasted / gbh)


class _Rule:
    """One rule, and what it has seen."""

    def __init__(self, method: str) -> None:
        self._method = method
        self._history = MemoryHistory()
        self._largest: dict[str, float] = {}

    def ask(self, pod: TracedPod) -> float:
        """Bytes; what authors ask for where nothing is known."""
        own = float(pod.step.requests["memory"] or _UNASKED_BYTES)
        if self._method == "authors" or pod.step.task not in self._largest:
            return own
        if self._method != "ours":
            return 1.1 * self._largest[pod.step.task]
        forecast = self._history.predict(pod.past.identity)
        return own if forecast is None or forecast.ask_bytes is None else forecast.ask_bytes

    def ask_again(self, pod: TracedPod, had: float) -> float:
        """Bytes, after this many were too few."""
        return after_kill(had, self._largest.get(pod.step.task))

    def learn(self, pod: TracedPod) -> None:
        """See what a pod used."""
        task, peak = pod.step.task, pod.past.peak_bytes or 0.0
        self._largest[task] = max(peak, self._largest.get(task, 0.0))
        if self._method == "ours":
            self._history.observe(PastRun("", pod.past.identity.pipeline, _NEVER, (pod.past,)))
