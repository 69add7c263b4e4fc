"""What the author knows better than the run's file: durations, and steps taken to be cached."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kfp_placement.exceptions import MarkValueError, UnknownStepError
from kfp_placement_engine.contract.quantities import parse_duration
from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.run_graph import DurationSource, RunGraph, Step


def with_overrides(
    graph: RunGraph,
    durations: Mapping[str, object] | None = None,
    assume_cached: Iterable[str] = (),
) -> RunGraph:
    """The run with some steps changed.

    Args:
        graph: the run.
        durations: run time on the reference node by step: `20m`, or seconds. A name of a step in a
            loop may carry `[*]` for all iterations (`for-loop-1[*].work`); one with indexes wins.
        assume_cached: steps whose result is taken to be in KFP's cache; names as above.

    Raises:
        UnknownStepError: there is no such step.
        MarkValueError: a duration is malformed.
    """
    seconds: dict[str, float] = {}
    for name, duration in (durations or {}).items():
        _check_name(graph, name)
        seconds[name] = _seconds(name, duration)
    cached = set(assume_cached)
    for name in cached:
        _check_name(graph, name)
    return replace(graph, steps=tuple(_changed(step, seconds, cached) for step in graph.steps))


def _changed(step: Step, seconds: Mapping[str, float], cached: set[str]) -> Step:
    given = seconds.get(step.name, seconds.get(step.task))
    if given is not None:
        step = replace(step, duration_seconds=given, duration_source=DurationSource.GIVEN)
    if step.name in cached or step.task in cached:
        step = replace(step, assumed_cached=True)
    return step


def _check_name(graph: RunGraph, name: str) -> None:
    tasks = list(dict.fromkeys(step.task for step in graph.steps))
    if name not in tasks and not any(step.name == name for step in graph.steps):
        raise unknown_step(graph.name, name, tasks)


def unknown_step(run: str, name: object, known: Sequence[str]) -> UnknownStepError:
    """The error for a step that the run does not have, with the closest one that it has."""
    close = difflib.get_close_matches(str(name), known, n=1)
    advice = f"did you mean {close[0]!r}?" if close else f"steps: {', '.join(known[:20])}"
    return UnknownStepError(f"{run}: there is no step {name!r:.100}; {advice}")


def _seconds(name: str, duration: object) -> float:
    try:
        return parse_duration(duration)
    except QuantityError as error:
        raise MarkValueError(f"step {name!r:.100}: {error}") from error
