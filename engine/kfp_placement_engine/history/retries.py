"""How often attempts at the steps of tasks fail, and what that takes: Argo tries a step again."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from statistics import fmean
from typing import NamedTuple

from kfp_placement_engine.history.recent import Recent
from kfp_placement_engine.history.sizes import LEAST_SECONDS
from kfp_placement_engine.model.history import MOST_PIPELINES, PastRun, Retried
from kfp_placement_engine.model.promise import WEIGHT_OF_OLDER, Retries

RUNS_KEPT = 20
"""Of each task that was tried again in one of them."""

MOST_TASKS = 10_000
"""Of a namespace that were tried again; those that came first go first."""

TaskKey = tuple[str, str]
"""Pipeline, and path of the task in it."""


class _Attempts(NamedTuple):
    """At the steps of a task in one run.

    Attributes:
        well: those that ended well, one for each step.
        failed: those that failed before.
        ratio: how many times as long as one that ended well each of these took.
    """

    well: int
    failed: int = 0
    ratio: float = 0.0


class KnownRetries:
    """What the runs of one namespace tell; runs in, in the order in which they ended."""

    def __init__(self) -> None:
        """Begin with no run."""
        # Of most tasks no attempt ever fails, and there is nothing to keep.
        self._attempts: Recent[TaskKey, deque[_Attempts]] = Recent(MOST_TASKS)
        self._runs: Recent[str, int] = Recent(MOST_PIPELINES)

    def observe(self, run: PastRun) -> None:
        """Learn from a run that has ended."""
        failed = {each.step: each for each in run.retried}
        for task, attempts in _attempts(run, failed):
            key = (run.pipeline, task)
            if key not in self._attempts:
                if task not in failed:
                    continue
                before = [_Attempts(attempts.well)] * self._runs.get(run.pipeline, 0)
                self._attempts.put(key, deque(before, maxlen=RUNS_KEPT))
            kept = self._attempts[key]
            kept.append(attempts)
            if not any(each.failed for each in kept):
                del self._attempts[key]
        runs = self._runs.get(run.pipeline, 0)
        self._runs.put(run.pipeline, min(RUNS_KEPT, runs + 1))

    def of(self, pipeline: str) -> dict[str, Retries]:
        """Of the tasks of a pipeline that were tried again, by their paths."""
        return {
            task: _retries(kept)
            for (name, task), kept in self._attempts.items()
            if name == pipeline
        }


def _attempts(run: PastRun, failed: dict[str, Retried]) -> Iterator[tuple[str, _Attempts]]:
    """Of each task of which a step has ended well."""
    well = Counter(each.identity.step for each in run.steps)
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    for each in run.steps:
        if each.identity.step in failed:
            seconds[each.identity.step].append(each.seconds)
    for task, count in well.items():
        again = failed.get(task)
        if again is None:
            yield task, _Attempts(count)
        else:
            usual = max(LEAST_SECONDS, fmean(seconds[task]))
            yield task, _Attempts(count, again.failed, again.seconds / again.failed / usual)


def _retries(kept: deque[_Attempts]) -> Retries:
    """By the last runs, which count more than older ones."""
    well, failed = 0.0, 0.0
    for age, each in enumerate(reversed(kept)):
        weight = WEIGHT_OF_OLDER**age
        well += weight * each.well
        failed += weight * each.failed
    return Retries(failed / (well + failed), tuple(each.ratio for each in kept if each.failed))
