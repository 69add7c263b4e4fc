"""What a run that has ended teaches: the times of its steps, and what it took beside its plan.

Clocks jump, and anybody may write a status: what cannot be true teaches nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from kfp_placement_controller.observed.nodes import ObservedNode
from kfp_placement_controller.planning.memory_uses import (
    PeakOf,
    memory_uses,
    no_peak,
    usable_size,
)
from kfp_placement_controller.planning.overheads import (
    LearnedOverheads,
    RunningCentre,
    drivers_in_a_row,
)
from kfp_placement_controller.planning.parameters import MOST_LAG
from kfp_placement_controller.planning.run_courses import (
    FailedAttempts,
    failed_attempts,
    left_out_tasks,
    loop_widths,
    retried_tasks,
)
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
from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.lowering.work import stored_bytes
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.durations import MAX_DURATION_SECONDS
from kfp_placement_engine.model.history import Observation, PastRun
from kfp_placement_engine.model.run_graph import RunGraph, Step, StepKind
from kfp_placement_engine.model.step_state import StepState
from kfp_placement_engine.planning.replayed_run import StepRun, replayed_seconds

LONGEST_GAP = timedelta(minutes=10)
"""Between two pods of a run; drivers and Argo take seconds."""

LONGEST_BACKOFF = timedelta(minutes=70)
"""The same before a step's next attempt: KFP lets steps wait for an hour, unless they say more."""


def ended_run(
    run: TrackedRun,
    nodes: Mapping[str, ObservedNode],
    now: datetime,
    peak_of: PeakOf = no_peak,
) -> PastRun | None:
    """What a run teaches; None = it goes on, nothing that ran is known of it, or its end is odd.

    Steps that failed or were evicted, came from the cache or were skipped teach no time; those that
    were killed for memory teach that. The end of a run that failed, or was held back after its
    promise, says nothing of its plan.

    Args:
        run: as of its last evaluation.
        nodes: by name, for what transfers take there.
        now: the time.
        peak_of: the most memory that a pod was seen to use.
    """
    reading, state = run.variant.reading, run.observed.state
    life = _life(run, now)
    if reading is None or life is None or not _has_room_for(run, reading.graph):
        return None
    ended_well = state.end is RunEnd.SUCCEEDED
    failed = failed_attempts(run, reading.graph, life.has)
    ran = _steps_that_ran(run, reading, nodes, life, failed)
    steps = tuple(_observations(reading.graph, ran))
    memory = tuple(memory_uses(run, reading.graph, nodes, peak_of))
    left_out = tuple(left_out_tasks(run, reading.graph)) if ended_well else ()
    if not (steps or memory or left_out):
        return None
    # Time in a queue says nothing of a pipeline.
    began_at = life.begin + timedelta(seconds=run.held_seconds)
    played = _played(run, reading)
    # One that took everything from the cache does not say what a run takes.
    is_interrupted = _was_interrupted(run, life, began_at)
    is_whole = ended_well and steps and not is_interrupted
    seconds = _seconds(run, life, began_at) if is_whole else None
    replayed = _replayed(reading, ran, nodes, played) if seconds else _UNKNOWN
    # What passed between two attempts may have been the interruption; and where nobody knows how
    # much later the run has ended for them, that is part of what whole runs take.
    is_part = seconds is not None and played.seconds is not None and replayed.seconds is None
    tried = () if is_interrupted or is_part else tuple(ran)
    retried = retried_tasks(reading.graph, tried, failed)
    return PastRun(
        uid=run.observed.uid,
        pipeline=reading.graph.name,
        ended_at=life.end,
        steps=steps,
        played_seconds=_usable(played.seconds),
        memory=memory,
        seconds=seconds,
        loops=tuple(loop_widths(run)),
        left_out=left_out,
        retried=tuple(retried),
        drivers=played.drivers,
        driver_seconds=_usable(played.driver_seconds),
        replayed_seconds=replayed.seconds,
        failed_seconds=replayed.failed_seconds,
    )


@dataclass(frozen=True)
class _Played:
    """How a run was expected to end, with the drivers that it then had.

    Attributes:
        seconds: median end of the samples of its first plan; None = there are none.
        drivers: how many waited for each other on its way; None = `seconds` is with others.
        driver_seconds: what each of them took; None = not known.
    """

    seconds: float | None
    drivers: int | None
    driver_seconds: float | None


def _played(run: TrackedRun, reading: RunReading) -> _Played:
    """What was expected of a run, were its drivers as quick as they have shown to be.

    What drivers of other runs have shown does not count: these are of other namespaces, too.
    """
    promised, forecast = run.promises.first, reading.forecast
    seconds = None if promised is None else promised.played_seconds - run.held_seconds
    shown = LearnedOverheads(RunningCentre(least=1), RunningCentre(least=1))
    shown.learn(run, reading)
    own = shown.driver_seconds
    sampled = None if forecast is None else forecast.driver_seconds
    # A planner that has just started may not know what the one before it has played with.
    if own is None or sampled is None or seconds is None:
        return _Played(seconds, None, own)
    drivers = drivers_in_a_row(reading.graph, run.statuses, run.observed.state.started_at)
    return _Played(seconds + drivers * (own - sampled), drivers, own)


@dataclass(frozen=True)
class _Life:
    """From the submission of a run to its end, in whole seconds."""

    begin: datetime
    end: datetime

    def has(self, began_at: datetime, ended_at: datetime) -> bool:
        """Whether something of the run can have happened then."""
        return self.begin - MOST_LAG <= began_at <= ended_at <= self.end + MOST_LAG


def _life(run: TrackedRun, now: datetime) -> _Life | None:
    """When a run was there; None = it goes on, or its times cannot be true."""
    began_at, finished_at = run.observed.submitted_at, run.observed.state.finished_at
    if run.observed.state.end is None or finished_at is None:
        return None
    if not began_at <= finished_at <= now + MOST_LAG:
        return None
    return _Life(began_at, finished_at.replace(microsecond=0))


def _seconds(run: TrackedRun, life: _Life, began_at: datetime) -> float | None:
    """What a run took: to the end of its last step, as in plans and in what is promised.

    When Argo notices that it has ended says something of Argo.
    """
    ended_at = last_end(run.statuses.values())
    if ended_at is None or not life.has(began_at, ended_at):
        return None
    return _usable((ended_at - began_at).total_seconds())


class _Replayed(NamedTuple):
    """What a run takes by what its steps took, without what it waited for.

    Attributes:
        seconds: if no attempt had failed; None = not known.
        failed_seconds: how much later it ends for those that did; 0 where that is not known.
    """

    seconds: float | None = None
    failed_seconds: float = 0.0


_UNKNOWN = _Replayed()


def _replayed(
    reading: RunReading,
    ran: Mapping[str, StepRun],
    nodes: Mapping[str, ObservedNode],
    played: _Played,
) -> _Replayed:
    """With the drivers of the samples that the run is held against."""
    if played.seconds is None:
        return _UNKNOWN
    assumptions = reading.assumptions
    if played.driver_seconds is not None:
        assumptions = replace(assumptions, driver_seconds=played.driver_seconds)
    used = sorted({each.node for each in ran.values()} & nodes.keys())
    cluster = Cluster(tuple(nodes[name].node for name in used))
    at_once = {name: replace(each, failed_seconds=0.0) for name, each in ran.items()}
    try:
        seconds = _usable(replayed_seconds(reading.graph, at_once, cluster, assumptions))
        if seconds is None or at_once == ran:
            return _Replayed(seconds)
        at_last = replayed_seconds(reading.graph, ran, cluster, assumptions)
    except PlanningError:
        return _UNKNOWN
    return _Replayed(seconds, max(0.0, (_usable(at_last) or seconds) - seconds))


def _was_interrupted(run: TrackedRun, life: _Life, began_at: datetime) -> bool:
    """Whether no pod of the run was there for long: held back, suspended, or tried again.

    Nobody may have seen why, such as a planner that has just started.
    """
    pods = sorted(run.pods, key=lambda each: each.created_at)
    if pods and pods[0].created_at < began_at - MOST_LAG:
        return True
    last_at = began_at
    for pod in pods:
        is_next_attempt = pod.identity is not None and pod.identity.attempt > 0
        if pod.created_at - last_at > (LONGEST_BACKOFF if is_next_attempt else LONGEST_GAP):
            return True
        last_at = max(last_at, pod.ended_at or life.end)
    return False


def _has_room_for(run: TrackedRun, graph: RunGraph) -> bool:
    """Whether names are short enough to be stored."""
    is_short = len(graph.name) <= MAX_PIPELINE_CHARACTERS
    return is_short and len(run.observed.uid) <= MAX_UID_CHARACTERS


def _usable(seconds: float | None) -> float | None:
    """A time that can be true."""
    return seconds if seconds is not None and 0 <= seconds <= MAX_DURATION_SECONDS else None


def _steps_that_ran(
    run: TrackedRun,
    reading: RunReading,
    nodes: Mapping[str, ObservedNode],
    life: _Life,
    failed: Mapping[str, FailedAttempts],
) -> dict[str, StepRun]:
    """Those that ended well, by name; times in seconds since the begin of the run."""
    found: dict[str, StepRun] = {}
    for step in reading.graph.steps:
        status, pod = run.statuses.get(step.name), run.pods.executor(step.name)
        if step.kind is not StepKind.CONTAINER or status is None or pod is None:
            continue
        seconds = _ran_seconds(pod, life)
        if status.state is not StepState.SUCCEEDED or seconds is None or pod.running_at is None:
            continue
        own_seconds = seconds - _transfer_seconds(step, nodes.get(pod.pod.node_name), reading)
        failed_seconds = failed[step.name].seconds if step.name in failed else 0.0
        found[step.name] = StepRun(
            node=pod.pod.node_name,
            start_seconds=(pod.running_at - life.begin).total_seconds() - failed_seconds,
            seconds=max(0.0, own_seconds),
            failed_seconds=failed_seconds,
        )
    return found


def _observations(graph: RunGraph, ran: Mapping[str, StepRun]) -> Iterator[Observation]:
    for step in graph.steps:
        if step.name in ran:
            yield Observation(
                identity=step_identity(graph.name, step),
                seconds=ran[step.name].seconds,
                node=ran[step.name].node,
                input_bytes=usable_size(step),
                arguments=tuple(step.arguments.values()),
            )


def _ran_seconds(pod: RunPod, life: _Life) -> float | None:
    """Time of the container that runs the step; KFP's downloads and uploads are in it."""
    if pod.pod.phase != "Succeeded" or pod.running_at is None or pod.ended_at is None:
        return None
    # What it says itself, where it does: `RunPod` has put times into their order.
    stated = (pod.pod.running_at or pod.running_at, pod.pod.finished_at or pod.ended_at)
    if not (life.has(*stated) and life.has(pod.running_at, pod.ended_at)):
        return None
    return (pod.ended_at - pod.running_at).total_seconds()


def _transfer_seconds(step: Step, node: ObservedNode | None, reading: RunReading) -> float:
    """What a plan adds to the run time again."""
    direct, assumptions = reading.graph.direct_transfers, reading.assumptions
    rate = None if node is None else node.node.store_bytes_per_second
    moved_bytes = stored_bytes(step, assumptions, direct_transfers=direct)
    return moved_bytes / (rate or assumptions.store_bytes_per_second)
