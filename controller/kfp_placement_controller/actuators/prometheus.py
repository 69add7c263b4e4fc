"""Asks a Prometheus for the memory of pods; it is a server of others."""

import math
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlencode

from kfp_placement_controller.learning.actions import AskMemory, MemoryAnswer, MemoryPod
from kfp_placement_engine.exceptions import EngineError
from kfp_placement_kube.exceptions import GarbledError, KubeError
from kfp_placement_kube.json_text import read_json
from kfp_placement_kube.transport import Transport

MOST_SECONDS = 20.0
"""Time for one question; pods that are not known by then are not asked for."""

MOST_PODS_A_QUERY = 50

_MOST_RANGE_SECONDS = 7 * 86400
_RANGE_MORE_SECONDS = 300
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_FORM = "application/x-www-form-urlencoded"

_USES = (
    # Zero where runtime or kernel do not keep it.
    "(max_over_time(container_memory_max_usage_bytes{{{selector}}}[{seconds}s]) > 0)"
    " or max_over_time(container_memory_working_set_bytes{{{selector}}}[{seconds}s])"
)


@dataclass
class Prometheus:
    """The servers that a policy may name.

    Attributes:
        transport_to: function that makes the connection to the server of a URL.
        containers: names of those that run steps.
        clock: seconds.
    """

    transport_to: Callable[[str], Transport]
    containers: Collection[str]
    clock: Callable[[], float] = time.monotonic

    def peaks(self, question: AskMemory) -> Mapping[str, float]:
        """Return the most memory that the pods used, bytes by uid; unknown ones are left out.

        Raises:
            KubernetesError: refused, or no answer, or none that can be read.
        """
        namespace = question.run.namespace
        # What is in a query must not end it.
        pods = {each.name: each for each in question.pods if _NAME.fullmatch(each.name)}
        if not _NAME.fullmatch(namespace):
            return {}
        peaks: dict[str, float] = {}
        named, until = list(pods.values()), self.clock() + MOST_SECONDS
        transport = self.transport_to(question.url)
        for first in range(0, len(named), MOST_PODS_A_QUERY):
            query = self._query(namespace, named[first : first + MOST_PODS_A_QUERY])
            for name, amount in _samples(_answer(transport, query)):
                if name in pods:
                    uid = pods[name].uid
                    peaks[uid] = max(amount, peaks.get(uid, 0.0))
            if self.clock() >= until:
                break
        return peaks

    def answer(self, question: AskMemory) -> MemoryAnswer:
        """Return the peaks, or why there are none."""
        try:
            return MemoryAnswer(question, self.peaks(question))
        except (KubeError, EngineError) as error:
            return MemoryAnswer(question, failure=f"{error!s:.300}")

    def failed(self, question: AskMemory, error: Exception) -> MemoryAnswer:
        """Return the answer after a defect: plans do without the peaks."""
        return MemoryAnswer(question, failure=f"defect: {type(error).__name__}: {error!s:.200}")

    def _query(self, namespace: str, pods: Sequence[MemoryPod]) -> str:
        longest = max(each.since_start_seconds for each in pods) + _RANGE_MORE_SECONDS
        selector = (
            f'namespace="{namespace}",container=~"{_any_of(sorted(self.containers))}",'
            f'pod=~"{_any_of(each.name for each in pods)}"'
        )
        seconds = math.ceil(min(longest, _MOST_RANGE_SECONDS))
        return f"max by (pod) ({_USES.format(selector=selector, seconds=seconds)})"


def _answer(transport: Transport, query: str) -> bytes:
    body = urlencode({"query": query}).encode()
    response = transport.send("POST", "/api/v1/query", {}, body, _FORM)
    text = transport.read(response, "/api/v1/query")
    if response.status != HTTPStatus.OK:
        raise GarbledError(f"HTTP status {response.status}")
    return text


def _any_of(names: Iterable[str]) -> str:
    return "|".join(name.replace(".", "[.]") for name in names)


def _samples(text: bytes) -> Iterator[tuple[str, float]]:
    """Yield what an instant vector says of pods.

    Raises:
        GarbledError: it is something else.
    """
    try:
        answer = read_json(text)
    except ValueError as error:
        raise GarbledError("its answer is not JSON") from error
    match answer:
        case {"status": "success", "data": {"resultType": "vector", "result": list(samples)}}:
            pass
        case {"status": "error", "error": str(why)}:
            raise GarbledError(f"it says {why!r:.200}")
        case _:
            raise GarbledError("its answer is not that of a query")
    for each in samples:
        match each:
            case {"metric": {"pod": str(pod)}, "value": [_, str(amount)]}:
                with suppress(ValueError):
                    yield pod, float(amount)
            case _:
                pass
