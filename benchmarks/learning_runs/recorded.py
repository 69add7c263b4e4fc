"""Ends of recorded runs, promised before and while they run, as a controller does.

The pipelines are those of one namespace, and run in turn. A plan is the order of the steps, the
typical time of each and its requests, simulated under kube-default on the nodes of the trace. What
nodes have, and which orders are complete, is said by all runs, later too: no trace says it before.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from benchmarks.learning_runs.cases import Case
from benchmarks.learning_runs.simulated_run import PASSED, SimulatedRun, times_of
from benchmarks.learning_runs.traces import Order, Trace
from kfp_placement_engine import Cluster, LoweringOptions, Node, RunGraph, Step, lower
from kfp_placement_engine.history import Past
from kfp_placement_engine.planning.past_runs.learned_times import with_history
from kfp_placement_engine.problem.kernel import Policy
from kfp_placement_engine.search.simulation import simulate_policy

COMPLETE = 0.95
"""An order must hold this share of the steps of a run: otherwise its end is another one."""

FIRST, MANY = 3, 10
"""Runs with a plan that are seen before an end is forecast, and from which on they are many."""


def run_ends(traces: Sequence[Trace]) -> Iterator[Case]:
    """Yield each run's end from earlier runs, at its start and at shares of its time.

    Groups are how many runs of the pipeline with a plan were seen, and the shares.
    """
    past = Past()
    pipelines = [
        _Pipeline(trace, trace.order, cluster_of(trace))
        for trace in traces
        if trace.order is not None and is_complete(trace, trace.order)
    ]
    for number in range(max((len(each.trace.pods) for each in pipelines), default=0)):
        for pipeline in pipelines:
            if number >= len(pipeline.trace.pods):
                continue
            run = pipeline.run(number, past)
            if len(pipeline.ends) >= FIRST:
                yield from _cases(run, pipeline.ends)
            ended = run.past_run(number)
            if number:
                pipeline.ends.append(run.seconds)
            # The first run has no plan: of its end nothing is learned.
            past.observe(ended if number else replace(ended, seconds=None))


def _cases(run: SimulatedRun, ends: Sequence[float]) -> Iterator[Case]:
    seen = f"{MANY}+" if len(ends) >= MANY else f"{FIRST}-{MANY - 1}"
    groups = [(seen, 0.0), *((f"{passed:.0%} passed", passed) for passed in PASSED)]
    for group, passed in groups:
        case = run.case(group, ends, passed)
        if case is not None:
            yield case


def is_complete(trace: Trace, order: Order) -> bool:
    """Return whether nodes are known, and the order has nearly all steps of every run."""
    names = set(order.steps)
    has_nodes = any(pod.past.node for run in trace.pods for pod in run)
    return has_nodes and all(
        sum(pod.name in names for pod in run) >= COMPLETE * len(run) for run in trace.pods
    )


@dataclass
class _Pipeline:
    """A pipeline whose runs go on.

    Attributes:
        trace, order: trace of the pipeline, and the order of its steps.
        cluster: cluster of the runs.
        ends: ends of its planned runs so far.
        steps: steps that were seen so far; their requests are in the package.
    """

    trace: Trace
    order: Order
    cluster: Cluster
    ends: list[float] = field(default_factory=list)
    steps: dict[str, Step] = field(default_factory=dict)

    def run(self, number: int, past: Past) -> SimulatedRun:
        """Simulate the next of its runs."""
        pods = self.trace.pods[number]
        self.steps.update((pod.name, pod.step) for pod in pods)
        learned = with_history(self._graph(), past)
        # Nobody knows which images were on the nodes.
        steps = tuple(replace(step, image="") for step in learned.graph.steps)
        bare = replace(learned.graph, steps=steps)
        lowered = lower(bare, self.cluster, LoweringOptions(dispatch="ready"))
        planned = times_of(lowered, simulate_policy(lowered.problem, Policy.KUBE_DEFAULT))
        real = {
            pod.name: (pod.start_seconds, pod.end_seconds)
            for pod in pods
            if pod.start_seconds is not None and pod.end_seconds is not None
        }
        end = max((end for _, end in real.values()), default=0.0)
        real_of_planned = {name: times for name, times in real.items() if name in planned}
        return SimulatedRun(learned, planned, real_of_planned, end, [pod.past for pod in pods])

    def _graph(self) -> RunGraph:
        """Return the run as it is known before it begins."""
        before: dict[str, list[str]] = {}
        for first, second in self.order.edges:
            if self.order.steps[first] in self.steps:
                before.setdefault(self.order.steps[second], []).append(self.order.steps[first])
        steps = (
            replace(self.steps[name], depends_on=tuple(sorted(before.get(name, ()))))
            for name in self.order.steps
            if name in self.steps
        )
        return RunGraph(self.trace.pipeline, "trace", tuple(steps))


def cluster_of(trace: Trace) -> Cluster:
    """Return the nodes, each as large as its pods' requests at a time: more is not known."""
    most: dict[str, tuple[int, int]] = {}
    for run in trace.pods:
        events: dict[str, list[tuple[float, int, int, int]]] = {}
        for pod in run:
            if pod.start_seconds is None or pod.end_seconds is None or not pod.past.node:
                continue
            cpu, memory = (int(pod.step.requests.get(name, 0)) for name in ("cpu", "memory"))
            # What ends makes room for what starts then.
            events.setdefault(pod.past.node, []).extend(
                ((pod.start_seconds, 1, cpu, memory), (pod.end_seconds, 0, -cpu, -memory))
            )
        for node, deltas in events.items():
            changes, before = sorted(deltas), most.get(node, (0, 0))
            most[node] = (
                max(before[0], *accumulate(each[2] for each in changes)),
                max(before[1], *accumulate(each[3] for each in changes)),
            )
    return Cluster(
        tuple(
            Node(name, {"cpu": cpu_milli, "memory": memory_bytes, "pods": 110})
            for name, (cpu_milli, memory_bytes) in sorted(most.items())
        )
    )
