"""Values that people give for a run beside its file: run times, cached steps, a namespace."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from kfp_placement_engine.contract.keys import DEFAULT_SCHEDULER
from kfp_placement_engine.exceptions import (
    InputError,
    QuantityError,
    RequestError,
    UnknownStepError,
)
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import DurationSource, RunGraph, Step, StepKind
from kfp_placement_engine.model.step_names import StepNames
from kfp_placement_engine.units.durations import parse_duration

_ENDS = re.compile(r"\[\*\]|\.|$")
"""Ends of the names of a task, and of the loops and groups around it."""

_NAMESPACE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def with_durations(graph: RunGraph, durations: Mapping[str, object]) -> RunGraph:
    """Return the run with given run times of steps.

    Args:
        graph: run as its file has it.
        durations: run time on the reference node by name: "20m", or seconds. The name is a step's
            (`for-loop-1[0].work`), or that of the step as a whole, for all its iterations
            (`for-loop-1[*].work`, `for-loop-1.work`, or `work` or its display name if no other step
            has that name); the more precise one wins.

    Raises:
        UnknownStepError: there is no such step, or several.
        QuantityError: a duration is malformed.
    """
    names, graph = _checked(graph, durations)
    seconds: dict[str, float] = {}
    for name, duration in durations.items():
        try:
            seconds[name] = parse_duration(duration)
        except QuantityError as error:
            raise QuantityError(f"step {name!r:.120}: {error}") from error

    def changed(step: Step) -> Step:
        for name in names.all_names(step.name, step.task):
            if name in seconds:
                return replace(
                    step,
                    duration_seconds=seconds[name],
                    duration_source=DurationSource.GIVEN,
                    duration_basis=None,
                )
        return step

    return replace(graph, steps=tuple(changed(step) for step in graph.steps))


def with_cached(graph: RunGraph, steps: Iterable[str]) -> RunGraph:
    """Return the run with some steps that are assumed to be cached.

    Args:
        graph: run as its file has it.
        steps: names as for `with_durations`.

    Raises:
        UnknownStepError: there is no such step, or several.
        RequestError: KFP never takes the step from its cache.
    """
    cached = set(steps)
    names, graph = _checked(graph, sorted(cached))
    notices: dict[Notice, None] = {}

    def changed(step: Step) -> Step:
        if cached.isdisjoint(names.all_names(step.name, step.task)):
            return step
        if step.kind is not StepKind.CONTAINER:
            raise RequestError(
                f"step {step.task!r:.120} is of kind {step.kind.value}, which KFP never takes from "
                "its cache; assume it of container steps only"
            )
        if step.has_driver and not step.caching_enabled:
            message = "caching is switched off for it; it is taken to be cached anyway"
            notices[Notice("assumed-cached", message, step.task)] = None
        return replace(step, assumed_cached=True)

    changed_steps = tuple(changed(step) for step in graph.steps)
    return replace(graph, steps=changed_steps, notices=(*graph.notices, *notices))


def in_namespace(graph: RunGraph, namespace: str) -> RunGraph:
    """Return the run in a namespace, whose volume claims it uses.

    Raises:
        InputError: a namespace cannot have this name.
    """
    return replace(graph, namespace=check_namespace(namespace))


def with_refusals(run: RunGraph) -> RunGraph:
    """Return the run with the steps that cannot run, as its notices say."""
    refusals = {each.step: each.message for each in run.notices if each.is_refusal}
    if not refusals:
        return run

    def refused(step: Step) -> Step:
        around = [step.task[: end.start()] for end in _ENDS.finditer(step.task)]
        reasons = (refusals[name] for name in (*around[::-1], "") if name in refusals)
        return replace(step, refusal=next(reasons, ""))

    return replace(run, steps=tuple(map(refused, run.steps)))


def with_all_marked(graph: RunGraph) -> RunGraph:
    """Return the run with all steps of KFP marked, as in a namespace that lets them count so.

    Steps that their authors leave to the default scheduler stay unmarked.
    """

    def changed(step: Step) -> Step:
        # Only containers of KFP have a driver.
        is_executor = step.kind is StepKind.CONTAINER and step.has_driver
        if step.scheduler or step.unplanned or not is_executor:
            return step
        return replace(step, scheduler=DEFAULT_SCHEDULER)

    return replace(graph, steps=tuple(map(changed, graph.steps)))


def check_namespace(name: str) -> str:
    """Return the name, if a namespace can have it.

    Raises:
        InputError: a namespace cannot have this name.
    """
    if not _NAMESPACE.fullmatch(name):
        raise InputError(
            f"{name!r:.80} cannot be the name of a namespace: at most 63 lower-case letters, "
            "digits and dashes inside"
        )
    return name


def _checked(graph: RunGraph, wanted: Iterable[str]) -> tuple[StepNames, RunGraph]:
    """Return the names of the steps, and the run with a notice on each that it leaves out.

    Raises:
        UnknownStepError: a wanted name means no step.
    """
    steps = ((step.name, step.task, step.display_name) for step in graph.steps)
    names = StepNames(steps, left_out=graph.left_out)
    notices = list[Notice]()
    for name in wanted:
        if not names.resolve(name) and (why := names.why_left_out(name)):
            notices.append(Notice("left-out", f"{why}, so what is said of it is not used"))
        else:
            names.check(name, UnknownStepError, f"{graph.name:.80}: ")
    return names, replace(graph, notices=(*graph.notices, *notices))
