"""Arguments of `preview` and `check`, read into a `PlanRequest`; wrong values fail at once."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from kfp_placement import _mark_values
from kfp_placement._input_file import LIVE, input_of, run_input
from kfp_placement._kube_versions import read_kube_version
from kfp_placement._mark_values import Check, Given
from kfp_placement.clusters.reading import known_cluster
from kfp_placement.exceptions import MarkValueError
from kfp_placement.histories import HistorySource
from kfp_placement.live.run_templates import TemplateSources, read_templates
from kfp_placement.planning import PlanRequest
from kfp_placement_engine.model.promise import parse_confidence
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.plans.assumptions import Assumptions


def read_request(
    function: str,
    pipeline: object,
    cluster: object,
    options: Mapping[str, object],
    *,
    needs_cluster: bool = True,
) -> PlanRequest:
    """Read the arguments of a function into a request.

    Args:
        function: name of the function, for messages.
        pipeline: pipeline, or path of a compiled one.
        cluster: cluster, in any form that `known_cluster` takes.
        options: further arguments by name: fields of `PlanRequest` and of `PlanOptions`; `budget`
            is `budget_seconds`.
        needs_cluster: whether an example cluster is used if none is given.

    Raises:
        PlacementError: a value is malformed, or the pipeline or cluster cannot be read.
        PlanningError: a value cannot be planned with.
    """
    arguments: dict[str, Any] = {
        name: _READERS[name](Given(function, name, value)) if name in _READERS else value
        for name, value in options.items()
        if value is not None or name in _NEVER_NONE
    }
    if "budget" in arguments:
        arguments["budget_seconds"] = arguments.pop("budget")
    planning = {name: arguments.pop(name) for name in vars(PlanOptions()).keys() & arguments.keys()}
    # Checks the values before anything is read.
    PlanOptions(**planning)
    where = known_cluster(cluster) if needs_cluster or cluster is not None else None
    past, api = arguments.pop("history", None), None if where is None else where.api
    sources = arguments.pop("templates", ())
    if LIVE in (past, *sources) and api is None:
        from kfp_placement.live.connection import ClusterApi

        api = ClusterApi.connect()
    return PlanRequest(
        run_input(pipeline),
        where,
        templates=read_templates(sources, api) if sources else TemplateSources(),
        history=HistorySource(past, api),
        options=planning,
        **arguments,
    )


def _only(fits: Callable[[object], bool], expected: str) -> Check:
    """Return a check that accepts the values that fit, and converts none."""

    def check(given: Given) -> object:
        if not fits(given.value):
            raise _unfit(given, expected)
        return given.value

    return check


def _unfit(given: Given, expected: str) -> MarkValueError:
    text = f"{given.subject}: {given.option} = {given.value!r:.80}; it must be {expected}"
    return MarkValueError(text)


def _instance(kind: type | tuple[type, ...], expected: str) -> Check:
    """Return a check that accepts the values of a type."""
    return _only(lambda value: isinstance(value, kind), expected)


def _names(given: Given) -> tuple[str, ...]:
    """Read a list of names, or a single name."""
    values: Any = (given.value,) if isinstance(given.value, str) else given.value
    is_many = isinstance(values, Iterable) and not isinstance(values, Mapping)
    names: tuple[Any, ...] = tuple(values) if is_many else (None,)
    if not all(isinstance(name, str) for name in names):
        raise _unfit(given, "a list of names")
    return names


def _paths(given: Given) -> tuple[str, ...]:
    """Read a list of paths, or a single path; `live` is one, too."""
    values: Any = (given.value,) if isinstance(given.value, str | os.PathLike) else given.value
    is_many = isinstance(values, Iterable) and not isinstance(values, Mapping)
    paths: tuple[Any, ...] = tuple(values) if is_many else (None,)
    if not all(isinstance(path, str | os.PathLike) and path != "" for path in paths):
        raise _unfit(given, "a path, 'live', or a list of these")
    return tuple(map(os.fsdecode, paths))


def _version(given: Given) -> tuple[int, int]:
    """Read a Kubernetes version that can be simulated: `1.36`, `v1.36.3` or `(1, 36)`."""
    if isinstance(given.value, tuple | list) and len(given.value) == 2:
        parts = [_WHOLE(replace(given, value=part)) for part in given.value]
        given = replace(given, value=".".join(map(str, parts)))
    text = _VERSION_TEXT(given)
    try:
        return read_kube_version(text)
    except ValueError as error:
        raise given.error(str(error)) from None


_MAPPING = _instance(Mapping, "a mapping of names to values")
_WHOLE = _only(
    lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 0,
    "a whole number, 0 or more",
)
_VERSION_TEXT = _instance(str, "a Kubernetes version such as '1.36'")
_PATH = _only(
    lambda value: isinstance(value, str | os.PathLike) and value != "", "a path, 'live' or 'none'"
)

_READERS: Mapping[str, Check] = {
    "arguments": _MAPPING,
    "assume_cached": _names,
    "assumptions": _instance(
        Assumptions, "kfp_placement_engine.plans.assumptions.Assumptions(...)"
    ),
    "branches": _MAPPING,
    "budget": _mark_values.duration,
    "compare": _names,
    "confidence": _mark_values.check_by(parse_confidence),
    "durations": _MAPPING,
    "entrypoint": _instance(str, "the name of a template"),
    "generations": _WHOLE,
    "history": _PATH,
    "kube_version": _version,
    "loop_widths": _MAPPING,
    "marked_only": _instance(bool, "True or False"),
    "namespace": _instance(str, "a text"),
    "package": lambda given: input_of(given.value),
    "seed": _WHOLE,
    "templates": _paths,
    "semaphores": _MAPPING,
}
"""Reader of each option that is checked here."""

_NEVER_NONE = {"assume_cached", "compare", "kube_version", "marked_only"}
"""Options for which None is a wrong value, and does not mean the default."""
