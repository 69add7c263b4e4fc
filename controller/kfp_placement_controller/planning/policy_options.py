"""A PlacementPolicy -> what the engine is asked with; overheads that were learned fill its gaps."""

from collections.abc import Mapping
from dataclasses import replace

from kfp_placement_engine.assumptions import Assumptions
from kfp_placement_engine.contract.resources_policy import (
    Actuator,
    AssumedValues,
    PlacementPolicySpec,
    Search,
    TypeDefaults,
)
from kfp_placement_engine.genetic import GeneticParams
from kfp_placement_engine.lowering import LatencyTolerance
from kfp_placement_engine.planning import PlanOptions
from kfp_placement_engine.run_graph import DataInput, DurationSource, RunGraph, Step


def plan_options(
    policy: PlacementPolicySpec,
    driver_seconds: float | None,
    *,
    quick: bool,
    budget_seconds: float | None = None,
) -> PlanOptions:
    """How to plan.

    Args:
        policy: in force.
        driver_seconds: as learned; None = not yet. What the policy says of it goes before.
        quick: list scheduling only.
        budget_seconds: for the search, where it is shorter than the policy's.
    """
    budget = policy.engine.budget_seconds
    return PlanOptions(
        budget_seconds=budget if budget_seconds is None else min(budget, budget_seconds),
        seed=policy.engine.seed,
        dispatch="ordered" if policy.actuator is Actuator.GATES else "ready",
        objective=str(policy.objective),
        compare=(),
        latency_ruled_types=tuple(each.lower() for each in policy.latency_rules.step_types),
        latency_tolerance=LatencyTolerance(
            policy.latency_rules.tolerance_ms, policy.latency_rules.tolerance_percent / 100
        ),
        assumptions=assumptions(policy.defaults, driver_seconds),
        params=_search(policy),
        threads=1,
        quick=quick,
        alternatives=True,
    )


def assumptions(defaults: AssumedValues, driver_seconds: float | None) -> Assumptions:
    """What is assumed: the policy's values, then learned ones, then the engine's."""
    learned: Mapping[str, float] = (
        {} if driver_seconds is None else {"driver_seconds": driver_seconds}
    )
    given: Mapping[str, float | int] = {**learned, **defaults.values()}
    return replace(Assumptions(), **given)  # type: ignore[arg-type]


def with_type_defaults(graph: RunGraph, defaults: AssumedValues) -> RunGraph:
    """The run with what the policy assumes of steps by their type."""
    if not defaults.by_type:
        return graph
    of_step = {step.name: defaults.of_type(step.type) for step in graph.steps if step.type}
    sizes = {
        name: found.output_bytes
        for name, found in of_step.items()
        if found is not None and found.output_bytes is not None
    }
    steps = tuple(_with_defaults(step, of_step.get(step.name), sizes) for step in graph.steps)
    return replace(graph, steps=steps)


def _with_defaults(step: Step, found: TypeDefaults | None, sizes: Mapping[str, int]) -> Step:
    inputs = tuple(_sized(each, sizes) for each in step.inputs)
    if inputs != step.inputs:
        step = replace(step, inputs=inputs)
    if found is None:
        return step
    if step.duration_seconds is None and found.duration_seconds is not None:
        step = replace(
            step,
            duration_seconds=found.duration_seconds,
            duration_source=DurationSource.ASSUMED,
        )
    if step.max_latency_ms is None and found.max_latency_ms is not None and step.location:
        step = replace(step, max_latency_ms=found.max_latency_ms)
    if step.priority == 0 and found.priority is not None:
        step = replace(step, priority=found.priority)
    return step


def _sized(data: DataInput, sizes: Mapping[str, int]) -> DataInput:
    if data.size_bytes is None and data.producer in sizes:
        return replace(data, size_bytes=sizes[data.producer])
    return data


def _search(policy: PlacementPolicySpec) -> GeneticParams:
    if policy.engine.search is Search.PAPER:
        return GeneticParams.paper()
    return GeneticParams(
        population_size=policy.engine.population_size, islands=policy.engine.islands
    )
