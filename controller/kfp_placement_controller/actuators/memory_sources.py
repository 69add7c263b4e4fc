"""Asks metrics.k8s.io or Prometheus for the memory of pods; both are servers of others."""

import math
import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from kfp_placement_controller.kinds import POD_METRICS
from kfp_placement_controller.planning.memory_watch import MemoryPod, MemoryQuestion
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.policy import MemorySource
from kfp_placement_engine.model.quantities import parse_quantity
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.exceptions import ForbiddenError, GarbledError, NotFoundError
from kfp_placement_kube.json_text import read_json
from kfp_placement_kube.transport import Transport

MOST_SECONDS = 20.0
"""For one question; what is not known by then is not asked for."""

MOST_PODS_A_QUERY = 50

_MOST_NAMESPACES, _MOST_PAGES = 100, 20
_MOST_RANGE_SECONDS = 7 * 86400
_RANGE_MORE_SECONDS = 300
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_FORM = "application/x-www-form-urlencoded"

_USES = (
    # Zero where runtime or kernel do not keep it.
    "(max_over_time(container_memory_max_usage_bytes{{{selector}}}[{seconds}s]) > 0)"
    " or max_over_time(container_memory_working_set_bytes{{{selector}}}[{seconds}s])"
)


class MemorySources:
    """The sources that a policy may name."""

    def __init__(
        self,
        client: KubeClient,
        transport_to: Callable[[str], Transport],
        containers: Collection[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is asked yet.

        Args:
            client: the API server, for metrics.k8s.io.
            transport_to: makes the way to the Prometheus of a URL.
            containers: names of those that run steps.
            clock: seconds.
        """
        self._client = client
        self._transport_to = transport_to
        self._containers = frozenset(containers)
        self._clock = clock

    def peaks(self, question: MemoryQuestion) -> Mapping[str, float]:
        """The most memory that the pods use or have used, bytes by uid; unknown ones are left out.

        Raises:
            KubernetesError: refused, or no answer, or none that can be read.
        """
        by_namespace: dict[str, dict[str, MemoryPod]] = defaultdict(dict)
        for each in question.pods:
            by_namespace[each.namespace][each.name] = each
        found: dict[str, float] = {}
        until = self._clock() + MOST_SECONDS
        ask = self._metrics if question.source is MemorySource.METRICS else self._prometheus
        for namespace, pods in islice(by_namespace.items(), _MOST_NAMESPACES):
            for name, amount in ask(question, namespace, pods):
                pod = pods.get(name)
                if pod is not None:
                    found[pod.uid] = max(amount, found.get(pod.uid, 0.0))
            if self._clock() >= until:
                break
        return found

    def _metrics(
        self, _question: MemoryQuestion, namespace: str, _pods: Mapping[str, MemoryPod]
    ) -> Iterator[tuple[str, float]]:
        """What each pod of a namespace uses now."""
        try:
            pages = self._client.pages(POD_METRICS, namespace=namespace)
            for page in islice(pages, _MOST_PAGES):
                for raw in page.items:
                    yield from self._usage(raw)
        except ForbiddenError as error:
            raise _explained(error, "; deploy/features/history-memory gives the right") from error
        except NotFoundError as error:
            raise _explained(error, "; the cluster has no metrics-server") from error

    def _usage(self, raw: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
        """The memory of the container that runs the step; a malformed pod tells nothing."""
        match raw:
            case {"metadata": {"name": str(name)}, "containers": list(containers)}:
                pass
            case _:
                return
        for each in containers:
            match each:
                case {"name": str(container), "usage": {"memory": str(amount)}}:
                    if container in self._containers:
                        yield from ((name, used) for used in _amounts(amount))
                case _:
                    pass

    def _prometheus(
        self, question: MemoryQuestion, namespace: str, pods: Mapping[str, MemoryPod]
    ) -> Iterator[tuple[str, float]]:
        """The most that each pod of a namespace has used."""
        # What is in a query must not end it.
        named = [each for each in pods.values() if _NAME.fullmatch(each.name)]
        if not _NAME.fullmatch(namespace):
            return
        transport = self._transport_to(question.url)
        for first in range(0, len(named), MOST_PODS_A_QUERY):
            chosen = named[first : first + MOST_PODS_A_QUERY]
            body = urlencode({"query": self._query(namespace, chosen)}).encode()
            response = transport.send("POST", "/api/v1/query", {}, body, _FORM)
            text = transport.read(response, "/api/v1/query")
            if response.status != HTTPStatus.OK:
                raise GarbledError(response.status, "Refused", f"HTTP status {response.status}")
            yield from _samples(text)

    def _query(self, namespace: str, pods: Sequence[MemoryPod]) -> str:
        longest = max(each.ran_seconds for each in pods) + _RANGE_MORE_SECONDS
        selector = (
            f'namespace="{namespace}",container=~"{_any_of(sorted(self._containers))}",'
            f'pod=~"{_any_of(each.name for each in pods)}"'
        )
        seconds = math.ceil(min(longest, _MOST_RANGE_SECONDS))
        return f"max by (pod) ({_USES.format(selector=selector, seconds=seconds)})"


def _any_of(names: Iterable[str]) -> str:
    return "|".join(name.replace(".", "[.]") for name in names)


def _amounts(text: str) -> Iterator[float]:
    """The amount, if it is one."""
    try:
        yield float(parse_quantity(text))
    except InputError:
        return


def _samples(text: bytes) -> Iterator[tuple[str, float]]:
    """What an instant vector says of pods.

    Raises:
        GarbledError: it is something else.
    """
    try:
        answer = read_json(text)
    except ValueError as error:
        raise _garbled("its answer is not JSON") from error
    match answer:
        case {"status": "success", "data": {"resultType": "vector", "result": list(samples)}}:
            pass
        case {"status": "error", "error": str(why)}:
            raise _garbled(f"it says {why!r:.200}")
        case _:
            raise _garbled("its answer is not that of a query")
    for each in samples:
        match each:
            case {"metric": {"pod": str(pod)}, "value": [_, str(amount)]}:
                yield from ((pod, value) for value in _floats(amount))
            case _:
                pass


def _floats(text: str) -> Iterator[float]:
    try:
        yield float(text)
    except ValueError:
        return


def _garbled(why: str) -> GarbledError:
    return GarbledError(0, "Garbled", why)


def _explained(error: ForbiddenError | NotFoundError, what: str) -> Exception:
    return type(error)(error.status, error.reason, f"{error.message}{what}")
