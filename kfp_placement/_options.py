"""What `preview` and `check` are given -> a `PlanRequest`; wrong values are refused at once."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kfp_placement._kube_versions import KUBE_RANGE, is_imitated, read_kube_version
from kfp_placement._package import package_of
from kfp_placement.clusters.reading import KnownCluster, known_cluster
from kfp_placement.exceptions import MarkValueError
from kfp_placement.histories import LIVE, HistorySource
from kfp_placement.planning import PlanRequest
from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.model.assumptions import Assumptions
from kfp_placement_engine.model.durations import parse_duration
from kfp_placement_engine.model.promise import parse_confidence
from kfp_placement_engine.model.run_graph import Notice
from kfp_placement_engine.planning.plan_options import PlanOptions

if TYPE_CHECKING:
    from kfp_placement.live.kinds import Api

_CONFIDENCE_UNUSED = Notice(
    "confidence-unused",
    "confidence has no effect: it is for ranges that are made of past runs, and this plan rests on"
    " none; name some with history='history.yaml' or history='live'",
)


def read_request(
    function: str,
    pipeline: object,
    cluster: object,
    options: Mapping[str, object],
    *,
    needs_cluster: bool = True,
) -> PlanRequest:
    """Read what a function is given.

    Args:
        function: its name, for messages.
        pipeline: a pipeline, or the path of a compiled one.
        cluster: as `known_cluster` takes it.
        options: what else there is, by name: fields of `PlanRequest` and of `PlanOptions`; `budget`
            is time for the search.
        needs_cluster: no cluster is an example, and not none.

    Raises:
        PlacementError: a malformed value, or a pipeline or cluster that cannot be read.
        PlanningError: a value that cannot be planned with.
    """
    found: dict[str, Any] = {
        name: _READERS[name](f"{function}: {name}", value) if name in _READERS else value
        for name, value in options.items()
        if value is not None or name in _NEVER_NONE
    }
    if "budget" in found:
        found["budget_seconds"] = found.pop("budget")
    planning = {name: found.pop(name) for name in vars(PlanOptions()).keys() & found.keys()}
    # Before anything is read.
    PlanOptions(**planning)
    where = known_cluster(cluster) if needs_cluster or cluster is not None else None
    past = found.pop("history", None)
    history = HistorySource(
        past,
        _history_api(past, where),
        unused=_CONFIDENCE_UNUSED if "confidence" in found else None,
    )
    return PlanRequest(package_of(pipeline), where, history=history, options=planning, **found)


def _history_api(given: object, where: KnownCluster | None) -> "Api | None":
    """Connect to the cluster of which somebody wants the histories, and nothing else."""
    if given != LIVE or (where is not None and where.api is not None):
        return None if where is None else where.api
    from kfp_placement.live.connection import LiveCluster
    from kfp_placement.live.exceptions import ClusterMissingError

    try:
        return LiveCluster.connect()
    except ClusterMissingError as error:
        raise ClusterMissingError(
            f"history='live' asks a cluster: {error}; or name a file of past runs, or 'none'"
        ) from error


def _names(option: str, value: object) -> tuple[str, ...]:
    """Read several names, or one."""
    values = (value,) if isinstance(value, str) else value
    if isinstance(values, Iterable) and not isinstance(values, Mapping):
        names = tuple(values)
        if all(isinstance(name, str) for name in names):
            return names
    raise _bad(option, value, "a list of names")


def _whole(option: str, value: object) -> int:
    """Read a whole number from 0 on."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _bad(option, value, "a whole number, 0 or more")
    return value


def _quantity(parse: Callable[[Any], float]) -> Callable[[str, object], float]:
    """Return a reader of what `parse` takes."""

    def read(option: str, value: object) -> float:
        try:
            return parse(value)
        except QuantityError as error:
            raise MarkValueError(f"{option}: {error}") from None

    return read


def _history(option: str, value: object) -> object:
    """Read where past runs are."""
    if (isinstance(value, str) and value) or isinstance(value, os.PathLike):
        return value
    raise _bad(option, value, "a path, 'live' or 'none'")


def _version(option: str, value: object) -> tuple[int, int]:
    """Read a Kubernetes version that can be imitated: `1.36`, `v1.36.3` or `(1, 36)`."""
    if isinstance(value, tuple | list) and len(value) == 2:
        version = _whole(option, value[0]), _whole(option, value[1])
    else:
        read = read_kube_version(value, any_build=True) if isinstance(value, str) else None
        if read is None:
            raise _bad(option, value, "a Kubernetes version such as '1.36'")
        version = read
    if not is_imitated(version):
        raise MarkValueError(f"{option} = {value!r:.80}; {KUBE_RANGE}")
    return version


def _instance(kind: type, expected: str) -> Callable[[str, object], object]:
    """Return a reader of values of one type: the text "false" is not False."""

    def read(option: str, value: object) -> object:
        if not isinstance(value, kind):
            raise _bad(option, value, expected)
        return value

    return read


def _bad(option: str, value: object, expected: str) -> MarkValueError:
    return MarkValueError(f"{option} = {value!r:.80}; it must be {expected}")


_MAPPING = _instance(Mapping, "a mapping of names to values")

_READERS: Mapping[str, Callable[[str, object], Any]] = {
    "arguments": _MAPPING,
    "assume_cached": _names,
    "assumptions": _instance(
        Assumptions, "kfp_placement_engine.model.assumptions.Assumptions(...)"
    ),
    "budget": _quantity(parse_duration),
    "compare": _names,
    "confidence": _quantity(parse_confidence),
    "durations": _MAPPING,
    "generations": _whole,
    "history": _history,
    "kube_version": _version,
    "loop_widths": _MAPPING,
    "marked_only": _instance(bool, "True or False"),
    "namespace": _instance(str, "a text"),
    "seed": _whole,
}
_NEVER_NONE = {"assume_cached", "compare", "kube_version", "marked_only"}
