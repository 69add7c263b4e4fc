"""What a run that has ended teaches: the times of its steps, and what it took beside its plan."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from kfp_placement_controller.observed.nodes import ObservedNode
from kfp_placement_controller.planning.run_pods import RunPod
from kfp_placement_controller.planning.tracked_run import TrackedRun
from kfp_placement_controller.sources.source import RunEnd
from kfp_placement_engine.contract.pipeline_history import MAX_PIPELINE_CHARACTERS, step_identity
from kfp_placement_engine.model.assumptions import Assumptions
from kfp_placement_engine.model.durations import MAX_DURATION_SECONDS
from kfp_placement_engine.model.history import Observation, PastRun
from kfp_placement_engine.model.run_graph import RunGraph, Step, StepKind
from kfp_placement_engine.model.step_state import StepState


def ended_run(run: TrackedRun, nodes: Mapping[str, ObservedNode], now: datetime) -> PastRun | None:
    """What a run teaches; None = it goes on, or nothing that ran is known of it.

    Steps that failed or were evicted, came from the cache or were skipped teach no time, and the
    end of a run that failed, or was held back after its promise, says nothing of its plan.

    Args:
        run: as of its last evaluation.
        nodes: by name, for what transfers take there.
        now: the time, for runs that do not say when they ended.
    """
    reading, state = run.variant.reading, run.observed.state
    if state.end is None or reading is None or len(reading.graph.name) > MAX_PIPELINE_CHARACTERS:
        return None
    steps = tuple(_observations(run, reading.graph, nodes))
    if not steps:
        return None
    finished_at = (state.finished_at or now).replace(microsecond=0)
    submitted_at = run.observed.submitted_at
    # Time in a queue says nothing of a pipeline.
    began_at = max(submitted_at, run.hold.last_at or submitted_at)
    played_seconds, promised = None, run.first_promise
    if promised is not None:
        waited_seconds = (began_at - submitted_at).total_seconds()
        played_seconds = promised.played_seconds - waited_seconds
    seconds = (finished_at - began_at).total_seconds()
    return PastRun(
        uid=run.observed.uid,
        pipeline=reading.graph.name,
        ended_at=finished_at,
        steps=steps,
        played_seconds=_usable(played_seconds),
        seconds=_usable(seconds) if state.end is RunEnd.SUCCEEDED else None,
    )


def _usable(seconds: float | None) -> float | None:
    """A time that can be true: clocks jump, and anybody may write a status."""
    is_usable = seconds is not None and 0 <= seconds <= MAX_DURATION_SECONDS
    return round(seconds, 1) if is_usable and seconds is not None else None


def _observations(
    run: TrackedRun, graph: RunGraph, nodes: Mapping[str, ObservedNode]
) -> Iterator[Observation]:
    for step in graph.steps:
        status, pod = run.statuses.get(step.name), run.pods.executor(step.name)
        if step.kind is not StepKind.CONTAINER or status is None or pod is None:
            continue
        seconds = _ran_seconds(pod)
        if status.state is not StepState.SUCCEEDED or seconds is None:
            continue
        node = nodes.get(pod.pod.node_name)
        moved = _transfer_seconds(step, node, graph)
        yield Observation(
            identity=step_identity(graph.name, step),
            # As it is stored, so that a new leader knows the same.
            seconds=max(0.0, round(seconds - moved, 1)),
            node=pod.pod.node_name,
            input_bytes=step.input_bytes,
        )


def _ran_seconds(pod: RunPod) -> float | None:
    """Time of the container that runs the step; KFP's downloads and uploads are in it."""
    if pod.pod.phase != "Succeeded" or pod.running_at is None or pod.ended_at is None:
        return None
    return (pod.ended_at - pod.running_at).total_seconds()


def _transfer_seconds(step: Step, node: ObservedNode | None, graph: RunGraph) -> float:
    """What a plan adds to the run time again, as lowering does, for data of known size."""
    if graph.direct_transfers:
        return 0.0
    sizes = [each.size_bytes or 0 for each in step.inputs]
    moved = sum(sizes) + sum(step.output_bytes.values())
    rate = None if node is None else node.node.store_bytes_per_second
    return moved / (rate or Assumptions.store_bytes_per_second)
