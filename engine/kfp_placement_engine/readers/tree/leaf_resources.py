"""A reader of a step's requests from those of its containers, with warnings about bad ones."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.readers.kubernetes.pods import is_pod_level, pod_level_requests
from kfp_placement_engine.readers.text.fields import Fields, RawMapping
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.expressions import Expression, Scope
from kfp_placement_engine.readers.tree.tasks import ResourceSpec
from kfp_placement_engine.readers.tree.values import known_text
from kfp_placement_engine.units.quantities import MIN_MEMORY_BYTES, format_resource, parse_resource
from kfp_placement_engine.units.resources import Resources, add_to, raise_to

GAP = "{{"
"""Beginning of the placeholders that KFP and Argo fill in at run time."""


@dataclass(frozen=True)
class LeafResources:
    """Resources of a step, as far as they are known before the run.

    Attributes:
        requests: requests of its pod as a whole, else sums over its containers, in canonical units;
            a limit where there is only that.
        unknown: names of the resources whose amount is known only at run time.
        warnings: codes and messages of problems.
    """

    requests: dict[str, int]
    unknown: tuple[str, ...]
    warnings: tuple[tuple[str, str], ...]


def read_resources(
    specs: Iterable[ResourceSpec], pod_resources: RawMapping, scope: Scope, place: Place
) -> LeafResources:
    """Evaluate the requests and limits of a step's containers and of its pod.

    Args:
        specs: requests and limits, for each resource of each container.
        pod_resources: requests and limits of the pod as a whole, as written.
        scope: values of the step's inputs.
        place: place of the step in its file, for messages.

    Raises:
        InputError: an amount, or what the pod requests as a whole, is malformed.
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
    of_pod: Resources = {}
    if pod_resources:
        pod = Fields(pod_resources, place.field("podResources"))
        of_pod = pod_level_requests(pod, requests)
        warnings.extend(_pod_surprises(pod, of_pod, requests))
        # A pod that requests less than its containers is refused, so the larger amount counts.
        raise_to(requests, of_pod)
    names = tuple(name for name in dict.fromkeys(unknown) if name not in of_pod)
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


def _pod_surprises(
    pod: Fields, of_pod: Resources, of_containers: Resources
) -> Iterator[tuple[str, str]]:
    limits = pod.resources("limits")
    for name, amount in of_pod.items():
        yield from _surprises(name, amount, limits.get(name))
        least = of_containers.get(name, 0)
        if amount < least:
            yield (
                "pod-resources",
                f"its podResources request {name:.80} {format_resource(name, amount)}, less than"
                f" the {format_resource(name, least)} of its containers: Kubernetes will refuse its"
                " pod; raise podResources or ask for less",
            )
    for name in sorted({*limits, *pod.resources("requests")}):
        if not is_pod_level(name):
            yield (
                "pod-resources",
                f"its podResources name {name:.80}, which Argo refuses: only cpu, memory and"
                " hugepages may be there; ask for it in a container",
            )
