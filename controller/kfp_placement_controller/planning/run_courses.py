"""What a run did where its file leaves it open: widths of loops, cache hits, branches, retries."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from statistics import median_high

from kfp_placement_controller.planning.tracked_run import TrackedRun
from kfp_placement_engine.model.history import MOST_SECONDS, LeftOut, LoopWidth, Retried
from kfp_placement_engine.model.run_graph import RunGraph, Step, StepKind
from kfp_placement_engine.model.step_names import task_of
from kfp_placement_engine.model.step_state import StepState


def loop_widths(run: TrackedRun) -> Iterator[LoopWidth]:
    """Of loops that are known to have ended, or whose driver has said it."""
    widths: dict[str, list[int]] = {}
    for name, width in run.outcome.widths.items():
        widths.setdefault(task_of(name), []).append(width)
    for loop, found in widths.items():
        yield LoopWidth(loop, median_high(found))


def left_out_tasks(run: TrackedRun, graph: RunGraph) -> Iterator[LeftOut]:
    """Tasks of which iterations came from the cache, or are of branches that were not taken."""
    counts: dict[str, Counter[StepState]] = {}
    for step in graph.steps:
        status = run.statuses.get(step.name)
        is_left_out = status is not None and status.state in (StepState.CACHED, StepState.SKIPPED)
        if step.kind is StepKind.CONTAINER and status is not None and is_left_out:
            counts.setdefault(step.task, Counter())[status.state] += 1
    for task, found in counts.items():
        yield LeftOut(task, found[StepState.CACHED], found[StepState.SKIPPED])


@dataclass(frozen=True)
class FailedAttempts:
    """How many attempts at a step failed before its last one, and what they took, in seconds."""

    failed: int
    seconds: float


def failed_attempts(run: TrackedRun, step: Step) -> FailedAttempts:
    """By the run's object, which knows of pods that are gone; each goes on until the next begins.

    Where somebody has tried a whole run again, it does not name the attempts before any more.
    """
    outcome = run.outcome.steps.get(step.name)
    if outcome is None or outcome.first_started_at is None or outcome.started_at is None:
        return FailedAttempts(0, 0.0)
    seconds = (outcome.started_at - outcome.first_started_at).total_seconds()
    is_true = outcome.attempts > 1 and 0 <= seconds <= MOST_SECONDS
    return FailedAttempts(outcome.attempts - 1, seconds) if is_true else FailedAttempts(0, 0.0)


def retried_tasks(run: TrackedRun, graph: RunGraph, ran: Collection[str]) -> Iterator[Retried]:
    """Tasks whose steps were tried again.

    Args:
        run: that has ended.
        graph: of the run.
        ran: names of the steps that ended well.
    """
    found: dict[str, list[FailedAttempts]] = {}
    for step in graph.steps:
        if step.name in ran and (before := failed_attempts(run, step)).failed:
            found.setdefault(step.task, []).append(before)
    for task, attempts in found.items():
        failed = sum(each.failed for each in attempts)
        yield Retried(task, failed, sum(each.seconds for each in attempts))
