"""What somebody knows better than the run's file: run times, and steps taken to be cached; pure."""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from kfp_placement_engine.contract.quantities import parse_duration
from kfp_placement_engine.exceptions import InputError, QuantityError, UnknownStepError
from kfp_placement_engine.run_graph import DurationSource, Notice, RunGraph, Step, StepKind

_INDEX = re.compile(r"\[(?:[0-9]+|\*)\]")
_NAMESPACE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def with_durations(graph: RunGraph, durations: Mapping[str, object]) -> RunGraph:
    """The run with run times given by step.

    Args:
        graph: the run.
        durations: run time on the reference node by name: "20m", or seconds. The name is a step's
            (`for-loop-1[0].work`), or that of the step as a whole, for all its iterations
            (`for-loop-1[*].work` or `for-loop-1.work`); the more precise one wins.

    Raises:
        UnknownStepError: there is no such step.
        QuantityError: a duration is malformed.
    """
    names = _Names(graph)
    seconds: dict[str, float] = {}
    for name, duration in durations.items():
        names.check(name)
        try:
            seconds[name] = parse_duration(duration)
        except QuantityError as error:
            raise QuantityError(f"step {name!r:.120}: {error}") from error

    def changed(step: Step) -> Step:
        for name in _names_of(step):
            if name in seconds:
                source = DurationSource.GIVEN
                return replace(step, duration_seconds=seconds[name], duration_source=source)
        return step

    return replace(graph, steps=tuple(changed(step) for step in graph.steps))


def with_cached(graph: RunGraph, steps: Iterable[str]) -> RunGraph:
    """The run with some steps taken to be cache hits.

    Args:
        graph: the run.
        steps: names as for `with_durations`.

    Raises:
        UnknownStepError: there is no such step.
        InputError: KFP never takes it from the cache.
    """
    names = _Names(graph)
    cached = set(steps)
    for name in sorted(cached):
        names.check(name)
    notices: dict[Notice, None] = {}

    def changed(step: Step) -> Step:
        if cached.isdisjoint(_names_of(step)):
            return step
        if step.kind is not StepKind.CONTAINER:
            raise InputError(
                f"step {step.task!r:.120} is of kind {step.kind.value}, which KFP never takes from "
                "its cache; assume it of container steps only"
            )
        if step.has_driver and not step.caching_enabled:
            message = "caching is switched off for it; it is taken to be cached all the same"
            notices[Notice("assumed-cached", message, step.task)] = None
        return replace(step, assumed_cached=True)

    changed_steps = tuple(changed(step) for step in graph.steps)
    return replace(graph, steps=changed_steps, notices=(*graph.notices, *notices))


def in_namespace(graph: RunGraph, namespace: str | None) -> RunGraph:
    """The run in a namespace, whose volume claims it uses; None: where it says itself.

    Raises:
        InputError: no name that a namespace can have.
    """
    if namespace is None:
        return graph
    return replace(graph, namespace=check_namespace(namespace))


def check_namespace(name: str) -> str:
    """The name of a namespace.

    Raises:
        InputError: none can have that name.
    """
    if not _NAMESPACE.fullmatch(name):
        raise InputError(
            f"{name!r:.80} cannot be the name of a namespace: at most 63 lower-case letters, "
            "digits and dashes inside"
        )
    return name


def _names_of(step: Step) -> tuple[str, ...]:
    """All names of a step, the most precise first."""
    return step.name, step.task, _INDEX.sub("", step.task)


class _Names:
    """The names that a run's steps may be called by."""

    def __init__(self, graph: RunGraph) -> None:
        self._known = {name for step in graph.steps for name in _names_of(step)}
        self._tasks = list(dict.fromkeys(step.task for step in graph.steps))
        self._run = graph.name

    def check(self, name: str) -> None:
        """Refuse names that no step has."""
        if name in self._known:
            return
        close = difflib.get_close_matches(name, self._tasks, 3, 0.7)
        if not close:
            close = [task for task in self._tasks if name in task.split(".")][:3]
        hint = (
            f"did you mean {' or '.join(close)}?"
            if close
            else "its steps are " + ", ".join(self._tasks[:10])
        )
        raise UnknownStepError(f"run {self._run:.80} has no step {name!r:.120}; {hint}")
