"""The most memory that pods of steps were seen to use, from the source that the policy names.

Nothing waits for the source but what is learned of a run, and that for less than a minute. A source
that is missing, slow or wrong, or that we may not ask, is warned of once.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.planning.pauses import lasts
from kfp_placement_controller.planning.run_pods import RunPod
from kfp_placement_controller.planning.said_once import SaidOnce
from kfp_placement_controller.planning.tracked_run import TrackedRun
from kfp_placement_engine.contract.policy import HistorySettings
from kfp_placement_engine.model.history import is_usable_memory
from kfp_placement_engine.model.policy import MemorySource
from kfp_placement_engine.readers.run_outcomes import PodRole

_LOG = logging.getLogger(__name__)

PAUSE = timedelta(seconds=15)
"""Between two questions: metrics-server measures as often."""

PAUSE_AFTER_FAILURE = timedelta(minutes=5)

SETTLING = timedelta(seconds=15)
"""Prometheus has what a pod used at its end by then."""

PATIENCE = timedelta(seconds=45)
"""What a run teaches waits this long for what its last pods used."""

OVERDUE = timedelta(minutes=1)
"""A question without an answer; no other is asked until there is one."""

MOST_PODS = 2_000
"""In one question."""

MOST_KEPT = 50_000
"""Pods whose peak is known; those that were seen first go first."""

MOST_TRIES = 3
"""Of one pod in Prometheus."""

_TELLING = 20
"""If a source knows none of this many pods, it is the wrong one."""


@dataclass(frozen=True)
class MemoryPod:
    """A pod whose memory is asked for.

    Attributes:
        uid, namespace, name: of the pod.
        ran_seconds: since its step began.
    """

    uid: str
    namespace: str
    name: str
    ran_seconds: float


@dataclass(frozen=True)
class MemoryQuestion:
    """What is asked of a source.

    Attributes:
        source: which.
        url: of Prometheus; "" for others.
        pods: those that are asked for.
    """

    source: MemorySource
    url: str
    pods: tuple[MemoryPod, ...]


@dataclass(frozen=True)
class MemoryAnswer:
    """What came of it.

    Attributes:
        question: as asked.
        peaks: bytes by uid of the pod, of those that the source knows.
        failure: why it gave no answer; "" = it did.
    """

    question: MemoryQuestion
    peaks: Mapping[str, float] = field(default_factory=dict)
    failure: str = ""


@dataclass
class MemoryWatch:
    """Asks for the memory of pods, and keeps what is answered."""

    _peaks: dict[str, float] = field(default_factory=dict)
    _asked: MemoryQuestion | None = None
    _asked_at: datetime | None = None
    _fails: bool = False
    _tries: Counter[str] = field(default_factory=Counter)
    _first: int = 0
    _nobody: int = 0
    _warned: bool = False
    _settings: HistorySettings = field(default_factory=HistorySettings)
    _said: SaidOnce = field(default_factory=lambda: SaidOnce(_LOG))

    def due(
        self, settings: HistorySettings, runs: Iterable[TrackedRun], now: datetime
    ) -> MemoryQuestion | None:
        """What must be asked now; None = nothing.

        Args:
            settings: of the policy in force.
            runs: those that are under way, or teach nothing yet.
            now: the time.
        """
        before, self._settings = self._settings, settings
        if (before.memory, before.prometheus_url) != (settings.memory, settings.prometheus_url):
            self._asked_at = None
            self._fails = self._warned = False
            self._nobody = 0
            self._tries.clear()
        if self._asked is not None:
            self._mind_time(now)
            return None
        if settings.memory is MemorySource.OFF or not self._may_ask(now):
            return None
        pods = [self._asked_for(each, now) for run in runs for each in self._wanted(run, now)]
        if not pods:
            return None
        # With more pods than one question may name all have their turn, whosever they are.
        first = self._first % len(pods)
        self._first = first + MOST_PODS if len(pods) > MOST_PODS else 0
        pods = [*pods[first:], *pods[:first]][:MOST_PODS]
        url = settings.prometheus_url or ""
        is_prometheus = settings.memory is MemorySource.PROMETHEUS
        self._asked_at = now
        self._asked = MemoryQuestion(settings.memory, url if is_prometheus else "", tuple(pods))
        return self._asked

    def answered(self, answer: MemoryAnswer) -> None:
        """A source has answered, or failed; what cannot be true counts as unknown."""
        asked, self._asked = answer.question, None
        self._fails = bool(answer.failure)
        if answer.failure:
            self._warn(asked, answer.failure)
            return
        wanted = {each.uid for each in asked.pods}
        found = {
            uid: peak
            for uid, peak in answer.peaks.items()
            if uid in wanted and is_usable_memory(peak)
        }
        if asked.source is MemorySource.PROMETHEUS:
            self._tries.update(wanted)
            self._forget_oldest(self._tries)
        for uid, peak in found.items():
            self._peaks[uid] = max(peak, self._peaks.pop(uid, 0.0))
        self._forget_oldest(self._peaks)
        self._nobody = 0 if found else self._nobody + len(wanted)
        if self._nobody >= _TELLING:
            self._warn(asked, f"it knows none of {self._nobody} pods")

    def peak_of(self, pod: ObservedPod) -> float | None:
        """The most memory that a pod was seen to use, bytes; None = unknown."""
        return self._peaks.get(pod.uid)

    def awaits(self, run: TrackedRun, now: datetime) -> bool:
        """Whether more may be known soon of what the pods of an ended run used."""
        ended_at = run.observed.state.finished_at
        if self._settings.memory is not MemorySource.PROMETHEUS or self._fails or not ended_at:
            return False
        is_recent = timedelta() <= now - ended_at <= PATIENCE
        return is_recent and any(self._is_unknown(each) for each in _executors(run))

    def _may_ask(self, now: datetime) -> bool:
        pause = PAUSE_AFTER_FAILURE if self._fails else PAUSE
        return not lasts(pause, self._asked_at, now)

    def _wanted(self, run: TrackedRun, now: datetime) -> Iterator[RunPod]:
        if self._settings.memory is MemorySource.METRICS:
            running = (each for each in _executors(run) if each.pod.phase == "Running")
            yield from (each for each in running if each.running_at is not None)
            return
        for each in _executors(run):
            has_settled = each.ended_at is not None and now - each.ended_at >= SETTLING
            if has_settled and self._is_unknown(each):
                yield each

    def _is_unknown(self, pod: RunPod) -> bool:
        """Whether Prometheus may still tell of a pod that has ended well."""
        uid = pod.pod.uid
        is_asked_for = pod.pod.phase == "Succeeded" and uid not in self._peaks
        return is_asked_for and self._tries[uid] < MOST_TRIES

    def _asked_for(self, pod: RunPod, now: datetime) -> MemoryPod:
        begun_at = pod.running_at or pod.created_at
        ran_seconds = max(0.0, (now - begun_at).total_seconds())
        return MemoryPod(pod.pod.uid, pod.pod.namespace, pod.pod.name, ran_seconds)

    def _mind_time(self, now: datetime) -> None:
        assert self._asked is not None  # else nothing is awaited
        if self._asked_at is not None and now - self._asked_at > OVERDUE:
            self._fails = True
            self._warn(self._asked, "it has not answered for a minute")

    def _warn(self, asked: MemoryQuestion, why: str) -> None:
        """Once for each setting of the policy, whatever else goes wrong with it."""
        if not self._warned:
            self._warned = True
            where = f" at {asked.url}" if asked.url else ""
            self._said.warning(
                f"peak memory is not learned, and no request is advised on: history.memory is"
                f" {asked.source}{where}: {why}"
            )

    def _forget_oldest(self, known: dict[str, float] | Counter[str]) -> None:
        for uid in list(known)[: max(0, len(known) - MOST_KEPT)]:
            del known[uid]


def _executors(run: TrackedRun) -> Iterator[RunPod]:
    """The pods that execute steps of a run."""
    for each in run.pods:
        if each.identity is not None and each.identity.role is PodRole.EXECUTOR:
            yield each
