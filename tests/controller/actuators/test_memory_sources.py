"""What servers of others say of the memory of pods: read if it can be true, never believed."""

import json
import time
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs

import pytest
from kfp_placement_controller.actuators.memory_sources import MemorySources
from kfp_placement_controller.actuators.memory_worker import MemoryWorker
from kfp_placement_controller.planning.memory_watch import (
    MemoryAnswer,
    MemoryPod,
    MemoryQuestion,
)

from kfp_placement_engine.model.policy import MemorySource
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.configuration import Configuration
from kfp_placement_kube.transport import Transport, TransportParams
from tests.support.web_server import Answer, sending, web_server

GIB = 2**30
METRICS = "/apis/metrics.k8s.io/v1beta1/namespaces/team/pods"
QUERY = "/api/v1/query"
LIMIT_SECONDS, LIMIT_BYTES = 0.3, 100_000


def a_pod(name: str, namespace: str = "team", ran_seconds: float = 90.0) -> MemoryPod:
    return MemoryPod(f"uid-{name}", namespace, name, ran_seconds)


def asked(source: MemorySource, *pods: MemoryPod, url: str = "") -> MemoryQuestion:
    return MemoryQuestion(source, url, pods or (a_pod("p-1"), a_pod("p-2")))


def transport_to(url: str) -> Transport:
    params = TransportParams(
        "test", timeout_seconds=LIMIT_SECONDS, max_answer_bytes=LIMIT_BYTES, connections=1
    )
    return Transport(lambda: Configuration(url, lambda: None), params)


def sources(url: str) -> MemorySources:
    return MemorySources(KubeClient(transport_to(url)), transport_to, {"main"})


def answered(question: MemoryQuestion, url: str) -> MemoryAnswer:
    """What the worker's thread gives for it."""
    answers: list[MemoryAnswer] = []
    worker = MemoryWorker(sources(url).peaks, answers.append)
    worker.start()
    worker.submit(question)
    until = time.monotonic() + 10
    while not answers and time.monotonic() < until:
        time.sleep(0.01)
    worker.stop()
    (only,) = answers
    return only


def usage(name: str, memory: object, container: str = "main") -> dict[str, object]:
    containers = [
        {"name": "wait", "usage": {"cpu": "1m", "memory": "90Gi"}},
        {"name": container, "usage": {"cpu": "1m", "memory": memory}},
    ]
    return {"metadata": {"name": name, "namespace": "team"}, "containers": containers}


def a_list(*items: object) -> Answer:
    listed = {"kind": "PodMetricsList", "metadata": {}, "items": list(items)}
    return sending(json.dumps(listed).encode())


def vector(*samples: object, status: str = "success") -> Answer:
    data = {"resultType": "vector", "result": list(samples)}
    return sending(json.dumps({"status": status, "data": data}).encode())


def sample(pod: str, amount: object) -> dict[str, object]:
    return {"metric": {"pod": pod}, "value": [1764150000.1, amount]}


def test_metrics_of_the_container_that_runs_the_step():
    answer = a_list(usage("p-1", "1572864Ki"), usage("other", "1Gi"), usage("p-2", "1Gi", "side"))
    with web_server({METRICS: answer}) as url:
        found = answered(asked(MemorySource.METRICS), url)
    assert (dict(found.peaks), found.failure) == ({"uid-p-1": 1.5 * GIB}, "")


def test_what_is_malformed_tells_nothing_and_spoils_no_other():
    bad = [None, 5, {}, {"metadata": {"name": "p-2"}}, usage("p-2", "-1Gi"), usage("p-2", 3)]
    bad += [usage("p-2", "much"), usage("p-2", "1e999999999"), usage("p-2", {"a": []})]
    with web_server({METRICS: a_list(*bad, usage("p-1", "1Gi"))}) as url:
        found = answered(asked(MemorySource.METRICS), url)
    assert (dict(found.peaks), found.failure) == ({"uid-p-1": GIB}, "")


def test_without_the_right_it_says_which_feature_gives_it():
    refusal = {"kind": "Status", "message": "pods.metrics.k8s.io is forbidden", "code": 403}
    with web_server({METRICS: sending(json.dumps(refusal).encode(), status=403)}) as url:
        found = answered(asked(MemorySource.METRICS), url)
    assert "pods.metrics.k8s.io is forbidden" in found.failure
    assert "deploy/features/history-memory gives the right" in found.failure


def test_a_cluster_without_metrics_is_said():
    with web_server({}) as url:
        found = answered(asked(MemorySource.METRICS), url)
    assert "the cluster has no metrics-server" in found.failure


def test_pages_without_end_come_to_an_end():
    listed = {"metadata": {"continue": "more"}, "items": [usage("p-1", "1Gi")]}
    with web_server({METRICS: sending(json.dumps(listed).encode())}) as url:
        found = answered(asked(MemorySource.METRICS), url)
    assert dict(found.peaks) == {"uid-p-1": GIB}


def test_prometheus_is_asked_in_one_query_for_a_namespace():
    queries: list[str] = []
    inner = vector(sample("p-1", "1610612736"), sample("p-2", "1e9"), sample("other", "5"))

    def answer(request: BaseHTTPRequestHandler) -> None:
        assert request.headers["Authorization"] is None
        queries.append(parse_qs(request.posted.decode())["query"][0])  # type: ignore[attr-defined]
        inner(request)

    with web_server({QUERY: answer}) as url:
        pods = (a_pod("p-1"), a_pod("p-2"), a_pod("p.3", ran_seconds=30 * 86400))
        found = answered(asked(MemorySource.PROMETHEUS, *pods, url=url), url)
    assert dict(found.peaks) == {"uid-p-1": 1.5 * GIB, "uid-p-2": 1e9}
    (query,) = queries
    selector = '{namespace="team",container=~"main",pod=~"p-1|p-2|p[.]3"}[604800s]'
    assert query == (
        f"max by (pod) ((max_over_time(container_memory_max_usage_bytes{selector}) > 0)"
        f" or max_over_time(container_memory_working_set_bytes{selector}))"
    )


def test_no_name_can_change_the_query():
    pods = (a_pod('p"} or vector(1) #'), a_pod("p-1", namespace='team",pod=~".*'))
    with web_server({QUERY: vector(sample("p-1", "5"))}) as url:
        found = answered(asked(MemorySource.PROMETHEUS, *pods, url=url), url)
    assert (dict(found.peaks), found.failure) == ({}, "")


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
        found = answered(asked(MemorySource.PROMETHEUS, url=url), url)
    assert why in found.failure
    assert not found.peaks


def test_a_prometheus_that_is_not_there_is_said():
    with web_server({}) as url:
        pass
    found = answered(asked(MemorySource.PROMETHEUS, url=url), url)
    assert "no answer" in found.failure


@pytest.mark.parametrize("amount", ["many", "", 5, None, {"a": 1}])
def test_samples_that_are_no_numbers_tell_nothing(amount):
    samples = [sample("p-1", amount), {"metric": {}, "value": []}, None, sample("p-2", "7e8")]
    with web_server({QUERY: vector(*samples)}) as url:
        found = answered(asked(MemorySource.PROMETHEUS, url=url), url)
    assert dict(found.peaks) == {"uid-p-2": 7e8}


def test_many_namespaces_are_asked_until_the_time_is_over():
    """The clock goes on by 9 s each time that somebody looks at it."""
    ticks = iter(range(0, 10**6, 9))
    pods = [a_pod(f"p-{number}", f"n-{number}") for number in range(9)]
    paths = [f"/apis/metrics.k8s.io/v1beta1/namespaces/{each.namespace}/pods" for each in pods]
    answers = {
        path: a_list(usage(each.name, "1Gi")) for path, each in zip(paths, pods, strict=True)
    }
    with web_server(answers) as url:
        limited = MemorySources(
            KubeClient(transport_to(url)), transport_to, {"main"}, lambda: next(ticks)
        )
        assert len(limited.peaks(asked(MemorySource.METRICS, *pods))) == 3


def test_a_defect_is_an_answer_too():
    def fail(_question: MemoryQuestion) -> dict[str, float]:
        raise ZeroDivisionError("made up")

    answers: list[MemoryAnswer] = []
    worker = MemoryWorker(fail, answers.append)
    worker.start()
    worker.submit(asked(MemorySource.METRICS))
    worker.stop()
    assert [each.failure for each in answers] == ["defect: ZeroDivisionError: made up"]
