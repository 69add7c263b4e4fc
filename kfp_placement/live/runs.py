"""A run in the cluster as people see it: plan and what happened to it, joined step by step."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kfp_placement.live.latencies import LatencyView, latency_view, unkept_limit
from kfp_placement.live.pods import PodView
from kfp_placement.live.reasons import is_compared, is_ruled, loss_seconds, reason_of
from kfp_placement_engine.contract.keys import (
    MAX_RUN_NAME_CHARACTERS,
    RUN_ID_LABEL,
    RUN_NAME_ANNOTATION,
)
from kfp_placement_engine.contract.placement import ConditionType, Phase
from kfp_placement_engine.contract.resources import Condition, PipelinePlacement, read_resource
from kfp_placement_engine.contract.rows import PlannedRow, StateRow
from kfp_placement_engine.contract.texts import waiting_text
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.forecast import Basis
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.promise import StepPromise
from kfp_placement_engine.model.step_state import ENDED_STATES, StepState, Waiting

FAILED_PHASES = frozenset({Phase.FAILED, Phase.REFUSED})
ENDED_PHASES = FAILED_PHASES | {Phase.SUCCEEDED}
UNKNOWN_STATE = "unknown"
"""State of a step of which the status does not speak, as it follows another revision."""


@dataclass(frozen=True)
class AlternativeView:
    """Another node for a step.

    Attributes:
        node: its name.
        loss_seconds: how much later the run would end with the step there.
        latency_ms: round trip from there; None = not said.
    """

    node: str
    loss_seconds: float
    latency_ms: float | None = None


@dataclass(frozen=True)
class StepView:
    """A step: what is planned and what happened to it. Times are seconds since the submission.

    Attributes:
        name: the step's name.
        state: one of `StepState`, or a word of a newer revision.
        node: where its pod is or was.
        planned_node: where it should be; None = nowhere.
        planned_start_seconds, planned_finish_seconds: by the plan in force.
        start_seconds, end_seconds: when it was bound and ended.
        promise: when it starts and ends; None = not known, or it has ended.
        source: where its run time comes from, as in `DurationSource`; "" = not said.
        basis: which past runs that rests on; None = none.
        reason: why there, in a sentence; "" = not said.
        alternatives: the next best nodes.
        waiting: what it waits for.
        pod: its latest pod, where pods were read.
        is_ruled: the latency rule decided where it goes.
        is_compared: there may be other nodes for it, and the plan may name some.
        latency: its round trip and limit.
        unkept_limit: what to say of a limit that nobody looked after; "" = nothing.
        memory_advice: what it should ask for instead; "" = nothing, or nobody has looked.
    """

    name: str
    state: str
    node: str | None = None
    planned_node: str | None = None
    planned_start_seconds: float | None = None
    planned_finish_seconds: float | None = None
    start_seconds: float | None = None
    end_seconds: float | None = None
    promise: StepPromise | None = None
    source: str = ""
    basis: Basis | None = None
    reason: str = ""
    alternatives: tuple[AlternativeView, ...] = ()
    waiting: Waiting | None = None
    pod: PodView | None = None
    is_ruled: bool = False
    is_compared: bool = False
    latency: LatencyView = field(default_factory=LatencyView)
    unkept_limit: str = ""
    memory_advice: str = ""

    @property
    def is_deviating(self) -> bool:
        """Its pod is not on the node that the plan in force wants."""
        return self.node is not None and self.planned_node not in (None, self.node)

    @property
    def why_deviating(self) -> tuple[str, ...]:
        """What the event says of that, and what to say of a limit; empty = nothing is known."""
        deviation = self.pod.deviation if self.is_deviating and self.pod is not None else ""
        is_planned_here = self.planned_node is not None and self.planned_node == self.node
        is_kept = is_planned_here and not self.latency.is_beyond
        return tuple(filter(None, (deviation, "" if is_kept else self.unkept_limit)))


@dataclass(frozen=True)
class RunView:
    """A run.

    Attributes:
        name: of its Workflow.
        namespace: where.
        run_id: KFP's; "" = not said.
        run_name: KFP's; "" = not said.
        placement: its object; None = it cannot be read.
        steps: in the plan's order.
        problems: what cannot be read of it.
        workflow_message: why it failed, as its Workflow says; "" = not said, or not asked.
    """

    name: str
    namespace: str
    run_id: str = ""
    run_name: str = ""
    placement: PipelinePlacement | None = None
    steps: tuple[StepView, ...] = ()
    problems: tuple[str, ...] = field(default=())
    workflow_message: str = ""

    @property
    def key(self) -> RunKey:
        """What tells it apart from all others."""
        return RunKey(self.namespace, self.name)

    @property
    def phase(self) -> str:
        """Where it is; `Unreadable` where nobody knows."""
        if self.placement is None:
            return "Unreadable"
        status = self.placement.status
        return (status.phase if status is not None else None) or Phase.PLANNING.value

    @property
    def ended(self) -> bool:
        """Nothing more will come of it."""
        return self.phase in ENDED_PHASES

    @property
    def failed(self) -> bool:
        """It has ended, and not well."""
        return self.phase in FAILED_PHASES

    def count(self, state: StepState) -> int:
        """Steps in that state, those without a row included."""
        status = None if self.placement is None else self.placement.status
        counts = None if status is None else status.counts
        return 0 if counts is None else int(getattr(counts, state))

    @property
    def progress(self) -> str:
        """Steps that have ended, of all."""
        status = None if self.placement is None else self.placement.status
        return (status.progress if status is not None else None) or ""

    @property
    def folded_steps(self) -> int:
        """Ended steps that have no row any more."""
        status = None if self.placement is None else self.placement.status
        return (status.folded_steps if status is not None else None) or 0

    @property
    def makespan_seconds(self) -> float | None:
        """By the plan in force."""
        return None if self.placement is None else self.placement.spec.makespan_seconds

    @property
    def first_makespan_seconds(self) -> float | None:
        """By the first plan."""
        return None if self.placement is None else self.placement.spec.first_makespan_seconds

    @property
    def actual_makespan_seconds(self) -> float | None:
        """As it was, once the run has ended."""
        status = None if self.placement is None else self.placement.status
        return status.makespan_seconds if status is not None else None

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All conditions."""
        status = None if self.placement is None else self.placement.status
        return status.conditions if status is not None else ()

    @property
    def alarms(self) -> tuple[Condition, ...]:
        """Conditions that somebody should know of: what ought to hold and does not."""
        wanted = set(ConditionType) - {ConditionType.FINISHED}
        return tuple(
            each for each in self.conditions if each.type in wanted and each.status == "False"
        )

    @property
    def unplaced(self) -> tuple[StepView, ...]:
        """Steps still to come that have a node neither planned nor given."""
        to_come = (StepState.PENDING, StepState.WAITING)
        return tuple(
            step
            for step in self.steps
            if step.state in to_come and step.planned_node is None and step.node is None
        )

    @property
    def waiting(self) -> tuple[StepView, ...]:
        """Steps that wait for something."""
        return tuple(step for step in self.steps if step.waiting is not None)

    def age_seconds(self, now: datetime) -> float | None:
        """Since its submission."""
        if self.placement is None:
            return None
        return max(0.0, (now - self.placement.spec.submitted_at).total_seconds())

    def waiting_sentence(self, step: StepView, now: datetime) -> str:
        """What a step waits for, since and until when; "" = nothing."""
        age = self.age_seconds(now)
        if step.waiting is None or age is None:
            return ""
        return waiting_text(step.waiting, age)


def run_view(
    raw: Mapping[str, Any], pods: Mapping[str, PodView] | None = None, run_name: str = ""
) -> RunView:
    """Read a PipelinePlacement, which anybody may have written; never fails.

    Args:
        raw: as the API server prints it.
        pods: its pods by step.
        run_name: KFP's name of the run, where it is known from elsewhere.
    """
    metadata = raw.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name, namespace = _word(metadata.get("name")), _word(metadata.get("namespace"))
    run_id = _word(_entry(metadata.get("labels"), RUN_ID_LABEL))
    run_name = run_name or _word(_entry(metadata.get("annotations"), RUN_NAME_ANNOTATION))
    try:
        placement = read_resource(PipelinePlacement, dict(raw))
    except InputError as error:
        return RunView(name, namespace, run_id, run_name, problems=(str(error),))
    planned, states = placement.planned_rows(), placement.state_rows()
    return RunView(
        name=name,
        namespace=namespace,
        run_id=run_id,
        run_name=run_name,
        placement=placement,
        steps=tuple(_steps(placement, planned.rows, states.rows, pods or {})),
        problems=(*planned.problems, *states.problems),
    )


def step_names(placement: RunView) -> tuple[str, ...]:
    """Names of the steps that have a row."""
    return tuple(step.name for step in placement.steps)


def _steps(
    placement: PipelinePlacement,
    planned: Iterable[PlannedRow | None],
    states: tuple[StateRow | None, ...],
    pods: Mapping[str, PodView],
) -> Iterable[StepView]:
    for index, row in enumerate(planned):
        if row is None:
            continue
        state = states[index] if index < len(states) else None
        yield _step(placement, row, state or StateRow(state=UNKNOWN_STATE), pods.get(row.name))


def _step(
    placement: PipelinePlacement, row: PlannedRow, state: StateRow, pod: PodView | None
) -> StepView:
    nodes = placement.spec.nodes
    bound = placement.node_name(state.node)
    if bound is None and pod is not None and pod.node:
        bound = pod.node
    latency = latency_view(row, _index(nodes, bound, row.node), pod)
    return StepView(
        name=row.name,
        state=state.state,
        node=bound,
        planned_node=placement.node_name(row.node),
        planned_start_seconds=row.start_seconds,
        planned_finish_seconds=row.finish_seconds,
        start_seconds=state.start_seconds,
        end_seconds=state.end_seconds,
        promise=None if state.state in ENDED_STATES else state.promise,
        source=row.duration_source,
        basis=row.duration_basis,
        reason=reason_of(row, nodes, is_bound=bound is not None),
        is_ruled=is_ruled(row),
        is_compared=is_compared(row),
        alternatives=tuple(
            AlternativeView(nodes[each.node], loss_seconds(row, each), each.latency_ms)
            for each in row.alternatives
        ),
        waiting=state.waiting if state.state in (StepState.WAITING, StepState.PENDING) else None,
        pod=pod,
        latency=latency,
        unkept_limit=unkept_limit(latency, pod),
    )


def _index(nodes: Sequence[str], bound: str | None, planned: int | None) -> int | None:
    """Where a step is, or is to go, among the plan's nodes; None = on none of them."""
    if bound is None:
        return planned
    return nodes.index(bound) if bound in nodes else None


def _entry(mapping: object, key: str) -> object:
    return mapping.get(key) if isinstance(mapping, dict) else None


def _word(value: object) -> str:
    return value[:MAX_RUN_NAME_CHARACTERS] if isinstance(value, str) else ""
