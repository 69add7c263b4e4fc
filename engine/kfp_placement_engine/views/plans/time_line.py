"""Time line of a plan: a lane for each node, and the default scheduler's schedule below it."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from kfp_placement_engine.plans.limits import PieceKind
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.planned_step import Explanation, Phases, PlannedDriver, PlannedStep
from kfp_placement_engine.views.drawings import (
    Bar,
    BarPhase,
    DrawnSchedule,
    Lane,
    TimeLimit,
    TimeLine,
)
from kfp_placement_engine.views.formatting import counted, duration, noticeable
from kfp_placement_engine.views.plans import promises
from kfp_placement_engine.views.plans.comparison import can_end, makespan, spread
from kfp_placement_engine.views.plans.detail import Detail
from kfp_placement_engine.views.plans.step_texts import (
    distinct_labels,
    is_missing,
    marks,
    short_name,
    step_title,
)
from kfp_placement_engine.views.plans.verdict import DEFAULT_BASELINE

_DRIVERS_EACH = 4
"""Drivers that may be drawn for each bar that may; a KFP step has one, loops have some more."""

_LEVELS = 180
"""Parts of the time line for each of which it says how many steps run."""


def plan_time_line(plan: Plan, detail: Detail) -> TimeLine:
    """Return the time line of the plan and, if known, of the default scheduler."""
    compared = _default_steps(plan)
    busy = _busy_seconds(plan.steps, plan.drivers)
    nodes = _busiest(plan, busy, detail)
    bars = sum(step.node in nodes for step in plan.steps) + len(compared)
    is_summed_up = bars > detail.bars or len(plan.drivers) > _DRIVERS_EACH * detail.bars
    promised = {} if is_summed_up or plan.promise is None else plan.promise.steps
    ranges = {name: promise.ends for name, promise in promised.items()}
    critical = {
        piece.step for piece in plan.limits.critical_path if piece.kind is PieceKind.RUNNING
    }
    pods: list[PlannedStep | PlannedDriver] = [*plan.steps, *compared, *plan.drivers]
    ends_seconds = [
        *(each.finish_seconds or 0.0 for each in pods),
        *(each.high_seconds for each in ranges.values()),
    ]
    end = max(ends_seconds, default=0.0)
    labels = distinct_labels({step.name: short_name(step) for step in plan.steps})

    def bar(step: PlannedStep, *, own: bool) -> Bar:
        """Return the bar of a step; in the plan with its range, and marked if it is critical."""
        return Bar(
            label=labels[step.name],
            details=step_title(plan, step),
            start_seconds=step.start_seconds or 0.0,
            finish_seconds=step.finish_seconds or 0.0,
            phases=_phases(step),
            marks=[*(["critical"] if own and step.name in critical else []), *marks([step])],
            ends=ranges.get(step.name) if own else None,
        )

    def lanes(steps: Iterable[PlannedStep], nodes: Iterable[str], *, own: bool) -> list[Lane]:
        by_node = defaultdict(list)
        for step in steps:
            by_node[step.node].append(step)
        if is_summed_up:
            return [_summed_up(node, by_node[node], end) for node in nodes]
        return [
            Lane(
                node,
                counted(len(by_node[node]), "step"),
                [bar(step, own=own) for step in by_node[node]],
                [_driver(plan, each) for each in plan.drivers if own and each.node == node],
            )
            for node in nodes
        ]

    own = lanes(plan.steps, nodes, own=True)
    schedules = [DrawnSchedule(f"This plan: {makespan(plan.figures)}" if compared else "", own)]
    if compared:
        others = _busiest(plan, _busy_seconds(compared), detail)
        title = _default_title(plan, compared)
        schedules.append(DrawnSchedule(title, lanes(compared, others, own=False)))
    bound = 0.0 if plan.leaves_out else plan.comparison.lower_bound.seconds
    return TimeLine(
        name=f"Time line of {plan.run.name} by node",
        description=_description(plan),
        schedules=schedules,
        end_seconds=end,
        key=_key(plan, critical, ranges, is_summed_up=is_summed_up),
        limit=TimeLimit(bound, f"no plan ends before {duration(bound)} (lower bound)")
        if bound
        else None,
        begin=plan.run.submitted_at,
        notes=_notes(plan, len(nodes), len(busy), is_summed_up=is_summed_up),
    )


def places(plan: Plan) -> list[str]:
    """Return the nodes with a step in either schedule, in the cluster's order."""
    nodes = {step.node for step in plan.steps if step.node is not None}
    return _in_order(plan, nodes | {step.node for step in plan.comparison.default_schedule})


def _in_order(plan: Plan, nodes: Collection[str]) -> list[str]:
    """Sort nodes in the cluster's order, unknown ones last."""
    order = dict.fromkeys((*plan.cluster.nodes, *sorted(nodes)))
    return [node for node in order if node in nodes]


def _default_steps(plan: Plan) -> list[PlannedStep]:
    """Return the steps as the default scheduler runs them."""
    return [
        replace(
            plan.step(scheduled.name),
            node=scheduled.node,
            start_seconds=scheduled.start_seconds,
            finish_seconds=scheduled.finish_seconds,
            phases=scheduled.phases
            or Phases(0.0, 0.0, scheduled.finish_seconds - scheduled.start_seconds),
            explanation=Explanation(""),
        )
        for scheduled in plan.comparison.default_schedule
    ]


def _busy_seconds(
    steps: Sequence[PlannedStep], drivers: Sequence[PlannedDriver] = ()
) -> dict[str, float]:
    """Return the work of each node with steps or drivers, in seconds; a step counts one more."""
    busy: dict[str, float] = defaultdict(float)
    for step in steps:
        if step.node is not None:
            busy[step.node] += (step.finish_seconds or 0.0) - (step.start_seconds or 0.0) + 1.0
    for driver in drivers:
        busy[driver.node] += driver.finish_seconds - driver.start_seconds
    return busy


def _busiest(plan: Plan, busy: Mapping[str, float], detail: Detail) -> list[str]:
    """Return the nodes with most work, in the cluster's order."""
    return _in_order(plan, sorted(busy, key=lambda node: -busy[node])[: detail.nodes])


def _phases(step: PlannedStep) -> list[BarPhase]:
    """Return pull, wait, transfers and run, in this order; uploads are shown with the downloads."""
    start, finish = step.start_seconds or 0.0, step.finish_seconds or 0.0
    pulled = start + step.phases.image_pull_seconds
    run = max(finish - step.phases.duration_seconds, pulled)
    transfer = max(run - step.phases.transfer_seconds, pulled)
    return [
        BarPhase("pull", pulled),
        BarPhase("wait", transfer),
        BarPhase("transfer", run),
        BarPhase("run", finish),
    ]


def _driver(plan: Plan, driver: PlannedDriver) -> Bar:
    return Bar(
        "",
        f"driver of {driver.name or 'the run'}: {promises.span(plan, driver)}",
        driver.start_seconds,
        driver.finish_seconds,
    )


def _summed_up(node: str, steps: Sequence[PlannedStep], end: float) -> Lane:
    """Return the number of steps in each part of the time line, if there are too many to draw."""
    change = [0] * (_LEVELS + 1)
    scale = _LEVELS / end if end > 0 else 0.0
    for step in steps:
        first, last = (
            min(int((seconds or 0.0) * scale), _LEVELS - 1)
            for seconds in (step.start_seconds, step.finish_seconds)
        )
        change[first] += 1
        change[last + 1] -= 1
    levels = list(accumulate(change[:-1]))
    return Lane(node, f"{counted(len(steps), 'step')}, {max(levels)} at once", levels=levels)


def _key(
    plan: Plan, critical: Collection[str], ranges: Collection[str], *, is_summed_up: bool
) -> list[tuple[str, str]]:
    """Return the meaning of each shade that occurs."""
    if is_summed_up:
        return [("load", "steps running at the same time, each row scaled to its own peak")]
    steps = plan.steps
    present = {
        ("pull", "image pull"): any(noticeable(step.phases.image_pull_seconds) for step in steps),
        ("transfer", "transfers (in and out)"): any(
            noticeable(step.phases.transfer_seconds) for step in steps
        ),
        ("run", "run"): True,
        ("driver", "driver pod"): bool(plan.drivers),
        ("conditional", "conditional"): any(step.spec.is_conditional for step in steps),
        ("assumed", "assumed iteration"): any(step.spec.assumed for step in steps),
        ("critical", "what the end of the run waits for"): bool(critical),
        ("whisker", f"{promises.percent(plan)} range of the end, by past runs"): bool(ranges),
    }
    return [item for item, occurs in present.items() if occurs]


def _default_title(plan: Plan, steps: Sequence[PlannedStep]) -> str:
    end = duration(max(step.finish_seconds or 0.0 for step in steps))
    figures = plan.comparison.baselines.get(DEFAULT_BASELINE)
    if figures is not None and figures.unplaced:
        end = makespan(figures)
    elif figures is not None and spread(figures):
        end = f"{end}, one of {figures.tie_breaks} tie-breaks"
    return f"The default scheduler: {end}"


def _description(plan: Plan) -> str:
    placed = sum(not is_missing(step) for step in plan.steps)
    used = len({step.node for step in plan.steps} - {None})
    ending = "of a run that does not end"
    if can_end(plan):
        ending = f"ending after {duration(plan.figures.makespan_seconds)}"
    below = (
        " The default scheduler's schedule below it." if plan.comparison.default_schedule else ""
    )
    return (
        f"{counted(placed, 'step')} on {counted(used, 'node')}, {ending}.{below}"
        " The step table holds the same figures."
    )


def _notes(plan: Plan, shown: int, busy: int, *, is_summed_up: bool) -> list[str]:
    notes = []
    if is_summed_up:
        notes.append(f"{len(plan.steps):,} steps are too many to draw one by one.")
    if busy > shown:
        notes.append(f"The {shown:,} nodes with most work of {busy:,} that carry pods of the run.")
    # Nodes with nothing but driver pods are shown too.
    idle = len(plan.cluster.nodes) - busy
    if idle > 0:
        notes.append(f"{counted(idle, 'node')} without pods of the run not shown.")
    return notes
