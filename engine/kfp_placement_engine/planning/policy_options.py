"""The options of the planner by a PlacementPolicy.

The planner in the cluster, the command line and the SDK all use this module, so that the plan of a
preview is the plan that the cluster makes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.node_rules.latency import (
    hard_limit_ms,
    policy_tolerance,
    policy_types,
)
from kfp_placement_engine.model.policy import (
    USUAL_ACTUATOR,
    USUAL_OBJECTIVE,
    Actuator,
    LatencyPolicy,
    PlanningPolicy,
    Search,
    SearchPolicy,
    TypeAssumptions,
)
from kfp_placement_engine.model.run_graph import DataInput, DurationSource, RunGraph, Step
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.search.parameters import GeneticParams

ValueT = TypeVar("ValueT")


def policy_options(policy: PlanningPolicy) -> PlanOptions:
    """Return the options by a policy; options that the policy does not set are as usual."""
    usual = PlanOptions()
    engine = SearchPolicy() if policy.engine is None else policy.engine
    rules = LatencyPolicy() if policy.latency_rules is None else policy.latency_rules
    step_types = _given(rules.step_types, usual.latency_ruled_types)
    return PlanOptions(
        budget_seconds=_given(engine.budget_seconds, usual.budget_seconds),
        seed=_given(engine.seed, usual.seed),
        # Only gates hold a pod back. Workflow formats, which no cluster runs, are `auto`'s concern.
        dispatch="ordered" if policy.actuator is Actuator.GATES else "auto",
        objective=str(_given(policy.objective, usual.objective)),
        makespan_within=policy.makespan_within,
        weights=_given(policy.weights, usual.weights),
        latency_ruled_types=policy_types(step_types),
        latency_tolerance=policy_tolerance(rules.tolerance_ms, rules.tolerance_percent),
        assumptions=policy_assumptions(policy),
        params=_params(engine),
    )


def policy_assumptions(policy: PlanningPolicy) -> Assumptions:
    """Return the assumptions: the policy's values, then the engine's."""
    return replace(Assumptions(), **policy.assumed_values())  # type: ignore[arg-type]


def options_on(cluster: Cluster, given: Mapping[str, Any]) -> PlanOptions:
    """Return the options for a cluster: given values, else those of its policy, else the usual.

    Args:
        cluster: cluster to plan on.
        given: fields of `PlanOptions` that somebody has set.

    Raises:
        PlanningError: a value that cannot be planned with.
    """
    options = PlanOptions()
    if cluster.policy is not None:
        # `assumptions_of` merges those of the policy with those of a Cluster file.
        options = replace(policy_options(cluster.policy), assumptions=None)
    return replace(options, **given)


def with_type_defaults(graph: RunGraph, policy: PlanningPolicy) -> RunGraph:
    """Return the run with the values that the policy assumes for steps by their type."""
    by_type = policy.assumed_by_type()
    if not by_type:
        return graph
    of_step = {step.name: by_type.get(step.type.lower()) for step in graph.steps if step.type}
    sizes = {
        name: assumed.output_bytes
        for name, assumed in of_step.items()
        if assumed is not None and assumed.output_bytes is not None
    }
    steps = tuple(_with_defaults(step, of_step.get(step.name), sizes) for step in graph.steps)
    return replace(graph, steps=steps)


def followed(policy: PlanningPolicy, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the settings that a plan takes from a policy, such as `objective: packing`.

    Args:
        policy: policy of the cluster.
        given: fields of `PlanOptions` that somebody has set, in place of the policy's.

    Returns:
        Settings that differ from the usual ones.
    """
    replaced = {path for path, names in _REPLACED_BY.items() if not names.isdisjoint(given)}
    return tuple(
        f"{path}: {value}" for path, value in _unusual_settings(policy) if path not in replaced
    )


_REPLACED_BY = {
    "actuator": {"dispatch"},
    "objective": {"objective"},
    "makespanWithin": {"makespan_within"},
    "engine.budget": {"budget_seconds", "generations"},
    "engine.seed": {"seed"},
}
"""Setting of a policy -> fields of `PlanOptions` that replace it."""


def _unusual_settings(policy: PlanningPolicy) -> Iterator[tuple[str, str]]:
    """Yield path and value of the settings that change plans and are not as usual."""
    if policy.actuator not in (None, USUAL_ACTUATOR):
        yield "actuator", str(policy.actuator)
    if policy.objective not in (None, USUAL_OBJECTIVE):
        yield "objective", str(policy.objective)
    # Settings about past runs show in the run times of a plan.
    rest = replace(policy, actuator=None, objective=None, history=None)
    # A policy without other settings does not need pydantic, which takes long to import.
    if rest != PlanningPolicy():
        usual = dict(_settings(PlanningPolicy()))
        yield from (each for each in _settings(rest) if usual.get(each[0]) != each[1])


def _settings(policy: PlanningPolicy) -> Iterator[tuple[str, str]]:
    from kfp_placement_engine.contract.planned_policy import PLANNED_BY, policy_spec

    written = policy_spec(policy).model_dump(
        mode="json", by_alias=True, exclude_none=True, include=set(PLANNED_BY)
    )
    for name, value in written.items():
        if not isinstance(value, dict):
            yield name, _text(value)
            continue
        for inner, setting in value.items():
            if inner == "byType":
                yield from ((f"{name}.byType[{each.pop('type')}]", _text(each)) for each in setting)
            else:
                yield f"{name}.{inner}", _text(setting)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        if value.keys() == {"name", "amount"}:
            return f"{value['name']} {value['amount']}"
        return ", ".join(f"{key} {_text(each)}" for key, each in value.items()) or "nothing"
    if isinstance(value, list):
        return ", ".join(map(_text, value)) or "none"
    return str(value)


def _given(value: ValueT | None, usual: ValueT) -> ValueT:
    return usual if value is None else value


def _params(engine: SearchPolicy) -> GeneticParams:
    if engine.search is Search.PAPER:
        return GeneticParams.paper()
    usual = GeneticParams()
    return GeneticParams(
        population_size=_given(engine.population_size, usual.population_size),
        islands=_given(engine.islands, usual.islands),
    )


def _with_defaults(step: Step, assumed: TypeAssumptions | None, sizes: Mapping[str, int]) -> Step:
    inputs = tuple(_sized(each, sizes) for each in step.inputs)
    if inputs != step.inputs:
        step = replace(step, inputs=inputs)
    if assumed is None:
        return step
    if step.duration_seconds is None and assumed.duration_seconds is not None:
        step = replace(
            step, duration_seconds=assumed.duration_seconds, duration_source=DurationSource.ASSUMED
        )
    limit_ms = hard_limit_ms(step.location, step.max_latency_ms, assumed.max_latency_ms)
    if limit_ms is not None:
        step = replace(step, max_latency_ms=limit_ms)
    if step.priority == 0 and assumed.priority is not None:
        step = replace(step, priority=assumed.priority)
    return step


def _sized(data: DataInput, sizes: Mapping[str, int]) -> DataInput:
    if data.size_bytes is None and data.producer in sizes:
        return replace(data, size_bytes=sizes[data.producer])
    return data
