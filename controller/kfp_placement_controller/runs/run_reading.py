"""Reading of a run's graph within limits; loops get the widths that are known by now."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from kfp_placement_controller.histories.known_pasts import KnownPast
from kfp_placement_controller.sources.source import ObservedRun, StepIndex
from kfp_placement_engine.contract.planned_policy import planning_policy
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.contract.run_request import NodeGroups
from kfp_placement_engine.exceptions import InputError, LimitError, PlanningError, UnknownLoopError
from kfp_placement_engine.model.pod_constraints import (
    Labels,
    NodeAffinity,
    NodeSelectorTerm,
    Requirement,
)
from kfp_placement_engine.model.run_graph import GroupKind, RunGraph, Step
from kfp_placement_engine.planning.given_values import with_all_marked
from kfp_placement_engine.planning.past_runs.learned_times import RunForecast
from kfp_placement_engine.planning.policy_options import policy_assumptions, with_type_defaults
from kfp_placement_engine.planning.stand_ins import NO_CONTAINERS, with_stand_ins
from kfp_placement_engine.planning.starts.expected_times import StepOrder
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.readers.tree.options import ReadOptions
from kfp_placement_engine.readers.tree.run_outcomes import RunOutcome, loop_indexes

MAX_STEPS = 10_000
"""Limit of the steps of a run: more have no room in a PipelinePlacement of 1 MB."""

MAX_READINGS = 4
"""Limit of the readings at once for loops within loops: each shows the next level. Deeper levels
are read when the object changes."""

_NO_WIDTHS: Mapping[str, int] = {}

FindPast = Callable[[str], KnownPast | None]
"""Function that returns the past of a pipeline, by its name; None = nothing is known yet."""


def no_past(_pipeline: str) -> None:
    """Return None, as nothing is known of any pipeline."""


@dataclass(frozen=True)
class RunReading:
    """A run as read: its graph, and what past runs tell of it.

    Attributes:
        graph: graph of the steps.
        index: index that finds the step of a pod.
        widths: widths of loops, as known when the graph was read.
        assumptions: assumptions of its plans, apart from what the cluster has shown since.
        forecast: times of its steps by past runs; None = no past runs are known.
        past: past of its pipeline; None = none is known, or nothing is left to plan.
        past_runs: number of past runs when the graph was read.
    """

    graph: RunGraph
    index: StepIndex
    widths: Mapping[str, int]
    assumptions: Assumptions
    forecast: RunForecast | None = None
    past: KnownPast | None = None
    past_runs: int = 0

    @property
    def is_marked(self) -> bool:
        """True if any step has our mark, or counts as marked."""
        return any(step.scheduler for step in self.graph.steps)

    @cached_property
    def order(self) -> StepOrder | None:
        """Order of the steps; None = there is a cycle, or a step depends on a missing one."""
        try:
            return StepOrder.of(self.graph)
        except PlanningError:
            return None


class RunAsOfNow(NamedTuple):
    """A run as its object shows it now.

    Attributes:
        reading: run as read; the same object as before if no loop turned out otherwise.
        outcome: outcome of the steps of this graph.
        problem: reason why it cannot be read with the widths of `reading`; "" = it can.
    """

    reading: RunReading
    outcome: RunOutcome
    problem: str = ""


@dataclass(frozen=True)
class RunReader:
    """Reader of one run, under the policy in force.

    Attributes:
        run: run as observed.
        policy: policy in force, with what is assumed of steps and loops.
        nodes: groups of nodes that its queue has assigned to the run; () = any.
    """

    run: ObservedRun
    policy: PlacementPolicySpec
    nodes: NodeGroups = ()

    def read(
        self, widths: Mapping[str, int] = _NO_WIDTHS, find_past: FindPast = no_past
    ) -> RunReading:
        """Read the run.

        Args:
            widths: widths of loops, as far as they are known by now.
            find_past: function that returns the past of a pipeline.

        Raises:
            InputError: malformed, or beyond a limit.
        """
        in_force = planning_policy(self.policy)
        assumptions = policy_assumptions(in_force)
        options = ReadOptions(
            loop_widths=dict(widths), default_loop_width=assumptions.loop_width, max_steps=MAX_STEPS
        )
        graph, forecast = self._graph(options), None
        past = find_past(graph.name)
        graph = self._with_learned_widths(graph, options, past)
        containers = NO_CONTAINERS if past is None else past.containers(graph)
        graph = with_stand_ins(graph, in_force, containers)
        learned = None if past is None else past.learned_run(graph, self.policy.history.confidence)
        if learned is not None:
            graph, forecast = learned.graph, learned.forecast
        graph = with_type_defaults(graph, in_force)
        if self.run.all_marked:
            graph = with_all_marked(graph)
        graph = limited_to(graph, [group.node_selector for group in self.nodes])
        index = self.run.content.index(graph)
        past_runs = 0 if past is None else past.runs
        return RunReading(graph, index, widths, assumptions, forecast, past, past_runs)

    def read_again(self, before: RunReading | None) -> RunReading:
        """Read the run again, with the widths and the past runs that it was read with before.

        Args:
            before: run as it was read before; None = it could not be read.

        Raises:
            InputError: malformed, or beyond a limit.
        """
        if before is None:
            return self.read()
        return self.read(before.widths, lambda _pipeline: before.past)

    def as_of_now(self, reading: RunReading) -> RunAsOfNow:
        """Read what happened to the steps, and the graph again where a loop turns out otherwise.

        Args:
            reading: run as it was read before.
        """
        content = self.run.content
        outcome = content.outcome(reading.graph, reading.index)
        for _ in range(MAX_READINGS):
            widths = new_widths(reading, outcome)
            if widths is None:
                break
            widened = replace(reading, widths=widths)
            try:
                reading = self.read_again(widened)
            except InputError as error:
                return RunAsOfNow(widened, outcome, str(error))
            outcome = content.outcome(reading.graph, reading.index)
        return RunAsOfNow(reading, outcome)

    def _with_learned_widths(
        self, graph: RunGraph, options: ReadOptions, past: KnownPast | None
    ) -> RunGraph:
        """Return the graph with the loop widths of past runs, or without if it were too large."""
        widths = {} if past is None else past.learned_widths(graph)
        if not widths:
            return graph
        try:
            return self._graph(replace(options, learned_widths=widths))
        except LimitError:
            return graph

    def _graph(self, options: ReadOptions) -> RunGraph:
        content = self.run.content
        try:
            return content.graph(options)
        except UnknownLoopError:
            # A pod can claim to be of a loop that the run does not have.
            return content.graph(replace(options, loop_widths={}))


def limited_to(graph: RunGraph, selectors: Sequence[Labels]) -> RunGraph:
    """Return the same run, with steps that may use some nodes only.

    Args:
        graph: graph of the run.
        selectors: labels, at least one label each; a node must have all labels of one of these.
            () = any node.
    """
    if not selectors:
        return graph
    terms = [
        NodeSelectorTerm(
            tuple(Requirement(key, "In", (value,)) for key, value in sorted(selector.items()))
        )
        for selector in selectors
    ]
    return replace(graph, steps=tuple(_limited(step, terms) for step in graph.steps))


def _limited(step: Step, terms: Sequence[NodeSelectorTerm]) -> Step:
    own = step.affinity.required
    required = tuple(
        replace(term, requirements=(*mine.requirements, *term.requirements))
        for mine in ((NodeSelectorTerm(),) if own is None else own)
        for term in terms
        # A term without requirements matches nothing: with others it must not match either.
        if own is None or mine.requirements
    )
    return replace(step, affinity=NodeAffinity(required, step.affinity.preferred))


def graph_widths(graph: RunGraph) -> Mapping[str, int]:
    """Return the number of iterations of every loop in a graph."""
    widths = {group.name: group.width for group in graph.groups if group.kind is GroupKind.LOOP}
    if widths:
        return widths
    counted: dict[str, int] = {}
    for step in graph.steps:
        for loop, index in loop_indexes(step.name, step.iteration):
            counted[loop] = max(counted.get(loop, 0), index + 1)
    return counted


def new_widths(reading: RunReading, outcome: RunOutcome) -> Mapping[str, int] | None:
    """Return the widths with which the graph must be read again; None = it need not be.

    Args:
        reading: run as it is planned.
        outcome: outcome of the steps, as the run's object states it now.
    """
    planned = {**graph_widths(reading.graph), **dict.fromkeys(_maybe_empty(reading.graph), 0)}
    widths = dict(reading.widths)
    for loop, width in outcome.widths.items():
        if planned.get(loop, width) != width:
            widths[loop] = width
    for loop, seen in outcome.seen.items():
        if seen > planned.get(loop, seen):
            widths[loop] = seen
    return widths if widths != reading.widths else None


def _maybe_empty(graph: RunGraph) -> Iterator[str]:
    """Yield the loops planned with one iteration that may have none, as in past runs."""
    for group in graph.groups:
        if group.width_assumed and group.learned_width is not None and group.width == 1:
            yield group.name
