"""When whole runs end, forecast before they begin: by plans on learned run times, and by past ends.

The pipelines are those of one namespace, and run in turn. A plan is the order of the steps, the
typical time of each and its requests, played by kube-default on the nodes of the trace. What nodes
have, and which orders are complete, is said by all runs, later ones too: no trace says it before.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.learning_runs.experiments import ASSUMED_SECONDS, CONFIDENCE, Case, past_ends
from benchmarks.learning_runs.traces import Order, Trace, TracedPod
from kfp_placement_engine import BASELINES, Cluster, LoweringOptions, Node, RunGraph, Step, lower
from kfp_placement_engine.history import History, RunEnds

COMPLETE = 0.95
"""An order must hold this share of the steps of a run: otherwise its end is another one."""

FIRST, MOST = 3, 10
"""Groups: 3 to 9 runs with a plan seen, and 10 and more."""


@dataclass(frozen=True)
class PlannedRun:
    """A run and its plan.

    Attributes:
        pipeline: its pipeline.
        number: how many runs with a plan were before it.
        planned_seconds: by the plan.
        replayed_seconds: the same with the times that its steps really took.
        seconds: what it took.
    """

    pipeline: str
    number: int
    planned_seconds: float
    replayed_seconds: float
    seconds: float


def run_ends(traces: Sequence[Trace], progress: Callable[[str], None]) -> Iterator[Case]:
    """Ends of runs; groups are how many runs of the pipeline with a plan were seen.

    Args:
        traces: those without a complete order or without nodes are left out.
        progress: told what is being done.
    """
    runs: list[PlannedRun] = []
    for trace in traces:
        if trace.order is None or not is_complete(trace, trace.order):
            continue
        cluster = cluster_of(trace)
        if cluster.nodes:
            progress(f"ends of runs: {trace.pipeline}")
            runs += planned_runs(trace, trace.order, cluster)
    runs.sort(key=lambda run: run.number)
    ends, past = RunEnds(), dict[str, list[float]]()
    for run in runs:
        seen = past.setdefault(run.pipeline, [])
        if run.number >= FIRST:
            factors = ends.predict(run.pipeline).distribution
            expected = ends.counted_seconds(run.pipeline, run.planned_seconds)
            yield Case(
                pipeline=run.pipeline,
                group=f"{MOST}+" if run.number >= MOST else f"{FIRST}-{MOST - 1}",
                seconds=run.seconds,
                forecasts={
                    "plan alone": run.planned_seconds,
                    **past_ends(seen),
                    "ours": expected * factors.quantile(0.5),
                },
                low=expected * factors.quantile((1 - CONFIDENCE) / 2),
                high=expected * factors.quantile((1 + CONFIDENCE) / 2),
            )
        ends.observe(run.pipeline, run.planned_seconds, run.seconds, run.replayed_seconds)
        seen.append(run.seconds)


def is_complete(trace: Trace, order: Order) -> bool:
    """Whether the order has nearly all steps of every run."""
    names = set(order.steps)
    return all(sum(pod.name in names for pod in run) >= COMPLETE * len(run) for run in trace.pods)


def planned_runs(trace: Trace, order: Order, cluster: Cluster) -> Iterator[PlannedRun]:
    """All runs but the first, each planned by the times of those before."""
    history, requests = History(), dict[str, TracedPod]()
    for number, run in enumerate(trace.pods):
        ends = [pod.end_seconds for pod in run if pod.end_seconds is not None]
        requests.update((pod.name, pod) for pod in run)
        if number and ends:
            graph = _graph(trace.pipeline, order, requests, history)
            took = {pod.name: pod.observation.seconds for pod in run}
            really = [
                replace(step, duration_seconds=took.get(step.name, 0)) for step in graph.steps
            ]
            planned, replayed = (
                _played_seconds(each, cluster)
                for each in (graph, replace(graph, steps=tuple(really)))
            )
            yield PlannedRun(trace.pipeline, number - 1, planned, replayed, max(ends))
        history.observe(trace.runs[number])


def _played_seconds(graph: RunGraph, cluster: Cluster) -> float:
    problem = lower(graph, cluster, LoweringOptions(dispatch="ready")).problem
    return BASELINES["kube-default"](problem, 0).makespan_seconds


def _graph(
    name: str, order: Order, requests: Mapping[str, TracedPod], history: History
) -> RunGraph:
    """The run as it is known before; requests are in its package."""
    before: dict[int, list[str]] = {}
    for first, second in order.edges:
        if order.steps[first] in requests:
            before.setdefault(second, []).append(order.steps[first])
    steps = []
    for place, step in enumerate(order.steps):
        pod = requests.get(step)
        if pod is None:
            continue
        forecast = history.predict(pod.observation.identity)
        steps.append(
            Step(
                name=step,
                task=step,
                requests={"cpu": pod.cpu_milli, "memory": pod.memory_bytes},
                duration_seconds=(
                    forecast.distribution.median_seconds if forecast else ASSUMED_SECONDS
                ),
                depends_on=tuple(sorted(before.get(place, ()))),
            )
        )
    return RunGraph(name=name, source="trace", steps=tuple(steps))


def cluster_of(trace: Trace) -> Cluster:
    """The nodes, each with as much as its pods requested at a time: more is not known of them."""
    most: dict[str, list[int]] = {}
    for run in trace.pods:
        for node, amounts in _peaks(run).items():
            known = most.setdefault(node, [0, 0])
            most[node] = [max(pair) for pair in zip(known, amounts, strict=True)]
    return Cluster(
        tuple(
            Node(name, {"cpu": cpu_milli, "memory": memory_bytes, "pods": 110})
            for name, (cpu_milli, memory_bytes) in sorted(most.items())
        )
    )


def _peaks(run: Sequence[TracedPod]) -> dict[str, tuple[int, int]]:
    """The most CPU and the most memory that the pods of each node requested at a time."""
    events: dict[str, list[tuple[float, int, int, int]]] = {}
    for pod in run:
        if pod.start_seconds is None or pod.end_seconds is None or not pod.observation.node:
            continue
        of_node = events.setdefault(pod.observation.node, [])
        # What ends makes room for what starts then.
        of_node.append((pod.start_seconds, 1, pod.cpu_milli, pod.memory_bytes))
        of_node.append((pod.end_seconds, 0, -pod.cpu_milli, -pod.memory_bytes))
    return {node: _peak(found) for node, found in events.items()}


def _peak(events: Sequence[tuple[float, int, int, int]]) -> tuple[int, int]:
    cpu = memory = most_cpu = most_memory = 0
    for _, _, cpu_change, memory_change in sorted(events):
        cpu, memory = cpu + cpu_change, memory + memory_change
        most_cpu, most_memory = max(most_cpu, cpu), max(most_memory, memory)
    return most_cpu, most_memory
