"""Resource hints: KFP's own requests and limits, filled only where the author left them empty."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kfp_placement._task_metadata import remember, remembered
from kfp_placement.exceptions import ConflictError
from kfp_placement_engine.contract.quantities import parse_resource
from kfp_placement_engine.exceptions import QuantityError

if TYPE_CHECKING:
    from kfp import dsl

    from kfp_placement._marks import Marks

DEFAULT_ACCELERATOR = "nvidia.com/gpu"


def resource_writes(
    task: "dsl.PipelineTask", subject: str, marks: "Marks"
) -> list[Callable[[], None]]:
    """What to do so that the task asks for the resources given; nothing is written yet.

    Raises:
        ConflictError: the author has asked for another amount, or limits it to less.
    """
    gpu, accelerator_type = _accelerators(task, marks)
    wanted = {
        "cpu": (marks.cpu, "cpu_request", task.set_cpu_request),
        "memory": (marks.memory, "memory_request", task.set_memory_request),
        "gpu": (gpu, "accelerator_count", task.set_accelerator_limit),
        "accelerator_type": (accelerator_type, "accelerator_type", task.set_accelerator_type),
    }
    writes: list[Callable[[], None]] = []
    for option, (value, attribute, setter) in wanted.items():
        if value is not None and _must_write(task, subject, option, attribute, value):
            writes.append(_write(task, option, value, setter))
    return writes


def _accelerators(task: "dsl.PipelineTask", marks: "Marks") -> tuple[Any, Any]:
    """Number and type to ask for: one without the other is completed where neither is set yet."""
    gpu, kind = marks.gpu, marks.accelerator_type
    if gpu is not None and kind is None and _current(task, "accelerator_type") is None:
        kind = DEFAULT_ACCELERATOR
    if kind is not None and gpu is None and _current(task, "accelerator_count") is None:
        gpu = "1"
    return gpu, kind


def _write(
    task: "dsl.PipelineTask", option: str, value: Any, setter: Callable[[Any], Any]
) -> Callable[[], None]:
    def write() -> None:
        setter(value)
        remember(task, option, str(value))

    return write


def _must_write(
    task: "dsl.PipelineTask", subject: str, option: str, attribute: str, value: Any
) -> bool:
    current = _current(task, attribute)
    limit = _current(task, attribute.replace("_request", "_limit"))
    if attribute.endswith("_request") and limit is not None and _less(option, limit, value):
        raise ConflictError(
            f"{subject}: {option} = {str(value)!r} is more than the limit {limit!r} set with"
            f" set_{option}_limit; raise the limit or ask for less"
        )
    if current is None or current == remembered(task, option):
        return True
    if _same(option, current, value):
        return False
    raise ConflictError(
        f"{subject}: {option} = {str(value)!r} contradicts {current!r}, which the component or a"
        f" setter such as {_SETTERS[option]} has set before; keep one of them"
    )


_SETTERS = {
    "cpu": "set_cpu_request",
    "memory": "set_memory_request",
    "gpu": "set_accelerator_limit",
    "accelerator_type": "set_accelerator_type",
}


def _current(task: "dsl.PipelineTask", attribute: str) -> str | None:
    value = getattr(task.container_spec.resources, attribute, None)
    return None if value is None else str(value)


def _amount(option: str, text: object) -> int | None:
    """The amount in canonical units; None for a pipeline parameter, known only at run time."""
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
