"""A reader of a step's requests from those of its containers, with warnings about bad ones."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.expressions import Expression, Scope
from kfp_placement_engine.readers.tree.tasks import ResourceSpec
from kfp_placement_engine.readers.tree.values import known_text
from kfp_placement_engine.units.quantities import MIN_MEMORY_BYTES, format_resource, parse_resource
from kfp_placement_engine.units.resources import add_to

GAP = "{{"
"""Beginning of the placeholders that KFP and Argo fill in at run time."""


@dataclass(frozen=True)
class LeafResources:
    """Resources of a step, as far as they are known before the run.

    Attributes:
        requests: sums over its containers, in canonical units; a limit where a container has only
            that.
        unknown: names of the resources whose amount is known only at run time.
        warnings: codes and messages of problems.
    """

    requests: dict[str, int]
    unknown: tuple[str, ...]
    warnings: tuple[tuple[str, str], ...]


def read_resources(specs: Iterable[ResourceSpec], scope: Scope, place: Place) -> LeafResources:
    """Evaluate the requests and limits of a step's containers.

    Args:
        specs: requests and limits, for each resource of each container.
        scope: values of the step's inputs.
        place: place of the step in its file, for messages.

    Raises:
        QuantityError: an amount is malformed.
    """
    requests: dict[str, int] = {}
    unknown: list[str] = []
    warnings: list[tuple[str, str]] = []
    for spec in specs:
        name = gapless(known_text(spec.name.evaluate(scope)))
        if name is None:
            unknown.append("accelerator")
            continue
        request, request_is_known = _amount(name, spec.request, scope, place)
        limit, limit_is_known = _amount(name, spec.limit, scope, place)
        # Kubernetes takes the limit for the request where only a limit is set.
        amount = limit if request is None and request_is_known else request
        if not request_is_known or (request is None and not limit_is_known):
            unknown.append(name)
        elif amount is not None:
            # Containers of one pod add up.
            add_to(requests, {name: amount})
            warnings.extend(_surprises(name, amount, limit))
    names = tuple(dict.fromkeys(unknown))
    if names:
        verbs = ("is", "counts") if len(names) == 1 else ("are", "count")
        listed = " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
        message = f"its {listed} {verbs[0]} known only at run time and {verbs[1]} as 0"
        warnings.append(("unknown-resources", message))
    return LeafResources(requests, names, tuple(warnings))


def gapless(text: str | None) -> str | None:
    """Return the text, or None if a part of it is known only at run time."""
    return None if text is None or GAP in text else text


def _amount(
    name: str, expression: Expression | None, scope: Scope, place: Place
) -> tuple[int | None, bool]:
    """Return the amount, or None without one, and whether that is known before the run."""
    text = "" if expression is None else gapless(known_text(expression.evaluate(scope)))
    if not text or not name:
        return None, text is not None
    try:
        return parse_resource(name, text), True
    except QuantityError as error:
        raise place.error(f"{error}", QuantityError) from error


def _surprises(name: str, request: int, limit: int | None) -> Iterator[tuple[str, str]]:
    if limit is not None and request > limit:
        yield (
            "request-above-limit",
            f"its {name:.80} request {format_resource(name, request)} is above its limit"
            f" {format_resource(name, limit)}: Kubernetes will refuse its pod; raise the limit or"
            " ask for less",
        )
    if name == "memory" and 0 < request < MIN_MEMORY_BYTES:
        yield (
            "tiny-memory",
            f"its memory of {request:,} byte{'' if request == 1 else 's'} is too little to start"
            " in; give it a unit, for example 4Gi",
        )
