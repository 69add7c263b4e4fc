"""The most memory that the pods of ended runs used, as a Prometheus has seen it.

It is asked once for each run, soon after its end. Only what is learned of that run waits for the
answer, for less than a minute. A server that is missing, slow or wrong is warned of once.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_controller.learning.actions import AskMemory, MemoryAnswer, MemoryPod
from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.runs.run_pods import RunPod
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_controller.warning_log import WarningLog
from kfp_placement_engine.contract.policy import HistorySettings
from kfp_placement_engine.readers.tree.run_outcomes import PodRole

SETTLING_SECONDS = 15.0
"""Time from the end of a run until Prometheus has what its last pods used."""

PATIENCE_SECONDS = 45.0
"""Longest wait for an answer; then the run teaches what else is known of it."""

PAUSE_AFTER_FAILURE_SECONDS = 300.0
"""Time without questions after one that got no answer."""

MOST_PODS = 2_000
"""Pods of one run that are asked for."""

_TELLING = 20
"""Number of pods of which the server must know at least one; else it is the wrong server."""


@dataclass(frozen=True)
class _Asked:
    """A question that has no answer yet.

    Attributes:
        question: the question.
        run: run whose pods it names.
        at_seconds: time of the question, in monotonic seconds.
    """

    question: AskMemory
    run: TrackedRun
    at_seconds: float


@dataclass
class MemoryPeaks:
    """Asks for the peaks of ended runs, one run at a time."""

    _url: str = ""
    _asked: _Asked | None = None
    _failed_at: float | None = None
    _unknown_pods: int = 0
    _warned: bool = False
    _warnings: WarningLog = field(default_factory=lambda: WarningLog(__name__))

    def use(self, settings: HistorySettings) -> None:
        """Ask the server that the policy names from now on."""
        url = settings.asked_url
        if self._url != url:
            self._url = url
            self._asked = self._failed_at = None
            self._warned, self._unknown_pods = False, 0

    def due(
        self, ended: Iterable[TrackedRun], now: datetime, monotonic_seconds: float
    ) -> AskMemory | None:
        """Return the next question; None = there is none now.

        Args:
            ended: runs that teach nothing yet.
            now: the time.
            monotonic_seconds: the present moment.
        """
        asked = self._asked
        if asked is not None and not lasts(PATIENCE_SECONDS, asked.at_seconds, monotonic_seconds):
            self._has_failed("it has not answered in time", monotonic_seconds)
        if not self._url or self._asked is not None or self._pauses(monotonic_seconds):
            return None
        for run in ended:
            if not _is_open(run, now, SETTLING_SECONDS):
                continue
            pods = tuple(_asked_for(each, now) for each in _ended_well(run))[:MOST_PODS]
            if pods:
                question = AskMemory(self._url, run.key, pods)
                self._asked = _Asked(question, run, monotonic_seconds)
                return question
            run.peaks = {}
        return None

    def answered(self, answer: MemoryAnswer, monotonic_seconds: float) -> None:
        """Take an answer; pods that it does not name are unknown."""
        asked = self._asked
        if asked is None or asked.question is not answer.question:
            return
        if answer.failure:
            self._has_failed(answer.failure, monotonic_seconds)
            return
        self._asked, run = None, asked.run
        if not run.observed.ended:
            return  # Somebody has retried it: at its next end, it is asked for again.
        pods = asked.question.pods
        amounts = ((each.uid, answer.peaks.get(each.uid, 0.0)) for each in pods)
        run.peaks = peaks = {uid: peak for uid, peak in amounts if peak > 0}
        self._unknown_pods = 0 if peaks else self._unknown_pods + len(pods)
        if self._unknown_pods >= _TELLING:
            self._warn(f"it knows none of {self._unknown_pods} pods")

    def awaits(self, run: TrackedRun, now: datetime, monotonic_seconds: float) -> bool:
        """Return whether the peaks of an ended run may be known soon."""
        may_ask = bool(self._url) and not self._pauses(monotonic_seconds)
        # Of a run that ended in the future, by a clock that was wrong, nothing is awaited.
        return may_ask and _is_open(run, now, 0.0)

    def _pauses(self, monotonic_seconds: float) -> bool:
        return lasts(PAUSE_AFTER_FAILURE_SECONDS, self._failed_at, monotonic_seconds)

    def _has_failed(self, why: str, monotonic_seconds: float) -> None:
        """Ask nothing for a while after a question that got no answer."""
        self._asked, self._failed_at = None, monotonic_seconds
        self._warn(why)

    def _warn(self, why: str) -> None:
        """Warn once of each server, whatever else goes wrong with it."""
        if not self._warned:
            self._warned = True
            self._warnings.warn(
                "peak memory is not learned, and no request is advised on: the Prometheus of"
                f" history.prometheusURL, {self._url}: {why}"
            )


def _is_open(run: TrackedRun, now: datetime, least_seconds: float) -> bool:
    """Return whether peaks of a run that ended so long ago are not known, and still awaited."""
    finished_at = run.observed.state.finished_at
    if finished_at is None or run.peaks is not None:
        return False
    since_end_seconds = (now - finished_at).total_seconds()
    return least_seconds <= since_end_seconds < SETTLING_SECONDS + PATIENCE_SECONDS


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
