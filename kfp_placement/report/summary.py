"""What a plan amounts to, in the words that table and report share.

A percentage stands only where both figures rest on something: with all durations assumed, plan and
baseline are compared in words.
"""

import math
from collections import Counter
from dataclasses import dataclass

from kfp_placement.report.labels import short_name
from kfp_placement.report.values import NONE, counted, duration, finite, latency, noticeable
from kfp_placement.report.visible import visible
from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.plan import Figures, Plan, PlannedStep
from kfp_placement_engine.model.quantities import format_resources
from kfp_placement_engine.model.run_graph import StepKind

PLAN_NAME = "this plan"

NEVER_ENDS = "does not end"
"""In place of a makespan where a step fits no node."""

_NOTICEABLE_MS = 1e-3
"""Round trips closer than this are equal."""

_SAME = 5e-4
"""Makespans closer than this share of each other count as equal: it prints as 0.0%."""


@dataclass(frozen=True)
class ScheduleSummary:
    """One schedule beside the others: the plan itself or a baseline.

    Attributes:
        name: for people.
        makespan_seconds: None where nothing is placed, or the run does not end.
        verdict: how the plan compares with it ("14.2% shorter"); empty for the plan itself.
        caveat: what the verdict does not say: "but heft breaks a latency rule", or "".
        spread: the range of a makespan that is a mean: "1m to 2m over 24 tie-breaks", or "".
        unplaced: steps without a node.
        latency_ms: sum of the round trips of latency-ruled steps.
        latency_excess_ms: what of it is beyond the tolerance band of the rules.
        is_plan: it is the plan.
    """

    name: str
    makespan_seconds: float | None
    verdict: str
    caveat: str
    spread: str
    unplaced: int
    latency_ms: float
    latency_excess_ms: float
    is_plan: bool

    @property
    def makespan(self) -> str:
        """The makespan for people."""
        return NEVER_ENDS if self.unplaced else duration(self.makespan_seconds)


def schedules(plan: Plan) -> list[ScheduleSummary]:
    """The plan, then the baselines in the order asked for."""
    rows = [_schedule(PLAN_NAME, plan.figures, "", "", is_plan=True)]
    for key, figures in plan.baselines.items():
        name, words = visible(key), verdict(plan, figures)
        liberties = taken_liberties(plan, figures) if words.endswith("longer") else []
        caveat = f"but {name} {' and '.join(liberties)}" if liberties else ""
        rows.append(_schedule(name, figures, words, caveat, is_plan=False))
    return rows


def taken_liberties(plan: Plan, figures: Figures) -> list[str]:
    """What a baseline does that the plan may not: `breaks a latency rule`."""
    liberties = ["breaks a latency rule"] if breaks_more(plan, figures) else []
    if figures.moves_volumes and not plan.figures.moves_volumes:
        liberties.append("moves a volume between nodes")
    return liberties


def breaks_more(plan: Plan, figures: Figures) -> bool:
    """Whether a baseline breaks latency rules that the plan keeps, or breaks them further."""
    return figures.latency_excess_ms > plan.figures.latency_excess_ms + _NOTICEABLE_MS


def spread(figures: Figures) -> str:
    """The range behind a mean: `11m17s to 43m39s over 24 tie-breaks`, or ""."""
    least, most = duration(figures.fastest_seconds), duration(figures.slowest_seconds)
    if figures.unplaced or least == most:
        return ""
    return f"{least} to {most} over {figures.tie_breaks} tie-breaks"


def is_same(figures: Figures, other: Figures) -> bool:
    """Whether two makespans print as the same, or differ by less than what prints as 0.0%."""
    mine, others = figures.makespan_seconds, other.makespan_seconds
    if mine == others or duration(mine) == duration(others):
        return True
    return abs(mine - others) < _SAME * max(others, 1e-9)


def ends(plan: Plan) -> bool:
    """Whether the run can end at all: each of its steps has a node."""
    return plan.figures.unplaced == 0


def makespan(figures: Figures) -> str:
    """A schedule's makespan for people; a run of which a step fits no node does not end."""
    return NEVER_ENDS if figures.unplaced else duration(figures.makespan_seconds)


def unending(plan: Plan) -> str:
    """What times mean in the plan of a run that does not end, or ""."""
    if ends(plan):
        return ""
    one = plan.figures.unplaced == 1
    steps = f"{counted(plan.figures.unplaced, 'step')} {'fits' if one else 'fit'} no node"
    elsewhere = "it ran elsewhere for its" if one else "they ran elsewhere for their"
    return (
        f"The run does not end while {steps}; all times are what they would be if {elsewhere}"
        " run time on the reference node."
    )


def use_lines(plan: Plan) -> list[str]:
    """How much of the nodes is in use on average: `this plan 52% (cpu 71%, memory 33%)`.

    A line for each schedule that ends. The first figure is the mean of CPU and memory by the plan's
    weights; resources that nothing requests, and the number of pods, are left out.
    """
    lines = []
    for name, figures in ((PLAN_NAME, plan.figures), *plan.baselines.items()):
        weighted = plan.weights.mean_of(figures.use)
        each = [f"{visible(key)} {share:.0%}" for key, share in figures.use.items() if share > 0]
        each = [text for text in each if not text.startswith("pods ")]
        if each and not figures.unplaced:
            whole = "" if weighted is None else f"{weighted:.0%} "
            lines.append(f"{visible(name)} {whole}({', '.join(each)})")
    return lines


def steps_by_obstacle(plan: Plan) -> list[tuple[tuple[str, ...], str]]:
    """Steps that fit no node, together where the reason is the same; and the reasons."""
    alike: dict[str, list[str]] = {}
    for step, reason in plan.unschedulable:
        alike.setdefault(reason, []).append(step)
    return [(tuple(steps), reason) for reason, steps in alike.items()]


def waiting_for(plan: Plan) -> dict[str, PlannedStep]:
    """Steps that never start, each with a step before it that fits no node."""
    stuck = {step.name: step for step in plan.steps if step.node is None and not step.cached}
    waiting: dict[str, PlannedStep] = {}
    for step in plan.steps if stuck else ():
        for parent in step.depends_on:
            cause = stuck.get(parent) or waiting.get(parent)
            if cause is not None:
                waiting[step.name] = cause
                break
    return waiting


def waits(cause: PlannedStep | None) -> str:
    """What a step waits for without end: `after crunch-2, which fits no node`."""
    return "" if cause is None else f"after {visible(short_name(cause))}, which fits no node"


def verdict(plan: Plan, figures: Figures) -> str:
    """How the plan compares with a baseline: `14.2% shorter`, `equal`, `places 2 more`."""
    if figures.unplaced != plan.figures.unplaced:
        difference = figures.unplaced - plan.figures.unplaced
        return f"places {abs(difference)} {'more' if difference > 0 else 'fewer'}"
    if not ends(plan):
        return NONE
    mine, other = finite(plan.figures.makespan_seconds), finite(figures.makespan_seconds)
    if mine is None or other is None:
        return NONE
    if is_same(plan.figures, figures):
        return "equal"
    change = (mine - other) / max(other, 1e-9)
    word = "shorter" if change < 0 else "longer"
    return word if plan.all_durations_assumed else f"{abs(change):.1%} {word}"


def shows_latency(plan: Plan) -> bool:
    """Whether the plan or a baseline has any figure on latency."""
    return any(step.latency_ms is not None for step in plan.steps) or any(
        figures.latency_ms > 0 for figures in (plan.figures, *plan.baselines.values())
    )


def beyond_rule(plan: Plan) -> str:
    """What is beyond a latency rule."""
    return f"round trip above the best node's plus {plan.latency_tolerance.text}"


def assumption_lines(plan: Plan) -> list[str]:
    """What was assumed, in words; never empty while a step rests on an assumption."""
    lines = [visible(line) for line in plan.assumptions]
    iterations = sum(step.assumed for step in plan.steps)
    durations = sum(step.is_guessed for step in plan.steps)
    if durations and not lines:
        lines.append(f"run time of {counted(durations, 'step')} of {len(plan.steps)}")
    if iterations:
        lines.append(
            f"{counted(iterations, 'step')} of loops whose width is known only at run time"
        )
    conditional = sum(step.conditional for step in plan.steps)
    if conditional:
        lines.append(f"conditions of {counted(conditional, 'step')} hold (worst case)")
    return lines


def placed(plan: Plan) -> int:
    """Number of steps that need no node any more: placed, or taken from the cache."""
    return sum(step.node is not None or step.cached for step in plan.steps)


def where(step: PlannedStep) -> str:
    """The step's node, in words where it has none."""
    return step.node or ("from cache" if step.cached else "no node")


def steps_by_node(plan: Plan) -> Counter[str]:
    """Number of steps on each node that has any."""
    return Counter(step.node for step in plan.steps if step.node is not None)


def run_time(step: PlannedStep) -> str:
    """The step's run time on its node; `~` marks one that was assumed, or is a guess."""
    mark = "~" if step.is_guessed else ""
    return mark + duration(step.duration_seconds)


def remark(step: PlannedStep, cause: PlannedStep | None = None) -> str:
    """What is special about a step, in a word or two; `cause` is what it waits for without end."""
    words = remarks(step, cause)
    if reference := reference_seconds(step):
        words.append(f"node speed {step.node_speed:.3g} ({duration(reference)} at speed 1)")
    return ", ".join(words)


def remarks(step: PlannedStep, cause: PlannedStep | None = None) -> list[str]:
    """The same, one by one, without the speed of the node."""
    words = [waits(cause)] if cause is not None else []
    if step.conditional:
        words.append("conditional")
    if step.assumed:
        words.append("assumed")
    if step.cached:
        words.append("assumed cached")
    if str(step.kind) != "container":
        words.append(str(step.kind))
    return words


def why(step: PlannedStep) -> str:
    """Why the step is where it is and, if its node is slow or fast, why it runs so long there."""
    reference = reference_seconds(step)
    if reference is None:
        return visible(step.reason)
    return (
        f"{visible(step.reason)}; runs {run_time(step)} here, {duration(reference)} on a node of"
        f" speed 1: this node's speed is {step.node_speed:.3g}"
    )


def reference_seconds(step: PlannedStep) -> float | None:
    """The run time on a node of speed 1, where the step's node is slower or faster, else None."""
    scales = step.kind is StepKind.CONTAINER and step.progress is ProgressState.WAITING
    if step.node is None or not scales or math.isclose(step.node_speed, 1.0):
        return None
    seconds = step.duration_seconds * step.node_speed
    return seconds if noticeable(seconds) else None


def type_text(step: PlannedStep) -> str:
    """The step's type; a guessed one says so."""
    guessed = " (guessed)" if step.type and step.type_guessed else ""
    return visible(step.type) + guessed


def location(step: PlannedStep) -> str:
    """The location asked for; "" where nothing follows from it."""
    ruled = step.latency_ms is not None or step.is_latency_ruled
    return visible(step.location) if ruled or step.node is None else ""


def requests(step: PlannedStep) -> list[tuple[str, str]]:
    """What is reserved, by resource; `~` marks what nobody asked for."""
    mark = "~" if step.requests_nothing else ""
    return [
        (visible(resource), mark + amount)
        for resource, amount in format_resources(step.requests).items()
    ]


def is_latency_unknown(figures: Figures | ScheduleSummary) -> bool:
    """Whether a step with a latency rule is on a node whose round trip nobody states."""
    return math.isinf(figures.latency_excess_ms)


def schedule_latency(schedule: ScheduleSummary) -> str:
    """A schedule's latency; what is beyond the rules is behind it."""
    if is_latency_unknown(schedule):
        return "unknown"
    excess = schedule.latency_excess_ms
    beyond = f", {latency(excess)} beyond the rule" if excess > 0 else ""
    return latency(schedule.latency_ms) + beyond


def searched(plan: Plan) -> str:
    """How the plan was found: `120 generations in 2s`."""
    how = counted(plan.generations, "generation")
    if plan.exact:
        orders = " and order" if plan.dispatch == "ordered" else ""
        how = f"every assignment{orders} tried"
    return f"{how} in {duration(plan.planning_seconds)}"


def _schedule(
    name: str, figures: Figures, text: str, caveat: str, *, is_plan: bool
) -> ScheduleSummary:
    return ScheduleSummary(
        name=name,
        makespan_seconds=None if figures.unplaced else finite(figures.makespan_seconds),
        verdict=text,
        caveat=caveat,
        spread=spread(figures),
        unplaced=figures.unplaced,
        latency_ms=figures.latency_ms,
        latency_excess_ms=figures.latency_excess_ms,
        is_plan=is_plan,
    )
