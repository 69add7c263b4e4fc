"""The plan of a run that is in force, as its PipelinePlacement holds it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from kfp_placement_controller.runs.step_statuses import StepStatus
from kfp_placement_engine.contract.custom_resources import PipelinePlacement
from kfp_placement_engine.contract.rows import PlannedRow
from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.reasons import FAR_FROM_USERS
from kfp_placement_engine.model.run_graph import OUTLINE
from kfp_placement_engine.plans.plan import Plan

MAX_NAMED_NODES = 5000
"""Number of nodes that a PipelinePlacement names, at most."""

ON_ITS_WAY = timedelta(seconds=2)
"""Time for which a pod may still be placed by the plan before the one in force."""


@dataclass(frozen=True)
class CurrentPlan:
    """A plan in force.

    Attributes:
        revision: number of this plan among the plans of the run.
        planned_at: time at which it was made.
        rows: rows by step name; for steps that have begun, those of the plan that placed them.
        nodes: names of nodes, to which rows refer by position.
        expected_ends: ends of begun steps, in seconds since the submission, by the newest plan that
            has an end for them.
        in_force_at: time since which it counts; None = since before this planner led.
        before: the plan before, with the rows of the steps that it had on other nodes.
        dispatch: `ready` or `ordered`.
        seed, generations: numbers with which the search can be repeated.
        makespan_seconds: end of the last step, since the submission; None = nothing can be placed.
        unschedulable: reasons why no node takes a step, by step.
        latency_missed: steps planned beyond their latency rule.
        pull_seconds: time for the image, by step.
        is_outline: whether the run does not say requests and images, as in `RunGraph`.
        quick_at: time, in monotonic seconds, at which it was made by list scheduling only; None = a
            search has made it, or another planner.
    """

    revision: int
    planned_at: datetime
    rows: Mapping[str, PlannedRow]
    nodes: tuple[str, ...]
    expected_ends: Mapping[str, float | None] = field(default_factory=dict)
    in_force_at: datetime | None = None
    before: "CurrentPlan | None" = None
    dispatch: str = "ready"
    seed: int = 0
    generations: int = 0
    makespan_seconds: float | None = None
    unschedulable: Mapping[str, str] = field(default_factory=dict)
    latency_missed: tuple[str, ...] = ()
    pull_seconds: Mapping[str, float] = field(default_factory=dict)
    is_outline: bool = False
    quick_at: float | None = None

    def node_of(self, step: str) -> str | None:
        """Return the planned node of a step; None = it has none."""
        row = self.rows.get(step)
        return None if row is None or row.node is None else self.nodes[row.node]

    def start_of(self, step: str) -> float | None:
        """Return when a step is to start, in seconds since the submission; None = nobody knows."""
        row = self.rows.get(step)
        return None if row is None else row.start_seconds

    def finish_of(self, step: str) -> float | None:
        """Return when a step is to end, in seconds since the submission; None = nobody knows."""
        if step in self.expected_ends:
            return self.expected_ends[step]
        row = self.rows.get(step)
        return None if row is None else row.finish_seconds

    def seconds_of(self, step: str) -> float | None:
        """Return how long a step takes; None = nobody knows."""
        start, finish = self.start_of(step), self.finish_of(step)
        return None if start is None or finish is None else finish - start


def plan_in_force(
    plan: Plan,
    before: CurrentPlan | None,
    planned_at: datetime,
    in_force_at: datetime,
    begun: frozenset[str],
    *,
    quick_at: float | None,
) -> CurrentPlan:
    """Return a new plan of the engine as it comes into force; begun steps keep their old rows.

    Args:
        plan: plan of the engine; its times count from the moment of planning.
        before: plan until now; None = there is none.
        planned_at: moment of planning.
        in_force_at: the time now.
        begun: steps that have started or ended by now, some perhaps while the plan was made.
        quick_at: time, in monotonic seconds, if it was made without a search; None = it was not.
    """
    old = before or CurrentPlan(0, planned_at, {}, ())
    table = _NodeTable()
    rows: dict[str, PlannedRow] = {}
    expected_ends: dict[str, float | None] = {}
    moved: dict[str, PlannedRow] = {}
    to_new, to_old = table.translation(plan.cluster.nodes), table.translation(old.nodes)
    for step, new_row in zip(plan.steps, _new_rows(plan), strict=True):
        name = step.name
        waits = step.progress is ProgressState.WAITING and name not in begun
        if waits or name not in old.rows:
            rows[name] = new_row.with_nodes(to_new)
            if name in old.rows and old.node_of(name) != step.node:
                moved[name] = old.rows[name]
        else:
            rows[name] = old.rows[name].with_nodes(to_old)
            runs = step.progress is ProgressState.RUNNING
            expected_ends[name] = new_row.finish_seconds if runs else old.finish_of(name)
    ends = [expected_ends.get(name, row.finish_seconds) for name, row in rows.items()]
    return CurrentPlan(
        revision=old.revision + 1,
        planned_at=planned_at,
        rows=rows,
        nodes=tuple(table.names),
        expected_ends=expected_ends,
        in_force_at=in_force_at,
        before=before and replace(before, rows=moved, before=None),
        dispatch=plan.search.dispatch,
        seed=plan.search.seed,
        generations=plan.search.generations,
        makespan_seconds=max((end for end in ends if end is not None), default=None),
        unschedulable=dict(plan.unschedulable),
        latency_missed=tuple(
            step.name
            for step in plan.steps
            if step.explanation.reason and step.explanation.reason.code in FAR_FROM_USERS
        ),
        pull_seconds={
            step.name: step.phases.image_pull_seconds
            for step in plan.steps
            if step.phases.image_pull_seconds
        },
        is_outline=plan.run.is_outline,
        quick_at=quick_at,
    )


def plan_of_placement(placement: PipelinePlacement) -> CurrentPlan:
    """Return the plan that a PipelinePlacement holds, without the rows that cannot be read."""
    spec = placement.spec
    return CurrentPlan(
        revision=spec.revision,
        planned_at=spec.planned_at,
        rows={row.name: row for row in placement.planned_rows().rows if row is not None},
        nodes=spec.nodes,
        dispatch=spec.dispatch,
        seed=spec.seed,
        generations=spec.generations,
        makespan_seconds=spec.makespan_seconds,
        is_outline=spec.basis == OUTLINE,
    )


def with_named_nodes(plan: CurrentPlan, names: Sequence[str]) -> CurrentPlan:
    """Return the plan with more nodes in its list: those on which pods of the run are."""
    new = [name for name in dict.fromkeys(names) if name and name not in plan.nodes]
    if not new:
        return plan
    return replace(plan, nodes=(*plan.nodes, *new)[: max(MAX_NAMED_NODES, len(plan.nodes))])


def as_placed(plan: CurrentPlan, statuses: Mapping[str, StepStatus]) -> CurrentPlan:
    """Return the plan with the previous plan's rows for steps that were still placed by that plan.

    Args:
        plan: plan in force.
        statuses: statuses of the steps.
    """
    before, since = plan.before, plan.in_force_at
    if before is None or since is None:
        return plan
    table = _NodeTable(plan.nodes)
    to_own = table.translation(before.nodes)
    placed = {}
    for name, row in before.rows.items():
        status, old_node = statuses.get(name), before.node_of(name)
        if status is None or status.started_at is None or status.node != old_node:
            continue
        if plan.node_of(name) != old_node and status.started_at <= since + ON_ITS_WAY:
            placed[name] = row.with_nodes(to_own)
    if not placed:
        return plan
    rows = {**plan.rows, **placed}
    return replace(plan, revision=plan.revision + 1, rows=rows, nodes=tuple(table.names))


class _NodeTable:
    """List of the nodes that rows name, each once."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = list(names)
        self._positions = {name: position for position, name in enumerate(names)}

    def translation(self, nodes: Sequence[str]) -> Callable[[int], int]:
        """Return a function from positions in `nodes` to positions in this list."""

        def translate(position: int) -> int:
            name = nodes[position] if 0 <= position < len(nodes) else ""
            if name not in self._positions:
                self._positions[name] = len(self.names)
                self.names.append(name)
            return self._positions[name]

        return translate


def _new_rows(plan: Plan) -> Iterator[PlannedRow]:
    """Yield the rows of the steps of a plan, with positions in the cluster's list of nodes."""
    positions = {name: position for position, name in enumerate(plan.cluster.nodes)}
    # Sources of durations are shown only where past runs are one of them.
    is_learned = any(step.run_time.basis is not None for step in plan.steps)
    for step in plan.steps:
        yield PlannedRow(
            name=step.name,
            node=positions.get(step.node or ""),
            start_seconds=_since_submission(step.start_seconds, plan),
            finish_seconds=_since_submission(step.finish_seconds, plan),
            reason=step.explanation.reason,
            alternatives=step.explanation.alternatives,
            duration_source=str(step.run_time.source) if is_learned else "",
            duration_basis=step.run_time.basis,
        )


def _since_submission(seconds: float | None, plan: Plan) -> float | None:
    return None if seconds is None else max(0.0, seconds - plan.run.release_seconds)
