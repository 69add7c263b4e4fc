"""Part of the cluster's PlacementPolicy that changes plans; the rest concerns the controller.

None means that the policy does not set a value: the usual one holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kfp_placement_engine.model.objective import MakespanWithin, ResourceWeights
from kfp_placement_engine.units.resources import Resources


class Actuator(StrEnum):
    """Actuator: what brings pods to their planned nodes."""

    EXTENDER = "extender"
    GATES = "gates"


class Objective(StrEnum):
    """Objective: the figure in which a plan is best."""

    COMPLETION = "completion"
    MAKESPAN = "makespan"
    PAPER = "paper"
    PACKING = "packing"


USUAL_ACTUATOR, USUAL_OBJECTIVE = Actuator.EXTENDER, Objective.COMPLETION
"""Values that hold where a policy says nothing."""


class Search(StrEnum):
    """Settings of the search for plans."""

    MEMETIC = "memetic"
    PAPER = "paper"


@dataclass(frozen=True)
class SearchPolicy:
    """Parameters of the search.

    Attributes:
        search: the default search, or the paper's algorithm.
        budget_seconds: time for one improvement of the plans, at most.
        seed: seed of the random generator.
        population_size: plans on each island.
        islands: populations that search separately; the best plan wins.
    """

    search: Search | None = None
    budget_seconds: float | None = None
    seed: int | None = None
    population_size: int | None = None
    islands: int | None = None


@dataclass(frozen=True)
class LatencyPolicy:
    """Rules for steps that go to the node of least round trip to their location.

    Attributes:
        step_types: step types that follow the rule, in any case; empty = none.
        tolerance_ms: nodes within this of the best count as best.
        tolerance_percent: tolerance in percent of the best round trip; the larger one applies.
    """

    step_types: tuple[str, ...] | None = None
    tolerance_ms: float | None = None
    tolerance_percent: int | None = None


@dataclass(frozen=True)
class TypeAssumptions:
    """Assumptions about steps of one type that say nothing themselves.

    Attributes:
        type: the step type, in any case.
        duration_seconds: run time on the reference node.
        output_bytes: size of each output.
        max_latency_ms: hard limit of the round trip to the step's location.
        priority: importance of the run among others planned at the same time.
        requests: requests in canonical units, where neither the run nor its past says them.
    """

    type: str
    duration_seconds: float | None = None
    output_bytes: int | None = None
    max_latency_ms: float | None = None
    priority: int | None = None
    requests: Resources | None = None


@dataclass(frozen=True)
class AssumptionPolicy:
    """Assumptions where nothing is specified.

    Attributes:
        values: stand-ins that the policy sets, by field of `Assumptions`.
        by_type: stand-ins for steps of one type.
        requests: requests in canonical units, where neither the run nor its past says them.
    """

    values: Mapping[str, float]
    by_type: tuple[TypeAssumptions, ...] | None
    requests: Resources | None = None


class MemorySource(StrEnum):
    """Source of the peak memory of steps."""

    OFF = "off"
    PROMETHEUS = "prometheus"


KEEP_DAYS = 90
"""Runs that are older than this do not count, where a policy says nothing."""


@dataclass(frozen=True)
class HistoryPolicy:
    """Settings for how plans learn from earlier runs.

    Attributes:
        confidence: share of cases in which the predicted range of an end is to hold.
        keep_days: runs that ended more days ago, counted from the pipeline's last, do not count.
    """

    confidence: float | None = None
    keep_days: int | None = None


@dataclass(frozen=True)
class PlanningPolicy:
    """Settings of a PlacementPolicy that change plans.

    Attributes:
        actuator: way to bring pods to their planned nodes; gates alone keep an order.
        objective: figure in which a plan is best.
        makespan_within: limit of the last end of several runs.
        weights: weights of the resources in the objective `paper`.
        engine: parameters of the search.
        latency_rules: rules for steps that go near their users.
        defaults: assumptions where nothing is specified.
        history: settings for learning from earlier runs.
    """

    actuator: Actuator | None = None
    objective: Objective | None = None
    makespan_within: MakespanWithin | None = None
    weights: ResourceWeights | None = None
    engine: SearchPolicy | None = None
    latency_rules: LatencyPolicy | None = None
    defaults: AssumptionPolicy | None = None
    history: HistoryPolicy | None = None

    def assumed_values(self) -> Mapping[str, float]:
        """Return the assumed values that it sets, by field of `Assumptions`."""
        return {} if self.defaults is None else self.defaults.values

    def assumed_by_type(self) -> Mapping[str, TypeAssumptions]:
        """Return the assumptions by step type in lower case; the first for a type counts."""
        if self.defaults is None or self.defaults.by_type is None:
            return {}
        by_type: dict[str, TypeAssumptions] = {}
        for each in self.defaults.by_type:
            by_type.setdefault(each.type.lower(), each)
        return by_type
