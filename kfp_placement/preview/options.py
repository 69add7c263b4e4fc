"""Options of `preview` as people write them in a notebook -> what is planned, checked at once."""

from collections.abc import Iterable, Mapping
from typing import Any

from kfp_placement._kube_versions import KUBE_RANGE, is_imitated, read_kube_version
from kfp_placement._package import package_of
from kfp_placement.exceptions import MarkValueError
from kfp_placement.planning import GivenOptions, Overrides, RunSource
from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.model.assumptions import Assumptions
from kfp_placement_engine.model.durations import parse_duration
from kfp_placement_engine.model.promise import parse_confidence


def run_source(pipeline: object, arguments: object, loop_widths: object) -> RunSource:
    """The run that is meant, and what it is started with.

    Raises:
        MarkValueError: arguments or widths are not given by name.
        UsageError: it is neither a pipeline nor a path.
        RunError: the file cannot be read.
    """
    return RunSource(
        package_of(pipeline),
        _mapping("arguments", arguments),
        _mapping("loop_widths", loop_widths),
    )


def overrides(
    durations: object, assume_cached: object, namespace: object, default_namespace: str
) -> Overrides:
    """What the author knows better than the run; and where a run goes that does not say it.

    Raises:
        MarkValueError: a malformed value.
    """
    return Overrides(
        namespace=_text("namespace", namespace),
        default_namespace=default_namespace,
        durations=_mapping("durations", durations),
        assume_cached=_names("assume_cached", assume_cached),
    )


def planning_options(
    *,
    budget: object,
    generations: object,
    seed: object,
    kube_version: object,
    compare: object,
    marked_only: object,
    assumptions: object,
    dispatch: str | None,
    objective: str | None,
) -> GivenOptions:
    """How to plan; None is what nobody asked for.

    Raises:
        MarkValueError: a malformed value.
        PlanningError: a value that cannot be planned with.
    """
    return GivenOptions(
        budget_seconds=None if budget is None else _duration("budget", budget),
        generations=None if generations is None else _whole("generations", generations),
        seed=None if seed is None else _whole("seed", seed),
        dispatch=dispatch,
        objective=objective,
        kube_version=_version("kube_version", kube_version),
        compare=_names("compare", compare),
        marked_only=_flag("marked_only", marked_only),
        assumptions=_assumed("assumptions", assumptions),
    )


def confidence(value: object) -> float:
    """How often ranges are to hold.

    Raises:
        MarkValueError: it is not valid.
    """
    try:
        return parse_confidence(value)
    except QuantityError as error:
        raise MarkValueError(f"preview: confidence: {error}") from None


def _names(option: str, value: object) -> tuple[str, ...]:
    """Several names, or one.

    Raises:
        MarkValueError: it is neither.
    """
    values = (value,) if isinstance(value, str) else value
    if not isinstance(values, Iterable) or isinstance(values, Mapping):
        raise _bad(option, value, "a list of names")
    names = tuple(values)
    if not all(isinstance(name, str) for name in names):
        raise _bad(option, value, "a list of names")
    return names


def _mapping(option: str, value: object) -> Mapping[str, Any]:
    """Values by name; None means no values.

    Raises:
        MarkValueError: it is not a mapping.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _bad(option, value, "a mapping of names to values")
    return value


def _text(option: str, value: object) -> str | None:
    """Text, or None.

    Raises:
        MarkValueError: it is neither.
    """
    if value is not None and not isinstance(value, str):
        raise _bad(option, value, "a text")
    return value


def _whole(option: str, value: object) -> int:
    """A whole number from 0 on.

    Raises:
        MarkValueError: it is not valid.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _bad(option, value, "a whole number, 0 or more")
    return value


def _duration(option: str, value: object) -> float:
    """Seconds.

    Raises:
        MarkValueError: it is not a duration.
    """
    try:
        return parse_duration(value)
    except QuantityError as error:
        raise MarkValueError(f"preview: {option}: {error}") from None


def _flag(option: str, value: object) -> bool:
    """True or False.

    Raises:
        MarkValueError: it is neither: the text "false" is not False.
    """
    if not isinstance(value, bool):
        raise _bad(option, value, "True or False")
    return value


def _version(option: str, value: object) -> tuple[int, int]:
    """A Kubernetes version: `1.36`, `v1.36.3` or `(1, 36)`.

    Raises:
        MarkValueError: it is malformed, or one that cannot be imitated.
    """
    if isinstance(value, tuple | list) and len(value) == 2:
        version = _whole(option, value[0]), _whole(option, value[1])
    else:
        read = read_kube_version(value, any_build=True) if isinstance(value, str) else None
        if read is None:
            raise _bad(option, value, "a Kubernetes version such as '1.36'")
        version = read
    if not is_imitated(version):
        raise MarkValueError(f"preview: {option} = {value!r:.80}; {KUBE_RANGE}")
    return version


def _assumed(option: str, value: object) -> Assumptions | None:
    """Assumptions, or None.

    Raises:
        MarkValueError: it is neither.
    """
    if value is not None and not isinstance(value, Assumptions):
        raise _bad(option, value, "kfp_placement_engine.model.assumptions.Assumptions(...)")
    return value


def _bad(option: str, value: object, expected: str) -> MarkValueError:
    return MarkValueError(f"preview: {option} = {value!r:.80}; it must be {expected}")
