"""Resource quantities and what pods request, read by code of the stand-in's own."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import ceil
from typing import Any

_POWERS = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SUFFIXES = {unit: Fraction(10) ** power for unit, power in _POWERS.items()} | {
    f"{unit}i": Fraction(1024) ** power for power, unit in enumerate("KMGTPE", 1)
}


def amount(quantity: Any) -> Fraction:
    """The number a quantity stands for.

    Raises:
        ValueError: it is no quantity.
    """
    text = str(quantity).strip()
    number = text.rstrip("numkKMGTPEi") if "e" not in text else text
    suffix = text[len(number) :]
    if suffix not in _SUFFIXES:
        raise ValueError(f"{quantity!r} is no quantity")
    return Fraction(number) * _SUFFIXES[suffix]


def whole_amount(resource: str, quantity: Any) -> int:
    """A quantity as a kubelet counts it: thousandths of a CPU, else whole units."""
    return ceil(amount(quantity) * (1000 if resource == "cpu" else 1))


def amounts(quantities: Mapping[str, Any] | None) -> dict[str, int]:
    """A resource list as whole numbers."""
    return {name: whole_amount(name, text) for name, text in (quantities or {}).items()}


def pod_requests(pod: Mapping[str, Any]) -> dict[str, int]:
    """Return the requests of a pod: the larger of all its containers and each init container.

    An init container that goes on beside the others counts with them. A limit without a request
    is a request.
    """
    spec = pod["spec"]
    together = _sum(_requests(container) for container in spec["containers"])
    peak: dict[str, int] = {}
    for container in spec.get("initContainers") or []:
        if container.get("restartPolicy") == "Always":
            together = _sum((together, _requests(container)))
        else:
            peak = _largest(peak, _requests(container))
    return _sum((_largest(together, peak), amounts(spec.get("overhead"))))


def _requests(container: Mapping[str, Any]) -> dict[str, int]:
    resources = container.get("resources") or {}
    return {**amounts(resources.get("limits")), **amounts(resources.get("requests"))}


def _sum(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, number in part.items():
            total[name] = total.get(name, 0) + number
    return total


def _largest(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    names = [*left, *right]
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in names}
