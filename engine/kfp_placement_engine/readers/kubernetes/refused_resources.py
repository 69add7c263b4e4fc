"""Requests and limits with which no pod is made: the API server refuses it, or KFP drops them.

The rules are those of the API server (`validateContainerResourceRequirements` in
`pkg/apis/core/validation`) and of KFP's driver (`initPodSpecPatch`).
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.units.quantities import format_resource, is_whole, parse_quantity
from kfp_placement_engine.units.resources import HUGE_PAGES, is_extended, is_overcommittable

Warnings = Iterator[tuple[str, str]]
"""Code and message of each problem."""

ABOVE_LIMIT, INVALID = "request-above-limit", "invalid-resource"
"""Codes of what the API server refuses."""

_REFUSED = "Kubernetes will refuse its pod"


class Amount(NamedTuple):
    """Request or limit of one resource, as far as it is known before the run.

    Attributes:
        text: amount as written; "" = there is none.
        value: amount in canonical units, rounded up; None = there is none, or it is not known.
        is_known: whether the amount, or that there is none, is known before the run.
    """

    text: str = ""
    value: int | None = None
    is_known: bool = True


def refusals(name: str, request: Amount, limit: Amount) -> Warnings:
    """Yield why the API server refuses the request and limit of one resource of a container."""
    if is_overcommittable(name):
        if request.value is not None and limit.value is not None and request.value > limit.value:
            yield (
                ABOVE_LIMIT,
                f"its {name:.80} request {format_resource(name, request.value)} is above its limit"
                f" {format_resource(name, limit.value)}: {_REFUSED}; raise the limit or ask for"
                " less",
            )
        return
    shown = f"its {name:.80}"
    if name.startswith("requests."):
        # Names with this beginning are those of quotas (`IsExtendedResourceName`).
        plain = name.removeprefix("requests.")
        problem = "doesn't follow extended resource name standard"
        yield INVALID, f"{shown} {problem}: {_REFUSED}; write {plain:.80}"
    for text in dict.fromkeys(each.text for each in (request, limit) if each.value is not None):
        if is_extended(name) and not is_whole(text):
            yield INVALID, f"{shown} {text!r:.40} must be an integer: {_REFUSED}; write 1 or more"
        elif unit := _page_of(name, text):
            yield (
                INVALID,
                f"{shown} {text!r:.40} must be a multiple of the page size {unit}: {_REFUSED}",
            )
    if request.value is None or not limit.is_known:
        return
    if limit.value is None:
        yield (
            INVALID,
            f"{shown} has a request alone. Limit must be set for non overcommitable resources:"
            f" {_REFUSED}; set the limit to {request.text!r:.40}",
        )
    elif request.value != limit.value:
        yield (
            INVALID,
            f"{shown} request {request.text!r:.40} must be equal to {name:.80} limit"
            f" {limit.text!r:.40}: {_REFUSED}; set the limit alone",
        )


def huge_pages_alone(stated: Iterable[str]) -> Warnings:
    """Yield why the API server refuses a container with huge pages, but neither cpu nor memory.

    Args:
        stated: resources that the container requests or limits.
    """
    names = set(stated)
    if any(name.startswith(HUGE_PAGES) for name in names) and names.isdisjoint({"cpu", "memory"}):
        yield INVALID, f"HugePages require cpu or memory: {_REFUSED}; request memory beside them"


def _page_of(name: str, text: str) -> str:
    """Return the size of a huge page, if the amount is not a multiple of it, else ""."""
    size = name.removeprefix(HUGE_PAGES)
    try:
        page_bytes = parse_quantity(size) if name.startswith(HUGE_PAGES) else 0
    except QuantityError:
        return ""
    return size if page_bytes and parse_quantity(text) % page_bytes else ""


def half_accelerator(name: str | None, count: Amount) -> Warnings:
    """Yield what is missing where a step has only the type of accelerators, or only their number.

    Args:
        name: the type; "" = there is none, None = it is known only at run time.
        count: the number.
    """
    if name == "" and count.value:
        plural = "" if count.value == 1 else "s"
        yield (
            "accelerator-dropped",
            f"asks for {count.text:.40} accelerator{plural} without a type: KFP requests none,"
            ' without a word; this line asks for them: task.set_accelerator_type("nvidia.com/gpu")',
        )
    elif name and count.is_known and not count.text:
        yield (
            "accelerator-dropped",
            f"names the accelerator {name:.80} without a number: KFP requests none, without a word;"
            " this line asks for one: task.set_accelerator_limit(1)",
        )
