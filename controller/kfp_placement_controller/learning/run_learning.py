"""Learning from runs that have ended: they teach later ones, and show whether promises held.

Planning does not need this room: a defect here is logged once and stops no other run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TypeVar

from kfp_placement_controller.histories.actions import HistoryAction
from kfp_placement_controller.histories.histories import Histories
from kfp_placement_controller.learning.actions import AskMemory, MemoryAnswer
from kfp_placement_controller.learning.ended_pipelines import EndedPipeline
from kfp_placement_controller.learning.ended_runs import ended_run
from kfp_placement_controller.learning.kept_promises import KeptPromises
from kfp_placement_controller.learning.memory_peaks import MemoryPeaks
from kfp_placement_controller.learning.unplanned_runs import (
    SETTLED_SECONDS,
    UnplannedReader,
    UnplannedRuns,
)
from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_controller.warning_log import WarningLog
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.keys import RunKey

LEARNED_AT_ONCE = 500
"""Steps of ended runs that are looked at between two decisions, some 50 ms: a planner that starts
may find hundreds of ended runs."""

T = TypeVar("T")

LearningAction = HistoryAction | AskMemory


@dataclass(frozen=True)
class EndedRun:
    """An ended run of which more may be known soon.

    Attributes:
        run: the run.
        since_seconds: time since which its end is known, in monotonic seconds.
    """

    run: TrackedRun
    since_seconds: float

    @property
    def ended_at(self) -> datetime:
        """End of the run; its submission if its object states no end."""
        return self.run.observed.state.finished_at or self.run.observed.submitted_at


@dataclass
class RunLearning:
    """Learns from runs, once each.

    Attributes:
        histories: store of what has been learned; while it is not installed, nothing is learned.
        nodes: nodes by name, for the duration of transfers there.
        reader: reader of runs without a plan.
        unplanned: runs without a plan that wait to be learned from.
        memory: questions for the most memory that pods used.
        promises: outcomes of promises.
        awaited: ended runs of which more may be known soon.
    """

    histories: Histories
    nodes: Mapping[str, Node]
    reader: UnplannedReader
    unplanned: UnplannedRuns = field(default_factory=UnplannedRuns)
    memory: MemoryPeaks = field(default_factory=MemoryPeaks)
    promises: KeptPromises = field(default_factory=KeptPromises)
    awaited: dict[RunKey, EndedRun] = field(default_factory=dict)
    _warnings: WarningLog = field(default_factory=lambda: WarningLog(__name__))

    def run_evaluated(self, run: TrackedRun, monotonic_seconds: float) -> None:
        """Learn from a run if it has ended, as soon as all is known of it."""
        if self.histories.enabled and run.observed.ended:
            self.awaited.setdefault(run.key, EndedRun(run, monotonic_seconds))

    def run_gone(self, key: RunKey, now: datetime) -> None:
        """Learn from a run that is gone, if it has ended: nothing more will be known of it."""
        awaited = self.awaited.pop(key, None)
        if awaited is not None:
            self._turn(partial(self._learn, awaited.run, now))

    def pipeline_ended(self, run: EndedPipeline, monotonic_seconds: float) -> None:
        """Keep a run that gets no plan and has ended, to learn from it soon."""
        if self.histories.enabled:
            self._turn(partial(self.unplanned.add, run, monotonic_seconds))

    def memory_answered(self, answer: MemoryAnswer, monotonic_seconds: float) -> None:
        """Take what Prometheus says of the memory of pods, or why it does not."""
        self._turn(partial(self.memory.answered, answer, monotonic_seconds))

    def follow(self) -> None:
        """Stop counting promises and awaiting answers: another planner leads from now on."""
        self.promises.forget()
        self.awaited.clear()

    def learn_unplanned(self, now: datetime, monotonic_seconds: float) -> None:
        """Learn from runs without a plan.

        A planner that only follows learns too, because it may lead soon.
        """
        for ended in self._turn(partial(self.unplanned.due, monotonic_seconds)) or ():
            self._turn(partial(self._learn_unplanned, ended, now))

    def due(self, now: datetime, monotonic_seconds: float) -> list[LearningAction]:
        """Return what must be asked and written now; only the leader calls this."""
        if not self.histories.enabled:
            return []
        self._learn_settled(now, monotonic_seconds)
        runs = [each.run for each in self.awaited.values()]
        question = self._turn(partial(self.memory.due, runs, now, monotonic_seconds))
        writes = self._turn(partial(self.histories.due, monotonic_seconds)) or ()
        return [*([] if question is None else [question]), *writes]

    def _learn_settled(self, now: datetime, monotonic_seconds: float) -> None:
        """Learn from ended runs of which nothing more will be known."""
        learned = 0
        # In the order in which they ended, where a planner that starts finds many.
        for ended in sorted(self.awaited.values(), key=lambda each: each.ended_at):
            if learned >= LEARNED_AT_ONCE:
                break
            run = ended.run
            awaits_memory = partial(self.memory.awaits, run, now, monotonic_seconds)
            is_settling = lasts(SETTLED_SECONDS, ended.since_seconds, monotonic_seconds)
            if not (is_settling or self._turn(awaits_memory)):
                del self.awaited[run.key]
                learned += self._turn(partial(self._learn, run, now)) or 0

    def _learn(self, run: TrackedRun, now: datetime) -> int:
        """Learn from a run, and return how many steps were looked at for that."""
        finished_at, reading = run.observed.state.finished_at, run.reading
        # A change of the run, such as a new label, must not bring back a history that people have
        # deleted.
        if finished_at is None or reading is None or run.learned_end == finished_at:
            return 0
        if self.histories.knows(
            run.key.namespace, reading.graph.name, run.observed.uid, finished_at
        ):
            # Most ended runs that a new leader finds are in the histories already.
            run.learned_end = finished_at
            return 0
        past = ended_run(run, self.nodes, now)
        # If the run ends again, a Prometheus is asked again for the memory of its pods.
        run.peaks = None
        if past is not None:
            run.learned_end = finished_at
            if self.histories.run_ended(run.key.namespace, past):
                self.promises.ended(run)
        return len(run.statuses)

    def _learn_unplanned(self, ended: EndedPipeline, now: datetime) -> None:
        run = self.reader.read(ended, now)
        if run is not None:
            self._learn(run, now)

    def _turn(self, do: Callable[[], T]) -> T | None:
        return self._warnings.take_turn("nothing is learned from some runs", do)
