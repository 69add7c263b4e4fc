"""Mark for pods that a step creates itself: `Workers`."""

from dataclasses import KW_ONLY, dataclass, fields
from functools import wraps
from typing import TypeVar

from kfp_placement import _mark_values
from kfp_placement.exceptions import MarkValueError
from kfp_placement_engine.model.demand import PodGroup
from kfp_placement_engine.units.quantities import parse_cpu, parse_quantity

DEFAULT_ACCELERATOR = "nvidia.com/gpu"
"""Resource name of accelerators if only their number is given."""

_SUBJECT = "Workers"
_CHECKS = {
    "count": _mark_values.pod_count,
    "cpu": _mark_values.cpu,
    "memory": _mark_values.memory,
    "gpu": _mark_values.gpu,
    "accelerator_type": _mark_values.accelerator_type,
}
_NOT_ACCELERATORS = ("cpu", "memory", "pods")

_Made = TypeVar("_Made")


def _refuse_unknown_options(workers: type[_Made]) -> type[_Made]:
    """Make a class report an unknown option with the closest one that exists, as `place` does."""
    initialize = workers.__init__

    @wraps(initialize)
    def checked(self: _Made, *values: object, **options: object) -> None:
        for name in options:
            if name not in _CHECKS:
                raise _mark_values.unknown(_SUBJECT, name, tuple(_CHECKS))
        initialize(self, *values, **options)

    workers.__init__ = checked  # type: ignore[assignment]
    return workers


@_refuse_unknown_options
@dataclass(frozen=True)
class Workers:
    """Pods that a step makes itself while it runs, such as those of a PyTorchJob.

    Without them only the step's own pod is known. They are for queues of whole runs: no run begins
    whose workers have no room beside those of other runs.

    Attributes:
        count: number of pods, from 1 to 1,000, all alike; the step's own pod is not one of them.
        cpu: CPU that each requests: `4`, `"500m"`.
        memory: memory that each requests: `"16Gi"`.
        gpu: number of accelerators that each requests.
        accelerator_type: resource name of the accelerators; `nvidia.com/gpu` if not given. Without
            a number each requests one.

    Raises:
        MarkValueError: a value is wrong.
        NotConstantError: a value is a pipeline parameter.
        UnknownOptionError: there is no such option.
    """

    count: int
    _: KW_ONLY
    cpu: str | float | None = None
    memory: str | int | None = None
    gpu: str | int | None = None
    accelerator_type: str | None = None

    def __post_init__(self) -> None:
        """Check the values, so that a wrong one fails where it is written."""
        for item in fields(self):
            value = getattr(self, item.name)
            if value is not None or item.name == "count":
                given = _mark_values.Given(_SUBJECT, item.name, value)
                _mark_values.refuse_channels(given)
                _CHECKS[item.name](given)
        if self.accelerator_type in _NOT_ACCELERATORS:
            raise MarkValueError(
                f"{_SUBJECT}: accelerator_type = {self.accelerator_type!r} is not an accelerator;"
                " use the name nodes offer it under, for example 'nvidia.com/gpu'"
            )

    @property
    def pods(self) -> PodGroup:
        """Pods of the workers, in the form of the planner."""
        requests = {}
        if self.cpu is not None:
            requests["cpu"] = parse_cpu(self.cpu)
        if self.memory is not None:
            requests["memory"] = parse_quantity(self.memory)
        if self.gpu is not None or self.accelerator_type is not None:
            number = 1 if self.gpu is None else int(self.gpu)
            requests[self.accelerator_type or DEFAULT_ACCELERATOR] = number
        return PodGroup(self.count, requests)
