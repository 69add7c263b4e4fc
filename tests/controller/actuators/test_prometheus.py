"""What the server of others says of the memory of pods: read if it can be true, never believed."""

import json
import time
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs

import pytest

from kfp_placement_controller.actuators.prometheus import (
    MOST_PODS_A_QUERY,
    MOST_SECONDS,
    Prometheus,
)
from kfp_placement_controller.actuators.worker import Worker
from kfp_placement_controller.learning.actions import AskMemory, MemoryAnswer, MemoryPod
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.configuration import Configuration
from kfp_placement_kube.transport import Transport, TransportParams
from tests.support.defects import fail
from tests.support.web_server import Answer, sending, web_server

GIB = 2**30
QUERY = "/api/v1/query"
LIMIT_SECONDS, LIMIT_BYTES = 0.3, 100_000


def a_pod(name: str, since_start_seconds: float = 90.0) -> MemoryPod:
    return MemoryPod(f"uid-{name}", name, since_start_seconds)


def asked(*pods: MemoryPod, url: str = "", namespace: str = "team") -> AskMemory:
    return AskMemory(url, RunKey(namespace, "run"), pods or (a_pod("p-1"), a_pod("p-2")))


def transport_to(url: str) -> Transport:
    params = TransportParams(
        "test", timeout_seconds=LIMIT_SECONDS, max_answer_bytes=LIMIT_BYTES, connections=1
    )
    return Transport(lambda: Configuration(url, lambda: None), params)


def answered(question: AskMemory) -> MemoryAnswer:
    return Prometheus(transport_to, {"main"}).answer(question)


def vector(*samples: object, status: str = "success") -> Answer:
    data = {"resultType": "vector", "result": list(samples)}
    return sending(json.dumps({"status": status, "data": data}).encode())


def sample(pod: str, amount: object) -> dict[str, object]:
    return {"metric": {"pod": pod}, "value": [1764150000.1, amount]}


def query_of(request: BaseHTTPRequestHandler) -> str:
    return parse_qs(request.posted.decode())["query"][0]  # type: ignore[attr-defined]


def test_the_pods_of_a_run_are_asked_for_in_one_query():
    queries: list[str] = []
    inner = vector(sample("p-1", "1610612736"), sample("p-2", "1e9"), sample("other", "5"))

    def answer(request: BaseHTTPRequestHandler) -> None:
        assert request.headers["Authorization"] is None
        queries.append(query_of(request))
        inner(request)

    with web_server({QUERY: answer}) as url:
        pods = (a_pod("p-1"), a_pod("p-2"), a_pod("p.3", since_start_seconds=30 * 86400))
        memory = answered(asked(*pods, url=url))
    assert dict(memory.peaks) == {"uid-p-1": 1.5 * GIB, "uid-p-2": 1e9}
    (query,) = queries
    selector = '{namespace="team",container=~"main",pod=~"p-1|p-2|p[.]3"}[604800s]'
    assert query == (
        f"max by (pod) ((max_over_time(container_memory_max_usage_bytes{selector}) > 0)"
        f" or max_over_time(container_memory_working_set_bytes{selector}))"
    )


@pytest.mark.parametrize(
    "question",
    [asked(a_pod('p"} or vector(1) #')), asked(a_pod("p-1"), namespace='team",pod=~".*')],
    ids=["pod", "namespace"],
)
def test_no_name_can_change_the_query(question):
    def answer(_request: BaseHTTPRequestHandler) -> None:
        raise AssertionError("nothing is asked")

    with web_server({QUERY: answer}) as url:
        memory = answered(AskMemory(url, question.run, question.pods))
    assert (dict(memory.peaks), memory.failure) == ({}, "")


def slow(request: BaseHTTPRequestHandler) -> None:
    time.sleep(3 * LIMIT_SECONDS)


BAD = {
    "not JSON": (sending(b"<html>"), "is not JSON"),
    "something else": (sending(b"[1]"), "is not that of a query"),
    "a scalar": (
        sending(b'{"status":"success","data":{"resultType":"scalar","result":[0,"1"]}}'),
        "is not that of a query",
    ),
    "an error": (sending(b'{"status":"error","error":"no such function"}'), "no such function"),
    "refused": (sending(b"who are you?", status=401), "HTTP status 401"),
    "elsewhere": (sending(b"", status=302, Location="http://localhost:1/"), "HTTP status 302"),
    "too long": (sending(b" " * (LIMIT_BYTES + 1)), "more than 100000 bytes"),
    "slow": (slow, "no answer"),
}


@pytest.mark.parametrize(("answer", "why"), BAD.values(), ids=BAD)
def test_a_prometheus_that_is_of_no_use_is_said(answer, why):
    with web_server({QUERY: answer}) as url:
        memory = answered(asked(url=url))
    assert why in memory.failure
    assert not memory.peaks


def test_a_prometheus_that_is_not_there_is_said():
    with web_server({}) as url:
        pass
    memory = answered(asked(url=url))
    assert "no answer" in memory.failure


@pytest.mark.parametrize("amount", ["many", "", 5, None, {"a": 1}])
def test_samples_that_are_no_numbers_tell_nothing(amount):
    samples = [sample("p-1", amount), {"metric": {}, "value": []}, None, sample("p-2", "7e8")]
    with web_server({QUERY: vector(*samples)}) as url:
        memory = answered(asked(url=url))
    assert dict(memory.peaks) == {"uid-p-2": 7e8}


def test_many_pods_are_asked_for_until_the_time_is_over():
    """Each query takes a bit less than half of the time that there is for all of them."""
    clock = iter(number * 0.45 * MOST_SECONDS for number in range(100))
    pods = [a_pod(f"p-{number}") for number in range(9 * MOST_PODS_A_QUERY)]
    queries: list[str] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        queries.append(query_of(request))
        vector(sample("p-1", "5"))(request)

    with web_server({QUERY: answer}) as url:
        limited = Prometheus(transport_to, {"main"}, lambda: next(clock))
        assert limited.peaks(asked(*pods, url=url)) == {"uid-p-1": 5.0}
    assert len(queries) == 3


def test_a_defect_is_an_answer_too():
    prometheus, answers = Prometheus(fail, {"main"}), list[MemoryAnswer]()
    worker = Worker("memory", prometheus.answer, answers.append, prometheus.failed)
    worker.start()
    worker.submit(asked())
    worker.stop()
    assert [each.failure for each in answers] == ["defect: ZeroDivisionError: made up"]
