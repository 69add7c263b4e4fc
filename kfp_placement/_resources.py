"""Resource requests of a step, written to KFP's own fields unless the author has set them."""

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kfp_placement.exceptions import ConflictError, MarkValueError
from kfp_placement.workers import DEFAULT_ACCELERATOR
from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.units.quantities import parse_resource

if TYPE_CHECKING:
    from kfp import dsl

    from kfp_placement._marks import Marks


class _Written(str):
    """Text that we wrote to a task's resources.

    KFP keeps the text object that it is given, and authors give a plain `str`. So the type tells
    our values from theirs, even if both are equal.
    """

    __slots__ = ()


_KEPT = {
    "cpu": ("cpu_request", "set_cpu_request", "cpu_limit"),
    "memory": ("memory_request", "set_memory_request", "memory_limit"),
    "gpu": ("accelerator_count", "set_accelerator_limit", ""),
    "accelerator_type": ("accelerator_type", "set_accelerator_type", ""),
}
"""Option -> attribute in which KFP keeps its value, KFP's setter, and the attribute of its limit.

"" = KFP has no limit beside the value.
"""


def wanted_resources(task: "dsl.PipelineTask", subject: str, marks: "Marks") -> dict[str, Any]:
    """Return the values to write, by option, so that the task requests the given resources.

    Raises:
        ConflictError: the author has set another amount, or a limit below it.
    """
    gpu, accelerator_type = _accelerators(task, marks)
    wanted = {
        "cpu": marks.cpu,
        "memory": marks.memory,
        "gpu": gpu,
        "accelerator_type": accelerator_type,
    }
    return {
        option: value
        for option, value in wanted.items()
        if value is not None and _must_write(task, subject, option, value)
    }


def write_resources(task: "dsl.PipelineTask", subject: str, wanted: Mapping[str, Any]) -> None:
    """Write values to a task: all or none.

    Raises:
        MarkValueError: KFP refuses a value; 2.14 takes 1, 2, 4, 8 or 16 accelerators only.
    """
    before = copy.copy(task.container_spec.resources)
    for option, value in wanted.items():
        attribute, setter, _ = _KEPT[option]
        try:
            getattr(task, setter)(value)
        except ValueError as error:
            task.container_spec.resources = before
            message = f"{subject}: {option} = {value!r} is refused by KFP: {error}"
            raise MarkValueError(message) from None
        resources = task.container_spec.resources
        setattr(resources, attribute, _Written(getattr(resources, attribute)))


def _accelerators(task: "dsl.PipelineTask", marks: "Marks") -> tuple[Any, Any]:
    """Return number and type of accelerators; complete one without the other if neither is set."""
    gpu, kind = marks.gpu, marks.accelerator_type
    if gpu is not None and kind is None and _current(task, "accelerator_type") is None:
        kind = DEFAULT_ACCELERATOR
    if kind is not None and gpu is None and _current(task, "accelerator_count") is None:
        gpu = "1"
    return gpu, kind


def _must_write(task: "dsl.PipelineTask", subject: str, option: str, value: Any) -> bool:
    attribute, setter, limit_attribute = _KEPT[option]
    current, limit = _current(task, attribute), _current(task, limit_attribute)
    if limit is not None and _less(option, limit, value):
        raise ConflictError(
            f"{subject}: {option} = {str(value)!r} is more than the limit {limit!r} set with"
            f" set_{option}_limit; raise the limit or ask for less"
        )
    if current is None or isinstance(current, _Written):
        return True
    if _same(option, current, value):
        return False
    raise ConflictError(
        f"{subject}: {option} = {str(value)!r} contradicts {current!r}, which the component or a"
        f" setter such as {setter} has set before; keep one of them"
    )


def _current(task: "dsl.PipelineTask", attribute: str) -> str | None:
    value = getattr(task.container_spec.resources, attribute, None)
    return value if value is None or isinstance(value, str) else str(value)


def _amount(option: str, text: object) -> int | None:
    """Return an amount in canonical units; None for a pipeline parameter, which has none yet."""
    try:
        return parse_resource(option, text)
    except QuantityError:
        return None


def _same(option: str, left: str, right: object) -> bool:
    amount = _amount(option, left)
    return left == str(right) or (amount is not None and amount == _amount(option, str(right)))


def _less(option: str, left: str, right: object) -> bool:
    left_amount, right_amount = _amount(option, left), _amount(option, str(right))
    return left_amount is not None and right_amount is not None and left_amount < right_amount
