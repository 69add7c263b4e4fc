"""The most memory that the pods of ended runs used, as a Prometheus has seen it.

It is asked once for each run, soon after its end. Only what is learned of that run waits for the
answer, for less than a minute. A server that is missing, slow or wrong is warned of once.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_controller.planning.actions import AskMemory, MemoryAnswer, MemoryPod
from kfp_placement_controller.planning.pauses import lasts
from kfp_placement_controller.planning.run_pods import RunPod
from kfp_placement_controller.planning.said_once import SaidOnce
from kfp_placement_controller.planning.tracked_run import TrackedRun
from kfp_placement_engine.contract.policy import HistorySettings
from kfp_placement_engine.model.history import is_usable_memory
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.policy import MemorySource
from kfp_placement_engine.readers.run_outcomes import PodRole

_LOG = logging.getLogger(__name__)

SETTLING_SECONDS = 15.0
"""Time from the end of a run until Prometheus has what its last pods used."""

PATIENCE_SECONDS = 45.0
"""Longest wait for an answer; then the run teaches what else is known of it."""

PAUSE_AFTER_FAILURE_SECONDS = 300.0

MOST_PODS = 2_000
"""Pods of one run that are asked for."""

_TELLING = 20
"""If the server knows none of this many pods, it is the wrong one."""


@dataclass
class MemoryPeaks:
    """Asks for the peaks of ended runs, one run at a time, and keeps them until they are read."""

    _url: str = ""
    _asked: AskMemory | None = None
    _asked_at: datetime | None = None
    _failed_at: datetime | None = None
    _peaks: dict[RunKey, Mapping[str, float]] = field(default_factory=dict)
    _unknown_pods: int = 0
    _warned: bool = False
    _said: SaidOnce = field(default_factory=lambda: SaidOnce(_LOG))

    def use(self, settings: HistorySettings) -> None:
        """Ask the server that the policy names from now on."""
        is_asked = settings.memory is MemorySource.PROMETHEUS
        url = (is_asked and settings.prometheus_url) or ""
        if self._url != url:
            self._url = url
            self._asked = self._failed_at = None
            self._warned, self._unknown_pods = False, 0

    def due(self, ended: Iterable[TrackedRun], now: datetime) -> AskMemory | None:
        """Return the next question; None = there is none now.

        Args:
            ended: runs that teach nothing yet.
            now: the time.
        """
        if self._asked is not None and not lasts(PATIENCE_SECONDS, self._asked_at, now):
            self._has_failed(self._asked, "it has not answered in time", now)
        if not self._url or self._asked is not None or self._pauses(now):
            return None
        for run in ended:
            finished_at = run.observed.state.finished_at
            if run.key in self._peaks or finished_at is None:
                continue
            if (now - finished_at).total_seconds() < SETTLING_SECONDS:
                continue
            pods = tuple(_asked_for(each, now) for each in _ended_well(run))[:MOST_PODS]
            if pods:
                self._asked, self._asked_at = AskMemory(self._url, run.key, pods), now
                return self._asked
            self._peaks[run.key] = {}
        return None

    def answered(self, answer: MemoryAnswer, now: datetime) -> None:
        """Take an answer; amounts that cannot be true count as unknown."""
        asked = answer.question
        if asked is not self._asked:
            return
        if answer.failure:
            self._has_failed(asked, answer.failure, now)
            return
        self._asked = None
        wanted = {each.uid for each in asked.pods}
        peaks = {
            uid: peak
            for uid, peak in answer.peaks.items()
            if uid in wanted and is_usable_memory(peak)
        }
        self._peaks[asked.run] = peaks
        self._unknown_pods = 0 if peaks else self._unknown_pods + len(wanted)
        if self._unknown_pods >= _TELLING:
            self._warn(asked, f"it knows none of {self._unknown_pods} pods")

    def awaits(self, run: TrackedRun, now: datetime) -> bool:
        """Return whether the peaks of an ended run may be known soon."""
        if not self._url or run.key in self._peaks or self._pauses(now):
            return False
        return lasts(SETTLING_SECONDS + PATIENCE_SECONDS, run.observed.state.finished_at, now)

    def take(self, key: RunKey) -> Mapping[str, float]:
        """Return the peaks of a run, bytes by uid of the pod, and keep them no longer."""
        return self._peaks.pop(key, {})

    def _pauses(self, now: datetime) -> bool:
        return lasts(PAUSE_AFTER_FAILURE_SECONDS, self._failed_at, now)

    def _has_failed(self, asked: AskMemory, why: str, now: datetime) -> None:
        self._asked, self._failed_at = None, now
        self._warn(asked, why)

    def _warn(self, asked: AskMemory, why: str) -> None:
        """Say it once for each address, whatever else goes wrong with it."""
        if not self._warned:
            self._warned = True
            self._said.warning(
                "peak memory is not learned, and no request is advised on: the Prometheus of"
                f" history.prometheusURL, {asked.url}: {why}"
            )


def _ended_well(run: TrackedRun) -> Iterator[RunPod]:
    """Yield the pods that have executed steps of a run."""
    for each in run.pods:
        is_executor = each.identity is not None and each.identity.role is PodRole.EXECUTOR
        if is_executor and each.pod.phase == "Succeeded":
            yield each


def _asked_for(pod: RunPod, now: datetime) -> MemoryPod:
    began_at = pod.running_at or pod.created_at
    since_start_seconds = max(0.0, (now - began_at).total_seconds())
    return MemoryPod(pod.pod.uid, pod.pod.name, since_start_seconds)
