"""The part of a PlacementPolicy that changes plans, as a domain class, and back."""

from collections.abc import Callable, Container
from dataclasses import asdict, fields
from typing import Any

from kfp_placement_engine.contract.policy import AssumedValues, PlacementPolicySpec
from kfp_placement_engine.contract.run_queue import amounts_of, resources_of
from kfp_placement_engine.contract.shared_parts import ResourceModel
from kfp_placement_engine.model.objective import ResourceWeights
from kfp_placement_engine.model.policy import (
    AssumptionPolicy,
    HistoryPolicy,
    LatencyPolicy,
    PlanningPolicy,
    SearchPolicy,
    TypeAssumptions,
)

PLANNED_BY = frozenset(each.name for each in fields(PlanningPolicy))
"""Parts of a policy that change a plan, by field; the rest concerns the controller alone."""

_PARTS: dict[str, Callable[..., Any]] = {
    "weights": ResourceWeights,
    "engine": SearchPolicy,
    "latency_rules": LatencyPolicy,
    "history": HistoryPolicy,
}
"""Nouns of the settings that are parts of their own in a policy, by field."""


def planning_policy(spec: PlacementPolicySpec) -> PlanningPolicy:
    """Return the values of a policy that change plans; unset ones are left out."""
    settings = _set_fields(spec, PLANNED_BY)
    for name in settings.keys() & _PARTS:
        kind = _PARTS[name]
        settings[name] = kind(**_set_fields(settings[name], kind.__annotations__))
    if "defaults" in settings:
        settings["defaults"] = _assumption_policy(spec.defaults)
    return PlanningPolicy(**settings)


def policy_spec(policy: PlanningPolicy) -> PlacementPolicySpec:
    """Return a policy that sets the same values and nothing else.

    Raises:
        ValidationError: a value that no PlacementPolicy may have.
    """
    settings = asdict(
        policy,
        dict_factory=lambda items: {name: value for name, value in items if value is not None},
    )
    if policy.makespan_within is not None:
        settings["makespan_within"] = policy.makespan_within
    if policy.defaults is not None:
        defaults = settings["defaults"]
        defaults.update(defaults.pop("values"))
        for each in (defaults, *defaults.get("by_type", ())):
            if "requests" in each:
                each["requests"] = amounts_of(each["requests"])
    return PlacementPolicySpec.model_validate(settings)


def _assumption_policy(defaults: AssumedValues) -> AssumptionPolicy:
    settings = _with_resources(_set_fields(defaults))
    by_type, requests = settings.pop("by_type", None), settings.pop("requests", None)
    types = by_type and tuple(
        TypeAssumptions(**_with_resources(_set_fields(each))) for each in by_type
    )
    return AssumptionPolicy(values=settings, by_type=types, requests=requests)


def _with_resources(settings: dict[str, Any]) -> dict[str, Any]:
    """Return assumptions with their requests in canonical units."""
    requests = settings.get("requests")
    return settings if requests is None else settings | {"requests": resources_of(requests)}


def _set_fields(model: ResourceModel, names: Container[str] | None = None) -> dict[str, Any]:
    """Return the set values of fields with these names, in the order of the fields."""
    return {
        name: value
        for name, value in model
        if name in model.model_fields_set and value is not None and (not names or name in names)
    }
