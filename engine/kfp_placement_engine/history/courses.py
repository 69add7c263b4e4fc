"""What runs did where their files leave it open: widths of loops, cache hits, branches."""

from collections import deque
from dataclasses import dataclass
from statistics import median_high

from kfp_placement_engine.history.recent import Recent
from kfp_placement_engine.model.history import MOST_PIPELINES, LearnedWidth, PastRun
from kfp_placement_engine.model.promise import Course

LAST_RUNS = 5
"""Of a loop that count: a change is followed within three runs, and one outlier does not count."""

MOST_LOOPS = 10_000
"""And tasks, of a namespace; what was not seen for longest goes first."""

RUNS_KEPT = 20
"""Runs of a pipeline of which it is known what they left out together."""

TaskKey = tuple[str, str]
"""Pipeline, and path of a loop or task in it."""


@dataclass(frozen=True)
class LeftOutRuns:
    """The last runs in a row in which no iteration of a task ran.

    Attributes:
        cached: runs in a row in which all came from the cache.
        skipped: runs in a row in which all were of a branch that was not taken.
    """

    cached: int = 0
    skipped: int = 0


class Courses:
    """What the runs of one namespace did; runs in, in the order in which they ended."""

    def __init__(self) -> None:
        """Begin with no run."""
        self._widths: Recent[TaskKey, deque[int]] = Recent(MOST_LOOPS)
        self._left_out: Recent[TaskKey, LeftOutRuns] = Recent(MOST_LOOPS)
        self._last: Recent[str, deque[Course]] = Recent(MOST_PIPELINES)

    def observe(self, run: PastRun) -> None:
        """Learn from a run that has ended."""
        for loop in run.loops:
            widths = self._widths.used((run.pipeline, loop.loop), lambda: deque(maxlen=LAST_RUNS))
            widths.append(loop.width)
        ran = {each.identity.step for each in run.steps}
        if run.seconds is not None:
            kept = self._last.used(run.pipeline, lambda: deque(maxlen=RUNS_KEPT))
            kept.append(_course(run, ran))
        for step in ran:
            self._left_out.pop((run.pipeline, step), None)
        for task in run.left_out:
            if task.step in ran:
                continue
            before = self.left_out(run.pipeline, task.step)
            now = LeftOutRuns(
                cached=0 if task.skipped else before.cached + 1,
                skipped=0 if task.cached else before.skipped + 1,
            )
            self._left_out.put((run.pipeline, task.step), now)

    def widths(self, pipeline: str) -> dict[str, LearnedWidth]:
        """Of the loops of a pipeline, by their paths."""
        return {
            loop: LearnedWidth(median_high(widths), len(widths))
            for (name, loop), widths in self._widths.items()
            if name == pipeline
        }

    def last(self, pipeline: str) -> tuple[Course, ...]:
        """What each of the last runs of a pipeline that ended well left out, the oldest first."""
        return tuple(self._last.get(pipeline, ()))

    def left_out(self, pipeline: str, step: str) -> LeftOutRuns:
        """The last runs in a row in which a task did not run."""
        return self._left_out.get((pipeline, step), LeftOutRuns())


def _course(run: PastRun, ran: set[str]) -> Course:
    """What a run left out; of a task that was both skipped and cached, the cache has a driver."""
    left_out = [each for each in run.left_out if each.step not in ran]
    cached = frozenset(each.step for each in left_out if each.cached)
    skipped = frozenset(each.step for each in left_out if each.skipped) - cached
    # Of a loop in a loop the width is a median: some of its iterations may have run.
    empty = (each.loop for each in run.loops if each.width == 0 and "[*]" not in each.loop)
    return Course(skipped, cached, frozenset(empty))
