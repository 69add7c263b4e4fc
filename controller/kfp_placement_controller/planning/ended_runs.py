"""What a run that has ended teaches: what its steps took and used, and when it ended.

Clocks jump, and anybody may write a status: what cannot be true teaches nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median_high

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.planning.parameters import MOST_LAG
from kfp_placement_controller.planning.run_pods import RunPod
from kfp_placement_controller.planning.run_reading import RunReading
from kfp_placement_controller.planning.step_states import last_end
from kfp_placement_controller.planning.tracked_run import TrackedRun
from kfp_placement_controller.sources.source import RunEnd
from kfp_placement_engine.contract.pipeline_history import (
    MAX_PIPELINE_CHARACTERS,
    MAX_UID_CHARACTERS,
    step_identity,
)
from kfp_placement_engine.lowering.work import stored_bytes
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.history import (
    MOST_SECONDS,
    LoopWidth,
    PastRun,
    PastStep,
    is_usable_memory,
    is_usable_size,
)
from kfp_placement_engine.model.run_graph import RunGraph, Step, StepKind
from kfp_placement_engine.model.step_names import task_of
from kfp_placement_engine.model.step_state import StepState

LONGEST_GAP = timedelta(minutes=10)
"""Longest time between two pods of a run; drivers and Argo take seconds."""

LONGEST_BACKOFF = timedelta(minutes=70)
"""The same before a step's next attempt: KFP lets steps wait for an hour, unless they say more."""

_MORE_THAN_ALLOCATABLE = 1.25
"""What a node has for pods is less than all its memory, and a pod may take some of the rest."""


def ended_run(run: TrackedRun, nodes: Mapping[str, Node], now: datetime) -> PastRun | None:
    """Return what a run teaches; None = it goes on, no step of it ran, or its times are odd.

    Steps that failed or were evicted, came from the cache or were skipped teach no time; those that
    were killed for memory teach that. The end of a run that failed or was interrupted says nothing
    of its plan.

    Args:
        run: as of its last evaluation.
        nodes: by name, for their speed and what transfers take there.
        now: the time.
    """
    reading, life = run.reading, _life(run, now)
    if reading is None or life is None or not _has_room_for(run, reading.graph):
        return None
    steps = tuple(_past_steps(run, reading, life, nodes))
    if not steps:
        return None
    is_whole = (
        run.observed.state.end is RunEnd.SUCCEEDED
        # One that took everything from the cache does not say what a run takes.
        and any(each.seconds is not None for each in steps)
        and not _was_interrupted(run, life)
    )
    seconds = _seconds(run, life) if is_whole else None
    first = run.promises.first
    planned = None if first is None else (first.planned_seconds or 0.0) - run.held_seconds
    return PastRun(
        uid=run.observed.uid,
        pipeline=reading.graph.name,
        ended_at=life.end,
        steps=steps,
        seconds=seconds,
        planned_seconds=_usable(planned),
        loops=tuple(_loop_widths(run)),
    )


@dataclass(frozen=True)
class _Life:
    """From the submission of a run to its end, in whole seconds."""

    begin: datetime
    end: datetime

    def has(self, began_at: datetime, ended_at: datetime) -> bool:
        """Return whether something of the run can have happened then."""
        return self.begin - MOST_LAG <= began_at <= ended_at <= self.end + MOST_LAG


def _life(run: TrackedRun, now: datetime) -> _Life | None:
    """Return when a run was there; None = it goes on, or its times cannot be true."""
    began_at, finished_at = run.observed.submitted_at, run.observed.state.finished_at
    if run.observed.state.end is None or finished_at is None:
        return None
    if not began_at <= finished_at <= now + MOST_LAG:
        return None
    return _Life(began_at, finished_at.replace(microsecond=0))


def _began_at(run: TrackedRun, life: _Life) -> datetime:
    """Return when a run could begin: time in a queue says nothing of a pipeline."""
    return life.begin + timedelta(seconds=run.held_seconds)


def _seconds(run: TrackedRun, life: _Life) -> float | None:
    """Return what a run took to the end of its last step, as in plans and in what is promised.

    When Argo notices that it has ended says something of Argo.
    """
    began_at, ended_at = _began_at(run, life), last_end(run.statuses.values())
    if ended_at is None or not life.has(began_at, ended_at):
        return None
    return _usable((ended_at - began_at).total_seconds())


def _was_interrupted(run: TrackedRun, life: _Life) -> bool:
    """Return whether no pod of the run was there for long: held back, suspended, or tried again.

    Nobody may have seen why, such as a planner that has just started.
    """
    pods = sorted(run.pods, key=lambda each: each.created_at)
    last_at = _began_at(run, life)
    if pods and pods[0].created_at < last_at - MOST_LAG:
        return True
    for pod in pods:
        is_next_attempt = pod.identity is not None and pod.identity.attempt > 0
        if pod.created_at - last_at > (LONGEST_BACKOFF if is_next_attempt else LONGEST_GAP):
            return True
        last_at = max(last_at, pod.ended_at or life.end)
    return False


def _has_room_for(run: TrackedRun, graph: RunGraph) -> bool:
    """Return whether names are short enough to be stored."""
    is_short = len(graph.name) <= MAX_PIPELINE_CHARACTERS
    return is_short and len(run.observed.uid) <= MAX_UID_CHARACTERS


def _usable(seconds: float | None) -> float | None:
    """Return a time if it can be true."""
    return seconds if seconds is not None and 0 <= seconds <= MOST_SECONDS else None


def _past_steps(
    run: TrackedRun, reading: RunReading, life: _Life, nodes: Mapping[str, Node]
) -> Iterator[PastStep]:
    """Yield the steps that tell something."""
    for step in reading.graph.steps:
        last = run.pods.executor(step.name)
        if step.kind is not StepKind.CONTAINER or last is None:
            continue
        status = run.statuses.get(step.name)
        has_succeeded = status is not None and status.state is StepState.SUCCEEDED
        seconds = _ran_seconds(last, life) if has_succeeded else None
        if seconds is not None:
            seconds = _reference_seconds(seconds, step, nodes.get(last.pod.node_name), reading)
        peak = (run.peaks or {}).get(last.pod.uid) if last.pod.phase == "Succeeded" else None
        found = PastStep(
            identity=step_identity(reading.graph.name, step),
            seconds=seconds,
            node=last.pod.node_name,
            input_bytes=_usable_size(step),
            arguments=tuple(step.arguments.values()),
            peak_bytes=peak if _can_have(last.pod, peak, nodes) else None,
            killed_bytes=_killed_bytes(run, step, nodes),
            asked_bytes=_asked_bytes(step),
        )
        if found.is_usable:
            yield found


def _reference_seconds(seconds: float, step: Step, node: Node | None, reading: RunReading) -> float:
    """Return the run time of a step on a node of speed 1."""
    own_seconds = max(0.0, seconds - _transfer_seconds(step, node, reading))
    return own_seconds if node is None else own_seconds * node.speed


def _ran_seconds(pod: RunPod, life: _Life) -> float | None:
    """Return the time of the container that runs the step; KFP's transfers are in it."""
    if pod.pod.phase != "Succeeded" or pod.running_at is None or pod.ended_at is None:
        return None
    # What it says itself, where it does: `RunPod` has put times into their order.
    stated = (pod.pod.running_at or pod.running_at, pod.pod.finished_at or pod.ended_at)
    if not (life.has(*stated) and life.has(pod.running_at, pod.ended_at)):
        return None
    return (pod.ended_at - pod.running_at).total_seconds()


def _transfer_seconds(step: Step, node: Node | None, reading: RunReading) -> float:
    """Return what a plan adds to the run time again."""
    direct, assumptions = reading.graph.direct_transfers, reading.assumptions
    rate = None if node is None else node.store_bytes_per_second
    moved_bytes = stored_bytes(step, assumptions, direct_transfers=direct)
    return moved_bytes / (rate or assumptions.store_bytes_per_second)


def _killed_bytes(run: TrackedRun, step: Step, nodes: Mapping[str, Node]) -> float | None:
    """Return the most memory with which an attempt was killed for using more; None = none was."""
    pods = [each.pod for each in run.pods.executors(step.name)]
    amounts = [each.killed_bytes for each in pods if _can_have(each, each.killed_bytes, nodes)]
    return max((each for each in amounts if each is not None), default=None)


def _can_have(pod: ObservedPod, amount: float | None, nodes: Mapping[str, Node]) -> bool:
    """Return whether a pod can have had that much memory on its node."""
    node = nodes.get(pod.node_name)
    capacity = None if node is None else node.allocatable.get("memory")
    if amount is None or not is_usable_memory(amount):
        return False
    return capacity is None or amount <= _MORE_THAN_ALLOCATABLE * capacity


def _asked_bytes(step: Step) -> float | None:
    amount = step.requests.get("memory")
    return amount if amount is not None and is_usable_memory(amount) else None


def _usable_size(step: Step) -> float | None:
    """Return the size of a step's inputs; None = it is not known, or cannot be true."""
    size = step.input_bytes
    return size if size is not None and is_usable_size(size) else None


def _loop_widths(run: TrackedRun) -> Iterator[LoopWidth]:
    """Yield the loops that are known to have ended, or whose driver has said their width."""
    widths: dict[str, list[int]] = {}
    for name, width in run.outcome.widths.items():
        widths.setdefault(task_of(name), []).append(width)
    for loop, found in widths.items():
        yield LoopWidth(loop, median_high(found))
