"""Lessons of a run that has ended: how long its steps took, what they used, when it ended.

Clocks jump: times outside the life of a run teach nothing. Other figures that cannot be true are
left out where runs are written (`contract.history.status`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median_high

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.runs.planner_parameters import MOST_LAG
from kfp_placement_controller.runs.run_pods import RunPod
from kfp_placement_controller.runs.run_reading import RunReading
from kfp_placement_controller.runs.step_statuses import last_end
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_controller.sources.source import RunEnd
from kfp_placement_engine.contract.history.pipeline_history import (
    MAX_PIPELINE_CHARACTERS,
    step_identity,
)
from kfp_placement_engine.lowering.work import stored_bytes
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.history import PastContainer, PastRun, PastStep
from kfp_placement_engine.model.run_graph import Step, StepKind
from kfp_placement_engine.model.step_names import task_of
from kfp_placement_engine.model.step_state import StepState

LONGEST_GAP = timedelta(minutes=10)
"""Longest time between two pods of a run; drivers and Argo take seconds."""

LONGEST_BACKOFF = timedelta(minutes=70)
"""Longest time before a step's next attempt; KFP waits for an hour unless a step sets more."""

_MORE_THAN_ALLOCATABLE = 1.25
"""Highest memory peak that is believed, as a multiple of the node's allocatable memory: a node has
more than that, and a pod may take some of the rest."""

_LARGEST_NODE_BYTES = 2**50
"""Assumed allocatable memory of a node that is no longer known."""


def ended_run(run: TrackedRun, nodes: Mapping[str, Node], now: datetime) -> PastRun | None:
    """Return what a run teaches; None = it goes on, no step of it ran, or its times are odd.

    Steps that failed or were evicted, came from the cache or were skipped teach no time; those that
    were killed for memory teach that. The end of a run that failed or was interrupted says nothing
    of its plan.

    Args:
        run: run as of its last evaluation.
        nodes: nodes by name, for their speed and the duration of transfers there.
        now: the time.
    """
    reading, life = run.reading, _life(run, now)
    if reading is None or life is None or len(reading.graph.name) > MAX_PIPELINE_CHARACTERS:
        return None
    steps = tuple(_past_steps(run, reading, life, nodes))
    if not steps:
        return None
    is_whole = (
        run.observed.state.end is RunEnd.SUCCEEDED
        # A run of which every step came from the cache says nothing about durations.
        and any(each.seconds is not None for each in steps)
        and not _was_interrupted(run, life)
    )
    seconds = _duration_seconds(run, life) if is_whole else None
    first = run.promises.first
    planned = None if first is None else (first.planned_seconds or 0.0) - run.held_seconds
    return PastRun(
        uid=run.observed.uid,
        pipeline=reading.graph.name,
        ended_at=life.end,
        steps=steps,
        seconds=seconds,
        planned_seconds=planned,
        loops=_loop_widths(run),
    )


@dataclass(frozen=True)
class _Life:
    """Lifetime of a run, in whole seconds.

    Attributes:
        submitted_at: time when the run was submitted.
        begin: time when the run could begin, as time in a queue says nothing of a pipeline.
        end: time when the run ended.
    """

    submitted_at: datetime
    begin: datetime
    end: datetime

    def has(self, began_at: datetime, ended_at: datetime) -> bool:
        """Return whether a part of the run can have lasted from `began_at` to `ended_at`."""
        return self.submitted_at - MOST_LAG <= began_at <= ended_at <= self.end + MOST_LAG


def _life(run: TrackedRun, now: datetime) -> _Life | None:
    """Return the lifetime of a run; None = it has not ended, or its times cannot be true."""
    submitted_at, finished_at = run.observed.submitted_at, run.observed.state.finished_at
    if run.observed.state.end is None or finished_at is None:
        return None
    if not submitted_at <= finished_at <= now + MOST_LAG:
        return None
    begin = submitted_at + timedelta(seconds=run.held_seconds)
    return _Life(submitted_at, begin, finished_at.replace(microsecond=0))


def _duration_seconds(run: TrackedRun, life: _Life) -> float | None:
    """Return the seconds until the last step of a run ended, as plans and promises count them.

    When Argo notices that it has ended says something of Argo.
    """
    ended_at = last_end(run.statuses.values())
    if ended_at is None or not life.has(life.begin, ended_at):
        return None
    return (ended_at - life.begin).total_seconds()


def _was_interrupted(run: TrackedRun, life: _Life) -> bool:
    """Return whether the run had no pod for long: it was held back, suspended or retried.

    Nobody may have seen why, such as a planner that has just started.
    """
    pods = sorted(run.pods, key=lambda each: each.created_at)
    last_at = life.begin
    if pods and pods[0].created_at < last_at - MOST_LAG:
        return True
    for pod in pods:
        is_next_attempt = pod.identity is not None and pod.identity.attempt > 0
        if pod.created_at - last_at > (LONGEST_BACKOFF if is_next_attempt else LONGEST_GAP):
            return True
        last_at = max(last_at, pod.ended_at or life.end)
    return False


def _past_steps(
    run: TrackedRun, reading: RunReading, life: _Life, nodes: Mapping[str, Node]
) -> Iterator[PastStep]:
    """Yield the steps from which something can be learned."""
    for step in reading.graph.steps:
        last = run.pods.executor(step.name)
        if step.kind is not StepKind.CONTAINER or last is None:
            continue
        pod, status = last.pod, run.statuses.get(step.name)
        ran = _as_seen(step, pod) if reading.graph.is_outline else step
        has_succeeded = status is not None and status.state is StepState.SUCCEEDED
        seconds = _ran_seconds(last, life) if has_succeeded else None
        if seconds is not None:
            seconds = _reference_seconds(seconds, step, nodes.get(pod.node_name), reading)
        peak = (run.peaks or {}).get(pod.uid) if pod.phase == "Succeeded" else None
        killed = max(
            _possible_bytes(each.pod, each.pod.killed_bytes, nodes)
            for each in run.pods.executors(step.name)
        )
        past_step = PastStep(
            identity=step_identity(reading.graph.name, ran),
            seconds=seconds,
            node=pod.node_name,
            input_bytes=step.input_bytes,
            arguments=tuple(step.arguments.values()),
            peak_bytes=_possible_bytes(pod, peak, nodes) or None,
            killed_bytes=killed or None,
            container=PastContainer(ran.requests, ran.image, not ran.unknown_resources),
        )
        if seconds is not None or past_step.tells_memory:
            yield past_step


def _as_seen(step: Step, pod: ObservedPod) -> Step:
    """Return a step of an outline as its pod was; the plan had only assumed requests and image."""
    return replace(step, requests=pod.requests, image=pod.image, unknown_resources=())


def _ran_seconds(pod: RunPod, life: _Life) -> float | None:
    """Return the run time of the step's container in seconds, with KFP's transfers."""
    if pod.pod.phase != "Succeeded" or pod.running_at is None or pod.ended_at is None:
        return None
    # The times that the pod states come first: `RunPod` may have changed them to be in order.
    stated = (pod.pod.running_at or pod.running_at, pod.pod.finished_at or pod.ended_at)
    if not (life.has(*stated) and life.has(pod.running_at, pod.ended_at)):
        return None
    return (pod.ended_at - pod.running_at).total_seconds()


def _reference_seconds(seconds: float, step: Step, node: Node | None, reading: RunReading) -> float:
    """Return the run time of a step on a node of speed 1, without transfers.

    A plan adds these again.
    """
    direct, assumptions = reading.graph.direct_transfers, reading.assumptions
    rate = None if node is None else node.store_bytes_per_second
    moved_bytes = stored_bytes(step, assumptions, direct_transfers=direct)
    transfer_seconds = moved_bytes / (rate or assumptions.store_bytes_per_second)
    return max(0.0, seconds - transfer_seconds) * (1.0 if node is None else node.speed)


def _possible_bytes(pod: ObservedPod, amount: float | None, nodes: Mapping[str, Node]) -> float:
    """Return the memory of a pod in bytes; 0 = it is not known, or more than its node can have."""
    node = nodes.get(pod.node_name)
    capacity = None if node is None else node.allocatable.get("memory")
    had_bytes = amount or 0.0
    most_bytes = _MORE_THAN_ALLOCATABLE * (_LARGEST_NODE_BYTES if capacity is None else capacity)
    return had_bytes if 0 < had_bytes <= most_bytes else 0.0


def _loop_widths(run: TrackedRun) -> Mapping[str, int]:
    """Return the numbers of iterations of the loops for which they are known, by loop."""
    widths: dict[str, list[int]] = {}
    for name, width in run.outcome.widths.items():
        widths.setdefault(task_of(name), []).append(width)
    return {loop: median_high(counts) for loop, counts in widths.items()}
