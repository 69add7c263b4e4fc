"""Steps of a preview: single steps for notebooks, a mapping by name, rows of a DataFrame."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from kfp_placement.exceptions import UnknownStepError
from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.forecast import Basis
from kfp_placement_engine.model.promise import TimeRange
from kfp_placement_engine.model.reasons import Reason
from kfp_placement_engine.model.run_graph import DurationSource, StepKind
from kfp_placement_engine.model.step_names import StepNames, listed
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.planned_step import Alternative, PlannedStep
from kfp_placement_engine.units.resources import Resources
from kfp_placement_engine.views.formatting import visible
from kfp_placement_engine.views.plans import promises

_MAX_NAMES = 20
"""Largest number of steps that a printed mapping names."""

_WITHOUT_OWN_COLUMN = frozenset({"cpu", "memory", "pods"})
"""Requests without a column of their own name: CPU and memory have fixed columns, pods none."""


# Names of attributes, separated by spaces, that a previewed step has just as its planned step, its
# step in the run graph and its phases have them; no type checker sees them, but the tests do.
_OF_PLAN = (
    "name node start_seconds finish_seconds latency_ms requests is_latency_ruled requests_nothing"
    " progress"
)
_OF_GRAPH = (
    "task kind iteration assumed type location image labels attempt_limit depends_on type_guessed"
    " display_name after_failure"
)
_OF_PHASES = "image_pull_seconds transfer_seconds duration_seconds"


@dataclass(frozen=True)
class Range:
    """Range of a time, in seconds since the submission of the run.

    The time lies in the range as often as the confidence of the plan says.

    Attributes:
        low: start of the range.
        typical: median.
        high: end of the range.
    """

    low: float
    typical: float
    high: float


@dataclass(frozen=True)
class PreviewedStep:
    """A step of a plan as notebooks show it: one flat record of plain values.

    Attributes:
        name, task, kind, iteration, assumed, conditional, type, location: fields of the step in the
            run graph.
        node: name of the node; None if no node can take the step, or if it comes from the cache.
        start_seconds: time at which its pod is bound; None if unschedulable or ended.
        finish_seconds: end of the upload of its outputs; None if unschedulable or ended.
        image_pull_seconds: time spent on pulling missing parts of the image.
        transfer_seconds: time spent on downloading inputs and uploading outputs.
        duration_seconds: run time on the node.
        duration_source: kind of the source of the run time.
        latency_ms: round trip between its location and the node; None = no rule or unknown.
        requests: resources that the planner reserves for the step.
        image, labels, attempt_limit, depends_on: fields of the step in the run graph.
        reason: reason for the node, in one sentence for people; programs read `why`.
        type_guessed: whether the type was guessed from the name; about the run time see
            `is_guessed`.
        is_latency_ruled: whether its type goes to the node of least round trip to its location.
        requests_nothing: whether `requests` are defaults, since nobody said what it needs.
        cached: whether it is taken to come from the cache; then it has times but no node.
        progress: whether it waits, runs or has ended.
        why: reason for programs; its nodes are positions in `Plan.cluster.nodes`.
        alternatives: the next best nodes, if they were asked for; nodes as in `why`.
        display_name: name that its author gave to the task, or "".
        node_speed: speed of its node, by which its run time was divided.
        duration_basis: past runs that the run time rests on, for programs; None = none. People
            read `basis`.
        sized_input: name of its only input, where its size decides the run time; "" = there is
            no such input.
        is_guessed: whether the run time is assumed, or rests on steps that are hardly alike; about
            the type see `type_guessed`.
        starts, ends: ranges of its start and end by past runs; None = not known.
        basis: origin of its run time in a few words for people: `9 runs`, `same image, 3 runs`,
            `hint`, `assumed`.
        branch: author's names for the branches and loops around it, outermost first.
        choices: branch that it is in, by what the run decides; no run takes two branches of one.
        after_failure: whether it runs only after a failure.
    """

    name: str
    task: str
    kind: StepKind
    iteration: tuple[int, ...]
    assumed: bool
    conditional: bool
    type: str
    location: str
    node: str | None
    start_seconds: float | None
    finish_seconds: float | None
    image_pull_seconds: float
    transfer_seconds: float
    duration_seconds: float
    duration_source: DurationSource
    latency_ms: float | None
    requests: Resources
    image: str
    labels: Mapping[str, str]
    attempt_limit: int
    depends_on: tuple[str, ...]
    reason: str
    type_guessed: bool
    is_latency_ruled: bool
    requests_nothing: bool
    cached: bool
    progress: ProgressState
    why: Reason | None
    alternatives: tuple[Alternative, ...]
    display_name: str
    node_speed: float
    duration_basis: Basis | None
    sized_input: str
    is_guessed: bool
    starts: Range | None
    ends: Range | None
    basis: str
    branch: tuple[str, ...]
    choices: Mapping[str, str]
    after_failure: bool


def range_of(times: TimeRange | None) -> Range | None:
    """Return a promised range as the `Range` of a preview; None if there is none."""
    return None if times is None else Range(*times.moments)


def previewed(plan: Plan, step: PlannedStep) -> PreviewedStep:
    """Return a step of a plan as the step of a preview."""
    promise = None if plan.promise is None else plan.promise.steps.get(step.name)
    spec, run_time, explanation = step.spec, step.run_time, step.explanation
    return PreviewedStep(
        **_picked(step, _OF_PLAN),
        **_picked(spec, _OF_GRAPH),
        **_picked(step.phases, _OF_PHASES),
        conditional=spec.is_conditional,
        branch=spec.inside,
        choices=dict(spec.branches),
        duration_source=run_time.source,
        reason=explanation.sentence,
        cached=step.is_cached,
        why=explanation.reason,
        alternatives=explanation.alternatives,
        node_speed=run_time.node_speed,
        duration_basis=run_time.basis,
        sized_input=run_time.sized_input,
        is_guessed=run_time.is_guess,
        starts=None if promise is None else range_of(promise.starts),
        ends=None if promise is None else range_of(promise.ends),
        basis=visible(promises.basis(step)),
    )


def _picked(noun: object, names: str) -> dict[str, Any]:
    """Return some attributes of an object by name."""
    return {name: getattr(noun, name) for name in names.split()}


class StepMapping(Mapping[str, PreviewedStep]):
    """Mapping of the steps of a plan by name.

    The error for an unknown name lists the names that come close. It is a `KeyError`, so that `in`
    and `get` work as always; an author's name that means several steps is not `in` the mapping.
    """

    def __init__(self, plan: Plan, left_out: Mapping[str, str]) -> None:
        self._run_name = plan.run.name
        self._steps = {step.name: previewed(plan, step) for step in plan.steps}
        self._names = StepNames(
            ((step.name, step.spec.task, step.spec.display_name) for step in plan.steps),
            left_out=left_out,
        )

    @override
    def __getitem__(self, name: str) -> PreviewedStep:
        """Return the step of a name; an author's name works if it means a single step.

        Raises:
            UnknownStepError: there is no such step, or there are several.
        """
        steps = self.named(name)
        if len(steps) > 1:
            raise UnknownStepError(
                f"{self._run_name}: {name!r:.120} means {len(steps)} steps; name one of"
                f" {listed([step.name for step in steps])}, or ask explain() for all"
            )
        return steps[0]

    def named(self, name: object) -> list[PreviewedStep]:
        """Return all steps that a name means: one, or the iterations of a task.

        Raises:
            UnknownStepError: there is no such step.
        """
        names = self._names.resolve(name) if isinstance(name, str) else ()
        if not names:
            raise UnknownStepError(f"{self._run_name}: {self._names.why_unresolved(name)}")
        return [self._steps[each] for each in names]

    @override
    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, dependencies first."""
        return iter(self._steps)

    @override
    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self._steps)

    @override
    def __repr__(self) -> str:
        """Return the number of steps and the first names."""
        return f"<{len(self._steps)} steps: {', '.join(list(self._steps)[:_MAX_NAMES])}>"


def row_of(plan: Plan, step: PreviewedStep) -> dict[str, object]:
    """Return a step as a row of a DataFrame; names of columns end with their unit."""
    others = {
        name: amount for name, amount in step.requests.items() if name not in _WITHOUT_OWN_COLUMN
    }
    return {
        "step": step.name,
        "task": step.task,
        "display_name": step.display_name,
        "type": step.type,
        "location": step.location,
        "kind": str(step.kind),
        "node": step.node,
        "start_seconds": _number(step.start_seconds),
        "finish_seconds": _number(step.finish_seconds),
        "run_seconds": _number(step.duration_seconds),
        "run_time_source": str(step.duration_source),
        "image_pull_seconds": _number(step.image_pull_seconds),
        "transfer_seconds": _number(step.transfer_seconds),
        "round_trip_milliseconds": _number(step.latency_ms),
        "cpu_cores": step.requests.get("cpu", 0) / 1000,
        "memory_bytes": step.requests.get("memory", 0),
        "image": step.image,
        "conditional": step.conditional,
        "cached": step.cached,
        "reason": step.reason,
        **others,
        **_promised_columns(plan, step),
    }


def _promised_columns(plan: Plan, step: PreviewedStep) -> dict[str, object]:
    """Return the columns from past runs; none for a plan without past runs."""
    if plan.promise is None:
        return {}
    columns = dict[str, object]()
    for name, times in (("starts", step.starts), ("ends", step.ends)):
        for part in ("low", "typical", "high"):
            columns[f"{name}_{part}_seconds"] = math.nan if times is None else getattr(times, part)
    return {**columns, "run_time_basis": step.basis}


def _number(value: float | None) -> float:
    """Return a figure, or NaN if there is none, so that the column holds numbers only."""
    return math.nan if value is None else float(value)
