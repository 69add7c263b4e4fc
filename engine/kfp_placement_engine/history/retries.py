"""How often attempts at the steps of tasks fail, and what that takes: Argo tries a step again."""

from collections import deque
from collections.abc import Callable
from statistics import fmean

from kfp_placement_engine.history.recent import Recent
from kfp_placement_engine.history.sizes import LEAST_SECONDS
from kfp_placement_engine.model.history import PastRun, Retried
from kfp_placement_engine.model.promise import Retries, TriedAgain

RUNS_KEPT = 20
"""Of each task that was tried again in one of them."""

MOST_TASKS = 10_000
"""Of a namespace that were tried again; those that came first go first."""

TaskKey = tuple[str, str]
"""Pipeline, and path of the task in it."""

_NONE_FAILED = TriedAgain(0.0, 0.0)


class KnownRetries:
    """What the runs of one namespace tell; runs in, in the order in which they ended."""

    def __init__(self) -> None:
        """Begin with no run."""
        # Of most tasks no attempt ever fails, and there is nothing to keep.
        self._tried: Recent[TaskKey, deque[TriedAgain]] = Recent(MOST_TASKS)

    def observe(self, run: PastRun, runs_before: Callable[[str], int]) -> None:
        """Learn from a run that has ended.

        Args:
            run: that has ended.
            runs_before: in how many runs before it a task was seen, by its path.
        """
        failed = {each.step: each for each in run.retried if each.is_usable}
        for task, seconds in _seconds_of_tasks(run).items():
            key, again = (run.pipeline, task), failed.get(task)
            if key not in self._tried:
                if again is None:
                    continue
                before = [_NONE_FAILED] * min(RUNS_KEPT, runs_before(task))
                self._tried.put(key, deque(before, maxlen=RUNS_KEPT))
            kept = self._tried[key]
            kept.append(_NONE_FAILED if again is None else _tried_again(again, fmean(seconds)))
            if not any(each.failed for each in kept):
                del self._tried[key]

    def of(self, pipeline: str) -> dict[str, Retries]:
        """Of the tasks of a pipeline that were tried again, by their paths; the oldest run first.

        One before those that were seen counts as one in which no attempt failed.
        """
        return {
            task: (_NONE_FAILED, *kept)
            for (name, task), kept in self._tried.items()
            if name == pipeline
        }


def _seconds_of_tasks(run: PastRun) -> dict[str, list[float]]:
    """Run times of the steps that ended well, by task."""
    found: dict[str, list[float]] = {}
    for each in run.steps:
        found.setdefault(each.identity.step, []).append(each.seconds)
    return found


def _tried_again(again: Retried, usual_seconds: float) -> TriedAgain:
    each_seconds = again.seconds / again.failed
    return TriedAgain(again.failed / again.steps, each_seconds / max(LEAST_SECONDS, usual_seconds))
