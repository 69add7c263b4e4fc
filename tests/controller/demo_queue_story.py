"""Runs in a queue, told live: who waits for what and until when, and who runs."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial

from kfp_placement_engine.contract.custom_resources import RunRequest, read_resource
from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.contract.run_request import RequestPhase, RunRequestStatus, StartRange
from kfp_placement_engine.views.queues import QueueView, queue_text, queue_view, starts_text
from tests.controller.cluster_bench.recorder import SeenRun
from tests.controller.demo_queue_runs import (
    MINUTES,
    RUNS,
    DemoRun,
    QueueRecorder,
    RunRecord,
    uses_gpu,
)
from tests.controller.demonstration import Clock, Say, say
from tests.controlplane.argo.watching import Key
from tests.controlplane.exceptions import ControlPlaneError
from tests.support.installation import Installation

LOOK_SECONDS = 0.1
PAUSE_SECONDS = 2.0
"""Between two submissions, so that people can follow."""
TIMEOUT_SECONDS = 300.0
"""Limit of the time that passes beside the steps of all runs."""


class QueueStory:
    """Tells every change of runs in a queue once.

    Args:
        installation: where.
        recorder: what watches it.
        namespace: of the runs, and of their queue.
        shorter: steps take such a part of their time.
        say: prints a line.
    """

    def __init__(
        self,
        installation: Installation,
        recorder: QueueRecorder,
        namespace: str,
        shorter: int,
        say: Say = say,
    ) -> None:
        self._installation = installation
        self._recorder = recorder
        self._namespace = namespace
        self._timeout_seconds = TIMEOUT_SECONDS + len(RUNS) * sum(MINUTES.values()) * 60 / shorter
        self._workflows = {run: run.workflow(shorter) for run in RUNS}
        self._clock = Clock(say)
        self._submitted: dict[DemoRun, float] = {}
        self._views: dict[str, QueueView] = {}
        self._queued: set[str] = set()
        self._not_before: dict[str, float] = {}
        self._shown: set[tuple[str, str]] = set()
        self._last_told: dict[str, tuple[str, StartRange | None]] = {}

    def submit(self, run: DemoRun) -> None:
        """Submit a run, and say so."""
        self._submitted[run] = self._clock.seconds
        self._installation.submit(self._workflows[run], self._namespace)
        self._line(run.name, f"submitted, priority {run.priority}", self._submitted[run])

    def go_on(self, until: Callable[[], bool], what: str) -> None:
        """Tell what happens until something has happened.

        Args:
            until: whether it has.
            what: is waited for, for the error's message.

        Raises:
            ControlPlaneError: it takes too long.
        """
        deadline = time.monotonic() + self._timeout_seconds
        is_over = False
        while not is_over:
            if time.monotonic() > deadline:
                logs = self._installation.logs()
                raise ControlPlaneError(f"waited {self._timeout_seconds:.0f} s for {what}: {logs}")
            time.sleep(LOOK_SECONDS)
            # First the question: what has happened before it is then seen below.
            is_over = until()
            self._look()

    def has_place(self, run: DemoRun) -> bool:
        """Whether a run was submitted a while ago and either goes or knows what it waits for."""
        view = self._views.get(run.name)
        is_known = view is not None and (run.name in self._queued or not view.is_waiting)
        return is_known and self._clock.seconds > self._submitted[run] + PAUSE_SECONDS

    def have_ended(self) -> bool:
        """Whether all runs have, and their queue knows."""
        finished = {
            name for name, view in self._views.items() if view.phase == RequestPhase.FINISHED
        }
        return all(
            run.name in finished and self._seen(run).ended_at is not None for run in self._submitted
        )

    def records(self) -> list[RunRecord]:
        """What was seen of all runs, in the order of submission."""
        return [self._record(run) for run in self._submitted]

    def _look(self) -> None:
        news = [each for run in self._submitted for each in self._news(run)]
        for seconds, name, text in sorted(news):
            self._line(name, text, seconds)
        for item in self._installation.api.list(API_VERSION, "RunRequest", self._namespace):
            self._tell_queue(queue_view(item), read_resource(RunRequest, item).status)

    def _tell_queue(self, view: QueueView, status: RunRequestStatus | None) -> None:
        name = view.key.name
        self._views[name] = view
        if view.is_waiting and view.missing:
            self._queued.add(name)
        if view.is_waiting and view.earliest is not None:
            self._not_before[name] = self._clock.seconds_to(view.earliest)
        starts = None if status is None else status.starts
        # Texts have minutes, and runs here take seconds.
        if self._last_told.get(name) != (queue_text(view), starts):
            self._last_told[name] = queue_text(view), starts
            self._line(name, _two_lines(view) + _left_text(starts, datetime.now(UTC)))

    def _news(self, run: DemoRun) -> Iterator[tuple[float, str, str]]:
        """When which run has done what since the last look."""
        for pod in self._recorder.pods_of(self._key(run)):
            step = pod.step()
            if step and uses_gpu(pod):
                yield from self._once(run, pod.running_at, f"{step} runs on the GPU")
                yield from self._once(run, pod.ended_at, f"{step} has ended: the GPU is free")
            elif step:
                yield from self._once(run, pod.running_at, f"{step} runs")
        seen = self._seen(run)
        yield from self._once(run, seen.ended_at, f"the run has {seen.phase.lower()}")

    def _once(
        self, run: DemoRun, moment: float | None, text: str
    ) -> Iterator[tuple[float, str, str]]:
        if moment is not None and (run.name, text) not in self._shown:
            self._shown.add((run.name, text))
            yield moment - self._clock.started, run.name, text

    def _record(self, run: DemoRun) -> RunRecord:
        seen, key, started = self._seen(run), self._key(run), self._clock.started
        released = self._recorder.released_at(key)
        # Both are known of runs that have ended.
        assert seen.ended_at is not None
        assert released is not None
        return RunRecord(
            run=run,
            phase=seen.phase,
            was_queued=run.name in self._queued,
            submitted=self._submitted[run],
            began=released - started,
            ended=seen.ended_at - started,
            not_before=self._not_before.get(run.name),
            early_pods=self._recorder.early_pods(key),
            unschedulable_pods=self._recorder.unschedulable_pods(key),
            gpu=tuple(
                (pod.running_at - started, pod.ended_at - started)
                for pod in self._recorder.pods_of(key)
                if uses_gpu(pod) and pod.running_at is not None and pod.ended_at is not None
            ),
        )

    def _seen(self, run: DemoRun) -> SeenRun:
        return self._recorder.run(self._key(run))

    def _key(self, run: DemoRun) -> Key:
        return self._namespace, run.name

    def _line(self, name: str, text: str, seconds: float | None = None) -> None:
        self._clock.line(f"{name:8}{text}", seconds)


def _two_lines(view: QueueView) -> str:
    """How a run waits; on a line of its own when it is likely to start."""
    text, starts = queue_text(view), starts_text(view)
    return text.replace(f", {starts}", f",\n{' ' * 20}{starts}") if starts else text


def _left_text(starts: StartRange | None, now: datetime) -> str:
    """How long it is until a run may start, and until it does if all goes as planned."""
    if starts is None:
        return ""
    earliest = f"in {max(0.0, (starts.earliest - now).total_seconds()):.0f} s"
    if starts.forecast is None:
        return f" ({earliest})"
    planned = max(0.0, (starts.forecast - now).total_seconds())
    return f" ({earliest}; as planned in {planned:.0f} s)"


def recorded(story: QueueStory) -> list[RunRecord]:
    """Submit all runs, each when the one before has its place, and tell of them to their end."""
    for run in RUNS:
        story.submit(run)
        story.go_on(partial(story.has_place, run), f"the queue to know run {run.name}")
    story.go_on(story.have_ended, "the end of all runs")
    return story.records()
