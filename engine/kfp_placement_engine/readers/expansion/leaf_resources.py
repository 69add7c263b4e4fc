"""A reader of a step's requests from those of its containers, with warnings about bad ones."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.model.demand import PodGroup
from kfp_placement_engine.model.run_graph import ContainerAmounts
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.readers.kubernetes.pods import (
    Container,
    is_pod_level,
    pod_level_requests,
    total_requests,
)
from kfp_placement_engine.readers.kubernetes.refused_resources import (
    Amount,
    half_accelerator,
    huge_pages_alone,
    refusals,
)
from kfp_placement_engine.readers.kubernetes.workloads import made_pods
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.expressions import Expression, Scope
from kfp_placement_engine.readers.tree.leaves import Leaf, MadeObject, ResourceSpec
from kfp_placement_engine.readers.tree.values import UNKNOWN, KnownValue, gapless, known_text
from kfp_placement_engine.units.quantities import (
    MIN_MEMORY_BYTES,
    format_resource,
    format_resources,
    parse_resource,
)
from kfp_placement_engine.units.resources import Amounts, Resources, add_to, raise_to

_NOTHING: Resources = {}
_MOST_FIELDS = 3
"""Largest number of fields that one warning names."""

_SPOKEN_VOWEL = re.compile(r"[AEFHILMNORSX][A-Z]|[AEIOo]")
"""Beginning of a kind before which one says `an`: `MPIJob` begins with the letter M."""


@dataclass(frozen=True)
class LeafResources:
    """Resources of a step, as far as they are known before the run.

    Attributes:
        requests: requests of its pod as a whole, else what its containers request together, in
            canonical units; a limit where there is only that.
        containers: amounts of the containers that run beside each other.
        unknown: names of the resources whose amount is known only at run time.
        warnings: codes and messages of problems.
    """

    requests: dict[str, int]
    containers: tuple[ContainerAmounts, ...]
    unknown: tuple[str, ...]
    warnings: tuple[tuple[str, str], ...]


def read_resources(leaf: Leaf, scope: Scope) -> LeafResources:
    """Evaluate the requests and limits of a step's containers and of its pod.

    Args:
        leaf: leaf of the step.
        scope: values of the step's inputs.

    Raises:
        InputError: an amount, or what the pod requests as a whole, is malformed.
    """
    reader = _Requests(scope, leaf.place)
    of_each: list[tuple[Amounts, Amounts]] = [({}, {}) for _ in range(leaf.container_count)]
    containers = [Container(reader.read(leaf.resources, of_each))]
    for each in leaf.init_containers:
        containers.append(Container(reader.read(each.resources), True, each.is_sidecar))
    requests = total_requests(containers)
    unknown, warnings = reader.unknown, reader.warnings
    for stated in of_each if not unknown else ():
        warnings.extend(huge_pages_alone((*stated[0], *stated[1])))
    of_pod: Resources = {}
    if leaf.pod_resources:
        pod = Fields(leaf.pod_resources, leaf.place.field("podResources"))
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
    # Most pods have one container, whose requests are those of the pod.
    amounts = tuple(
        ContainerAmounts(requests if stated == requests else stated, limits or _NOTHING)
        for stated, limits in of_each
    )
    return LeafResources(requests, amounts, names, tuple(warnings))


class _Requests:
    """Reader of what containers request, with what is unknown or surprises."""

    def __init__(self, scope: Scope, place: Place) -> None:
        self._scope = scope
        self._place = place
        self.unknown: list[str] = []
        self.warnings: list[tuple[str, str]] = []

    def read(
        self, specs: Iterable[ResourceSpec], of_each: Sequence[tuple[Amounts, Amounts]] = ()
    ) -> Amounts:
        """Return the sums of the requests, or of limits where there are only those.

        Args:
            specs: requests and limits of containers.
            of_each: requests and limits of each container, to be filled in.
        """
        requests: Amounts = {}
        for spec in specs:
            name = gapless(known_text(spec.name.evaluate(self._scope)))
            request = _amount(name or "", spec.request, self._scope, self._place)
            limit = _amount(name or "", spec.limit, self._scope, self._place)
            if not name:
                self.unknown.extend(["accelerator"] if name is None else [])
                self.warnings.extend(half_accelerator(name, limit))
                continue
            # Kubernetes takes the limit for the request where only a limit is set.
            counted = limit if request.is_known and request.value is None else request
            if not counted.is_known:
                self.unknown.append(name)
            elif counted.value is not None:
                requests[name] = requests.get(name, 0) + counted.value
                if of_each:
                    stated_requests, stated_limits = of_each[spec.container]
                    stated_requests[name] = counted.value
                    if limit.value is not None:
                        stated_limits[name] = limit.value
                self.warnings.extend(refusals(name, request, limit))
                self.warnings.extend(_tiny_memory(name, counted.value))
            elif spec.limit is not None and not is_pod_level(name):
                self.warnings.extend(half_accelerator(name, limit))
        return requests


def read_made_pods(
    made: MadeObject, scope: Scope, place: Place
) -> tuple[tuple[PodGroup, ...], tuple[tuple[str, str], ...]]:
    """Return the pods of an object that a step makes, and codes and messages of warnings.

    Args:
        made: the object.
        scope: values of the step's inputs.
        place: place of the step in its file, for messages.

    Raises:
        InputError: the object is malformed.
    """
    value = made.manifest.evaluate(scope)
    if not isinstance(value, KnownValue) or not isinstance(value.value, dict):
        message = "what it makes is known only at run time: pods of that are not in the plan"
        return (), (("made-pods", message),)
    manifest = Fields(value.value, place.field("manifest"))
    pods = made_pods(manifest, UNKNOWN)
    subject = f"it makes {_one(manifest.text('kind') or 'object')}"
    if pods.groups is None:
        return (), (("made-pods", f"{subject}: pods of it are not in the plan"),)
    warnings = []
    if pods.unknown:
        fields = f"{listed(pods.unknown, _MOST_FIELDS)} of what it makes"
        message = f"{fields} is known only at run time and counts as if it were not there"
        warnings.append(("unknown-resources", message))
    if pods.groups:
        warnings.append(("made-pods", f"{subject}: {_made_text(pods.groups, made.is_awaited)}"))
    return pods.groups, tuple(warnings)


def _one(kind: str) -> str:
    """Return a kind with its article."""
    return f"{'an' if _SPOKEN_VOWEL.match(kind) else 'a'} {kind:.80}"


def _made_text(groups: Iterable[PodGroup], is_awaited: bool) -> str:
    total: Amounts = {}
    for group in groups:
        add_to(total, {name: group.count * amount for name, amount in group.requests.items()})
    count = sum(group.count for group in groups)
    amounts = " ".join(f"{name}={text}" for name, text in format_resources(total).items())
    pods = f"its {count:,} pod{'' if count == 1 else 's'} ({amounts or 'nothing requested'})"
    verb = "is" if count == 1 else "are"
    if is_awaited:
        return f"{pods} {verb} not in the plan; queues count them from its start to its end"
    return (
        f"{pods} {verb} not in the plan, and it ends without waiting for them, since it has no"
        " successCondition"
    )


def _amount(name: str, expression: Expression | None, scope: Scope, place: Place) -> Amount:
    text = "" if expression is None else gapless(known_text(expression.evaluate(scope)))
    if not text:
        return Amount(is_known=text is not None)
    try:
        return Amount(text, parse_resource(name, text))
    except QuantityError as error:
        raise place.error(f"{error}", QuantityError) from error


def _tiny_memory(name: str, request: int) -> Iterator[tuple[str, str]]:
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
        limit = limits.get(name)
        most = Amount() if limit is None else Amount(format_resource(name, limit), limit)
        yield from refusals(name, Amount(format_resource(name, amount), amount), most)
        yield from _tiny_memory(name, amount)
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
