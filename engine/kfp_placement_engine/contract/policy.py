"""PlacementPolicy: how the controller works; one object, `default`, written by admins."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from kfp_placement_engine.contract.keys import (
    DEFAULT_SCHEDULER,
    KUBERNETES_SCHEDULER,
    LATENCY_RULED_TYPES,
)
from kfp_placement_engine.contract.run_queue import ResourceAmount
from kfp_placement_engine.contract.shared_parts import (
    Budget,
    Bytes,
    Confidence,
    Deadline,
    LabelValue,
    MakespanWithinText,
    MilliCpu,
    Milliseconds,
    Priority,
    Resource,
    ResourceModel,
    ResourceStatus,
    Seconds,
    Seed,
)
from kfp_placement_engine.model.node_rules.constraints import MAX_LABEL_VALUE_LENGTH
from kfp_placement_engine.model.policy import (
    KEEP_DAYS,
    USUAL_ACTUATOR,
    USUAL_OBJECTIVE,
    Actuator,
    MemorySource,
    Objective,
    Search,
)
from kfp_placement_engine.model.promise import CONFIDENCE

POLICY_NAME = "default"
"""Name of the only PlacementPolicy."""

_ASKED_URL = r"^https?://[^\s/?#@]+(/[^\s?#@]*)?$"
"""URLs that are asked: without an account, a query and a fragment."""

StoredUrl = Annotated[
    str,
    Field(max_length=1024, pattern=r"^https?://[^\s]+$", json_schema_extra={"pattern": _ASKED_URL}),
]
"""URL in a stored policy, whose kind may have refused less than today."""

_SCHEDULER = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"

SchedulerName = Annotated[
    str, Field(min_length=1, max_length=MAX_LABEL_VALUE_LENGTH, pattern=_SCHEDULER)
]


Weight = Annotated[float, Field(ge=0, le=1_000_000)]


class EngineSettings(ResourceModel):
    """Parameters of the search."""

    search: Search = Search.MEMETIC
    """The default search, or the paper's algorithm."""

    budget_seconds: Budget = 2.0
    """Time for one improvement of the plans, at most."""

    seed: Seed = 0
    """Seed of the random generator."""

    population_size: int = Field(default=16, ge=2, le=1000)
    """Plans on each island."""

    islands: int = Field(default=1, ge=1, le=64)
    """Populations that search separately; the best plan wins."""


class Weights(ResourceModel):
    """Weights of CPU and memory in the objective `paper`, and in the use of all resources."""

    cpu: Weight = 1.0
    memory: Weight = 1.0

    @model_validator(mode="after")
    def _weigh_something(self) -> Self:
        if not self.cpu and not self.memory:
            raise ValueError("cpu and memory are both 0; give at least one of them more than 0")
        return self


class ReplanningSettings(ResourceModel):
    """Rules for when plans of other runs are changed for a new one."""

    gain_percent: int = Field(default=2, ge=0, le=100)
    """Unstarted steps of other runs move only for a greater gain."""

    runs_per_round: int = Field(default=5, ge=1, le=1000)
    """Runs that are planned again in one round, at most."""


class NamespaceLimits(ResourceModel):
    """Limits of what is planned for one namespace, so that it keeps no other waiting."""

    planned_steps: int = Field(default=15_000, ge=1, le=1_000_000)
    """Steps of a namespace's runs that are planned at a time; younger runs go on without a plan."""


class LatencyRules(ResourceModel):
    """Step types that go to the node of least round trip to their location."""

    step_types: Annotated[tuple[LabelValue, ...], Field(max_length=64)] = LATENCY_RULED_TYPES
    """Step types that follow the rule, in any case; an empty list switches it off."""

    tolerance_ms: Milliseconds = 0.5
    """Nodes within this of the best count as best."""

    tolerance_percent: int = Field(default=5, ge=0, le=1000)
    """Tolerance in percent of the best round trip; the larger tolerance applies."""


AssumedRequests = Annotated[tuple[ResourceAmount, ...], Field(min_length=1, max_length=16)]
"""Requests of a step that says none; at least one, as a queue would count none as nothing."""


class TypeDefaults(ResourceModel):
    """Assumptions about steps of one type that say nothing themselves."""

    type: LabelValue
    """The step type, in any case."""

    duration_seconds: Seconds | None = None
    """Run time on the reference node."""

    output_bytes: Bytes | None = None
    """Size of each output."""

    max_latency_ms: Milliseconds | None = None
    """Hard limit of the round trip to the step's location."""

    priority: Priority | None = None
    """Importance of the run among others planned at the same time."""

    requests: AssumedRequests | None = None
    """Requests of a step, where neither its run nor past runs say them."""


class AssumedValues(ResourceModel):
    """Assumptions where nothing is specified; keys as in a Cluster file.

    What is left out has the planner's own value.
    """

    duration_seconds: Seconds | None = None
    output_bytes: Bytes | None = None
    image_bytes: Bytes | None = None
    store_bytes_per_second: Bytes | None = Field(default=None, alias="storeBandwidth")
    pull_bytes_per_second: Bytes | None = Field(default=None, alias="pullRate")
    driver_seconds: Seconds | None = None
    loop_width: int | None = Field(default=None, ge=1, le=10_000)
    requests: AssumedRequests | None = None
    by_type: Annotated[tuple[TypeDefaults, ...], Field(max_length=64)] = ()

    def of_type(self, step_type: str) -> TypeDefaults | None:
        """Return the assumptions for a step type, compared in any case."""
        wanted = step_type.lower()
        return next((each for each in self.by_type if each.type.lower() == wanted), None)


class Headroom(ResourceModel):
    """Room left free on a node where there is a choice; by default for two driver pods."""

    cpu_milli: MilliCpu = 200
    memory_bytes: Bytes = 128 * 2**20


class HistorySettings(ResourceModel):
    """Rules for how later runs learn from earlier ones, where histories are installed."""

    confidence: Confidence = CONFIDENCE
    """Share of cases in which the predicted range of an end is to hold."""

    keep_days: int = Field(default=KEEP_DAYS, ge=1, le=3650)
    """Runs that ended more days ago, counted from the last run of the pipeline, do not count."""

    memory: MemorySource = MemorySource.OFF
    """Source of the steps' peak memory: none, or a Prometheus."""

    prometheus_url: StoredUrl | None = Field(default=None, alias="prometheusURL")
    """The server that is asked with memory prometheus."""

    @model_validator(mode="after")
    def _name_the_server(self) -> Self:
        if self.memory is MemorySource.PROMETHEUS and self.prometheus_url is None:
            raise ValueError(
                "memory is prometheus, but prometheusURL is not given; give the server's address,"
                " such as http://prometheus.monitoring:9090"
            )
        return self

    @property
    def asked_url(self) -> str:
        """Prometheus that is asked; "" = none, or its URL is one that is not asked."""
        is_asked = self.memory is MemorySource.PROMETHEUS and not self.problem
        return self.prometheus_url or "" if is_asked else ""

    @property
    def problem(self) -> str:
        """Reason why the named server is not asked; "" = it is, or none should be."""
        url = self.prometheus_url or ""
        if self.memory is not MemorySource.PROMETHEUS or re.fullmatch(_ASKED_URL, url):
            return ""
        # The URL is not shown, since it may have a password.
        return (
            "peak memory is not learned: history.prometheusURL of the PlacementPolicy has an"
            " account (name:password@), a query or a fragment; give it without"
        )


def _no_default_scheduler(names: tuple[str, ...]) -> tuple[str, ...]:
    if KUBERNETES_SCHEDULER in names:
        raise ValueError(f"{KUBERNETES_SCHEDULER} cannot be one of our schedulers")
    return names


class PlacementPolicySpec(ResourceModel):
    """Settings that admins decide."""

    paused: bool = False
    """Pause: no new pods are marked or gated."""

    actuator: Actuator = USUAL_ACTUATOR
    """A scheduler of our own that asks the extender, or gates on the pods."""

    scheduler_names: Annotated[
        tuple[SchedulerName, ...],
        Field(min_length=1, max_length=16),
        AfterValidator(_no_default_scheduler),
    ] = (DEFAULT_SCHEDULER,)
    """Schedulers that steps may ask for by their mark."""

    objective: Objective = USUAL_OBJECTIVE
    """Objective of plans, after unplaced steps and latency rules."""

    makespan_within: MakespanWithinText | None = None
    """Limit of the last end of several runs, with completion: 3% beyond the shortest, 20m."""

    weights: Weights = Weights()
    engine: EngineSettings = EngineSettings()
    replanning: ReplanningSettings = ReplanningSettings()
    namespace_limits: NamespaceLimits = NamespaceLimits()
    latency_rules: LatencyRules = LatencyRules()
    defaults: AssumedValues = AssumedValues()
    history: HistorySettings = HistorySettings()

    gate_deadline_seconds: Deadline = 60.0
    """Longest time from a pod's creation until our gate comes off."""

    scheduler_stale_after_seconds: Deadline = 15.0
    """Age of our scheduler's Lease from which the scheduler counts as dead."""

    unbound_deadline_seconds: Deadline = 60.0
    """Pods unbound for longer under a dead scheduler are made again for the default one."""

    headroom: Headroom = Headroom()


class PlacementPolicyStatus(ResourceStatus):
    """Findings of the controller; admission asks for these flags."""

    scheduler_ready: bool | None = None
    """Flag: our scheduler is alive, and marked pods may be given to it."""

    gates_ready: bool | None = None
    """A planner is alive: new pods may be gated."""


class PlacementPolicy(Resource):
    """Cluster-wide settings of the controller and of plans."""

    kind: Literal["PlacementPolicy"] = "PlacementPolicy"
    spec: PlacementPolicySpec = PlacementPolicySpec()
    status: PlacementPolicyStatus | None = None
