"""What a run did where its file leaves it open: widths of loops, cache hits, branches, retries."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median_high

from kfp_placement_controller.planning.run_pods import RunPod
from kfp_placement_controller.planning.tracked_run import TrackedRun
from kfp_placement_engine.model.history import LeftOut, LoopWidth, Retried
from kfp_placement_engine.model.run_graph import RunGraph, Step, StepKind
from kfp_placement_engine.model.step_names import task_of
from kfp_placement_engine.model.step_state import StepState
from kfp_placement_engine.readers.run_outcomes import StepOutcome

MayBe = Callable[[datetime, datetime], bool]
"""Whether something of a run can have happened from one moment to another."""


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


def failed_attempts(
    run: TrackedRun, graph: RunGraph, may_be: MayBe
) -> Mapping[str, FailedAttempts]:
    """Of the steps that were tried again, by name.

    By the run's object, which knows of pods that are gone, else by its pods; each goes on until the
    next begins. What pods waited for room is left out, as plans have such waits. Where somebody has
    tried a whole run again, its object does not name the attempts before any more.

    Args:
        run: that has ended.
        graph: of the run.
        may_be: whether something of the run can have happened from one moment to another.
    """
    found = ((step.name, _failed_attempts(run, step, may_be)) for step in graph.steps)
    return {name: failed for name, failed in found if failed is not None}


def _failed_attempts(run: TrackedRun, step: Step, may_be: MayBe) -> FailedAttempts | None:
    pods = sorted(run.pods.executors(step.name), key=_number)
    failed, began_at, last_at = _attempts(run.outcome.steps.get(step.name), pods)
    # Where all around a step is tried again, attempts at it that have ended well are repeated.
    if failed == 0 or step.attempt_limit == 1:
        return None
    if began_at is None or last_at is None or not may_be(began_at, last_at):
        return None
    before_last = (each for each in pods if _number(each) < _number(pods[-1]))
    waited = sum((_waited(pod, last_at) for pod in before_last), timedelta())
    seconds = (last_at - began_at - waited).total_seconds()
    return FailedAttempts(failed, max(0.0, seconds))


def _attempts(
    outcome: StepOutcome | None, pods: Sequence[RunPod]
) -> tuple[int, datetime | None, datetime | None]:
    """How many attempts failed, when the first began, and when the last one did."""
    if outcome is not None:
        return outcome.failed, outcome.first_started_at, outcome.started_at
    # What happened is not in the object, as Argo keeps it elsewhere.
    first, last = (pods[0], pods[-1]) if pods else (None, None)
    if first is None or last is None or _number(first) > 0:
        return 0, None, None
    return _number(last), first.created_at, last.created_at


def _number(pod: RunPod) -> int:
    return 0 if pod.identity is None else pod.identity.attempt


def _waited(pod: RunPod, until: datetime) -> timedelta:
    """For room on a node; all the time if it never got any."""
    return max(timedelta(), (pod.bound_at or pod.ended_at or until) - pod.created_at)


def retried_tasks(
    graph: RunGraph, ran: Collection[str], failed: Mapping[str, FailedAttempts]
) -> Iterator[Retried]:
    """Tasks whose steps were tried again.

    Args:
        graph: of the run.
        ran: names of the steps that ended well.
        failed: what attempts took that failed, by step.
    """
    steps = [step for step in graph.steps if step.name in ran]
    well = Counter(step.task for step in steps)
    found: dict[str, list[FailedAttempts]] = {}
    for step in steps:
        if step.name in failed:
            found.setdefault(step.task, []).append(failed[step.name])
    for task, attempts in found.items():
        seconds = sum(each.seconds for each in attempts)
        yield Retried(task, sum(each.failed for each in attempts), seconds, steps=well[task])
