"""One step of a plan: where and when it runs, how long it takes, and why it goes there."""

from dataclasses import dataclass

from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.forecast import Basis
from kfp_placement_engine.model.reasons import Reason
from kfp_placement_engine.model.run_graph import (
    DurationSource,
    Step,
    StepKind,
    is_guess,
)
from kfp_placement_engine.units.resources import Resources


@dataclass(frozen=True, slots=True)
class Alternative:
    """Alternative: another node that could take a step, and the cost of the change.

    Attributes:
        node: index of the node.
        loss_seconds: delay of the end of the run with the step there.
        latency_ms: round trip there; None = unknown, or no rule asks for it.
    """

    node: int
    loss_seconds: float
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation of the choice of a step's node, with the next best nodes.

    Attributes:
        sentence: the reason for people.
        reason: the reason for programs; its nodes are positions in `Plan.cluster.nodes`. None =
            only the sentence is known.
        alternatives: the next best nodes, if they were asked for; nodes as in `reason`.
    """

    sentence: str
    reason: Reason | None = None
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True, slots=True)
class Phases:
    """Time for which a step works on its node, by the kind of work.

    Attributes:
        image_pull_seconds: pulling missing image bytes.
        transfer_seconds: downloading inputs and uploading outputs.
        duration_seconds: run time on that node.
    """

    image_pull_seconds: float
    transfer_seconds: float
    duration_seconds: float


@dataclass(frozen=True, slots=True)
class RunTimeOrigin:
    """Origin of a step's run time on its node.

    Attributes:
        source: kind of the source, such as a hint or past runs.
        basis: past runs that the run time rests on; None = none.
        sized_input: name of the step's only input, where its size decides the run time; "" = there
            is no such input.
        node_speed: speed of the node, by which the reference run time was divided.
    """

    source: DurationSource
    basis: Basis | None
    sized_input: str
    node_speed: float

    @property
    def is_guess(self) -> bool:
        """True if the run time is assumed, or rests on steps that have little in common with it."""
        return is_guess(self.source, self.basis)


@dataclass(frozen=True)
class PlannedStep:
    """One step of a plan.

    Attributes:
        spec: the step as the run graph describes it.
        node: name of the node; None if no node can take the step, or if it comes from the cache.
        start_seconds: time at which its pod is bound (negative if it runs already); None if
            unschedulable or ended.
        finish_seconds: end of the upload of its outputs; None if unschedulable or ended.
        phases: time spent on pulling the image, on transfers and on running.
        run_time: origin of the run time in `phases`.
        latency_ms: round trip between the step's location and the node; None = no rule or unknown.
        is_latency_ruled: whether steps of its type go to the node of least round trip to their
            location.
        requests: resources that the planner reserves for the step.
        explanation: reasons for the choice of the node.
        progress: whether the step waits, runs or has ended.
    """

    spec: Step
    node: str | None
    start_seconds: float | None
    finish_seconds: float | None
    phases: Phases
    run_time: RunTimeOrigin
    latency_ms: float | None
    is_latency_ruled: bool
    requests: Resources
    explanation: Explanation
    progress: ProgressState

    @property
    def name(self) -> str:
        """Name of the step, as in the run graph."""
        return self.spec.name

    @property
    def is_cached(self) -> bool:
        """True if the step is taken to come from the cache: it has times but no node."""
        return self.spec.assumed_cached and self.progress is ProgressState.WAITING

    @property
    def needs_node(self) -> bool:
        """True if it goes to a node, False for a pause and for what comes from the cache."""
        return self.spec.kind.has_pod and not self.is_cached

    @property
    def requests_nothing(self) -> bool:
        """True if nobody said what it needs: `requests` is the default of KFP's launcher."""
        return self.spec.kind is StepKind.CONTAINER and not self.spec.requests


@dataclass(frozen=True)
class PlannedDriver:
    """A KFP driver pod on the plan's time line.

    Attributes:
        name: name of the step or group that the driver belongs to; "" is the run as a whole.
        node: name of the node.
        start_seconds, finish_seconds: begin and end, on the plan's clock.
    """

    name: str
    node: str
    start_seconds: float
    finish_seconds: float
