"""What the steps of a run that has ended tell of memory: peaks, and kills for using too much."""

from collections.abc import Callable, Iterator, Mapping

from kfp_placement_controller.observed.nodes import ObservedNode
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.planning.tracked_run import TrackedRun
from kfp_placement_engine.contract.pipeline_history import step_identity
from kfp_placement_engine.model.history import MemoryUse, is_usable_memory, is_usable_size
from kfp_placement_engine.model.run_graph import RunGraph, Step, StepKind

PeakOf = Callable[[ObservedPod], float | None]
"""The most memory that a pod was seen to use, bytes; None = unknown."""


def no_peak(_pod: ObservedPod) -> None:
    """Where the policy names no source."""


def memory_uses(
    run: TrackedRun, graph: RunGraph, nodes: Mapping[str, ObservedNode], peak_of: PeakOf
) -> Iterator[MemoryUse]:
    """What each step tells that tells anything.

    Args:
        run: that has ended.
        graph: of the run.
        nodes: by name; no step has more memory than its node.
        peak_of: the most memory that a pod was seen to use.
    """
    for step in graph.steps:
        last = run.pods.executor(step.name)
        if step.kind is not StepKind.CONTAINER or last is None:
            continue
        peak = peak_of(last.pod) if last.pod.phase == "Succeeded" else None
        pods = [each.pod for each in run.pods.executors(step.name)]
        killed = [each.killed_bytes for each in pods if _fits(each.killed_bytes, each, nodes)]
        use = MemoryUse(
            identity=step_identity(graph.name, step),
            peak_bytes=peak if _fits(peak, last.pod, nodes) else None,
            killed_bytes=max((each for each in killed if each is not None), default=None),
            asked_bytes=_asked(step),
            input_bytes=usable_size(step),
        )
        if use.is_usable:
            yield use


def usable_size(step: Step) -> float | None:
    """The size of its inputs; None = it is not known, or cannot be true."""
    size = step.input_bytes
    return size if size is not None and is_usable_size(size) else None


def _asked(step: Step) -> float | None:
    amount = step.requests.get("memory")
    return amount if amount is not None and is_usable_memory(amount) else None


def _fits(amount: float | None, pod: ObservedPod, nodes: Mapping[str, ObservedNode]) -> bool:
    """Whether a pod can have had that much."""
    node = nodes.get(pod.node_name)
    capacity = None if node is None else node.node.allocatable.get("memory")
    # What its node has for pods is less than all its memory, and a pod may take some of the rest.
    return amount is not None and (capacity is None or amount <= 1.25 * capacity)
