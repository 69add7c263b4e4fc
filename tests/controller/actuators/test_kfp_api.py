"""What KFP's API answers about packages: read if it is of the run, never believed, never shown."""

import json
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest

from kfp_placement_controller.actuators import kfp_api
from kfp_placement_controller.actuators.kfp_api import LEAST_PAUSE_SECONDS, KfpApi
from kfp_placement_controller.actuators.worker import Worker
from kfp_placement_controller.connection import transport_to_kfp
from kfp_placement_controller.packages.actions import AskPackage, PackageAnswer
from kfp_placement_controller.settings import PlanSettings
from kfp_placement_engine.contract.placement import ConditionReason
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.configuration import Configuration
from kfp_placement_kube.transport import Transport, TransportParams
from tests.controlplane.certificates import CertificateAuthority
from tests.support.defects import fail
from tests.support.web_server import Answer, sending, web_server

RUN_ID = "0b5f2d0c-7a51-4a39-9d0c-6f1a6f9b1c11"
EXPERIMENT_ID = "5f0e1d2c-0000-4000-8000-000000000001"
RUN_PATH = f"/apis/v2beta1/runs/{RUN_ID}"
EXPERIMENT_PATH = f"/apis/v2beta1/experiments/{EXPERIMENT_ID}"
IR = {
    "schemaVersion": "2.1.0",
    "sdkVersion": "kfp-2.17.0",
    "pipelineInfo": {"name": "secret-pipeline"},
    "root": {"dag": {"tasks": {}}},
}
LIMIT_SECONDS, LIMIT_BYTES = 0.3, 100_000
QUESTION = AskPackage(RunKey("team", "run"), "uid", RUN_ID)


def as_json(document: object, **options: object) -> Answer:
    return sending(json.dumps(document).encode(), **options)  # type: ignore[arg-type]


def a_run(**changes: object) -> dict[str, object]:
    run = {"run_id": RUN_ID, "experiment_id": EXPERIMENT_ID, "pipeline_spec": IR}
    return {key: value for key, value in {**run, **changes}.items() if value is not None}


def an_experiment(namespace: str | None = "team") -> dict[str, object]:
    experiment: dict[str, object] = {"experiment_id": EXPERIMENT_ID, "display_name": "Default"}
    return experiment if namespace is None else {**experiment, "namespace": namespace}


def answers(run: Answer, experiment: Answer | None = None) -> dict[str, Answer]:
    return {RUN_PATH: run, EXPERIMENT_PATH: experiment or as_json(an_experiment())}


def an_api(url: str, token: Callable[[], str | None] = lambda: None) -> KfpApi:
    params = TransportParams(
        "test",
        timeout_seconds=LIMIT_SECONDS,
        max_answer_bytes=LIMIT_BYTES,
        max_answer_seconds=LIMIT_SECONDS,
        connections=1,
    )
    transport = Transport(lambda: Configuration(url, token), params)
    return KfpApi(transport, "kubeflow", wait=lambda _seconds: None)


def answered(pages: dict[str, Answer], namespace: str = "team") -> PackageAnswer:
    with web_server(pages) as url:
        return an_api(url).answer(AskPackage(RunKey(namespace, "run"), "uid", RUN_ID))


@pytest.mark.parametrize(
    "spec",
    [
        IR,
        {"pipeline_spec": IR, "platform_spec": {"platforms": {"kubernetes": {}}}},
    ],
    ids=["plain", "with platform"],
)
def test_a_package_is_read_from_both_forms(spec):
    asked = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        asked.append(parse_qs(urlsplit(request.path).query))
        assert request.headers["kubeflow-userid"] is None
        as_json(a_run(pipeline_spec=spec))(request)

    answer_of_run = answered(answers(answer))
    assert (answer_of_run.reason, answer_of_run.why) == (ConditionReason.READ, "")
    assert b"secret-pipeline" in answer_of_run.package
    assert asked == [{"view": ["FULL"]}]


def slow(_request: BaseHTTPRequestHandler) -> None:
    time.sleep(3 * LIMIT_SECONDS)


MALFORMED, TOO_LARGE = ConditionReason.MALFORMED, ConditionReason.TOO_LARGE
NOT_FOUND, FORBIDDEN = ConditionReason.NOT_FOUND, ConditionReason.FORBIDDEN
UNREACHABLE = ConditionReason.UNREACHABLE
SECRET = b'{"message": "not allowed: namespace other, Workflow secret-pipeline-x7"}'
DEEP = b'{"run_id":' + b"[" * 30_000 + b"]" * 30_000 + b"}"
BAD = {
    "late": (sending(SECRET, status=404), NOT_FOUND, ""),
    "no token": (sending(SECRET, status=401), FORBIDDEN, "401: compare the token's audience"),
    "no right": (
        sending(SECRET, status=403),
        FORBIDDEN,
        "403: bind ClusterRole kfp-placement-plan-kfp-api",
    ),
    "down": (sending(SECRET, status=503), UNREACHABLE, "HTTP status 503"),
    "busy": (sending(SECRET, status=429), UNREACHABLE, "HTTP status 429"),
    "wrong request": (sending(SECRET, status=400), MALFORMED, "HTTP status 400"),
    "slow": (slow, UNREACHABLE, "Read timed out"),
    "too large": (sending(b" " * (LIMIT_BYTES + 1)), TOO_LARGE, "more than 100000 bytes"),
    "not JSON": (sending(b"<html>"), MALFORMED, "not JSON"),
    "deep": (sending(DEEP), MALFORMED, "nested too deeply"),
    "a list": (as_json([a_run()]), MALFORMED, "not an object"),
    "another run": (as_json(a_run(run_id="another")), MALFORMED, "about another run"),
    "no experiment": (as_json(a_run(experiment_id=None)), MALFORMED, "no experiment"),
    "a path": (as_json(a_run(experiment_id="../runs/x")), MALFORMED, "no experiment"),
    "no pipeline": (as_json(a_run(pipeline_spec=None)), MALFORMED, "pipeline_spec"),
    "a number": (as_json(a_run(pipeline_spec=7)), MALFORMED, "pipeline_spec"),
    "a pipeline wrapped again and again": (
        sending(
            json.dumps(a_run(pipeline_spec=7))
            .encode()
            .replace(b"7}", b'{"pipeline_spec":' * 900 + b"{}" + b"}" * 901)
        ),
        MALFORMED,
        "pipeline_spec",
    ),
    "a deep pipeline": (
        sending(
            json.dumps(a_run()).replace('"tasks": {}', '"x": ' + "[" * 400 + "]" * 400).encode()
        ),
        MALFORMED,
        "pipeline_spec",
    ),
}


@pytest.mark.parametrize(("answer", "reason", "why"), BAD.values(), ids=BAD)
def test_an_answer_of_no_use_has_a_reason(answer, reason, why):
    bad = answered(answers(answer))
    assert (bad.reason, bad.package) == (reason, b"")
    assert why in bad.why
    assert len(bad.why) <= 300
    assert "secret" not in bad.why


def test_an_answer_of_too_many_values_is_not_parsed(monkeypatch):
    monkeypatch.setattr(kfp_api, "MOST_VALUES", 1000)
    bad = answered(answers(sending(b"[" + b"[]," * 1000 + b"[]]")))
    assert bad.reason is TOO_LARGE
    assert "at most 1000" in bad.why


def test_the_run_of_another_namespace_looks_like_one_that_there_is_not():
    there_is_none = answered({})
    of_another = answered(answers(as_json(a_run()), as_json(an_experiment("other"))))
    assert of_another == there_is_none
    assert (of_another.reason, of_another.package) == (NOT_FOUND, b"")


@pytest.mark.parametrize(("namespace", "reason"), [("kubeflow", "Read"), ("team", "NotFound")])
def test_runs_of_a_kfp_for_one_user_are_all_in_its_own_namespace(namespace, reason):
    pages = answers(as_json(a_run()), as_json(an_experiment(None)))
    assert answered(pages, namespace).reason == reason


@pytest.mark.parametrize(
    ("experiment", "reason"),
    [
        (sending(SECRET, status=403), FORBIDDEN),
        (as_json({"experiment_id": EXPERIMENT_ID, "namespace": ["team"]}), NOT_FOUND),
    ],
)
def test_without_the_namespace_of_the_run_nothing_is_passed_on(experiment, reason):
    bad = answered(answers(as_json(a_run()), experiment))
    assert (bad.reason, bad.package) == (reason, b"")


def test_the_token_is_read_for_every_request_and_follows_no_redirect(tmp_path):
    token, seen = tmp_path / "token", []

    def noted(answer: Answer) -> Answer:
        def noting(request: BaseHTTPRequestHandler) -> None:
            seen.append((request.path.partition("?")[0], request.headers["Authorization"]))
            answer(request)

        return noting

    with web_server({RUN_PATH: noted(as_json(a_run()))}) as elsewhere:
        moved = sending(b"", status=302, Location=f"{elsewhere}{RUN_PATH}")
        pages = answers(noted(moved), noted(as_json(an_experiment())))
        with web_server(pages) as url:
            settings = PlanSettings(kfp_api_address=f"{url}/", kfp_api_token=token)
            api = KfpApi(transport_to_kfp(settings), "kubeflow", wait=lambda _seconds: None)
            missing = api.answer(QUESTION)
            token.write_text("first\n")
            redirected = api.answer(QUESTION)
            token.write_text("second\n")
            api.answer(QUESTION)
    assert (missing.reason, redirected.reason) == (FORBIDDEN, UNREACHABLE)
    assert "our token" in missing.why
    assert "redirect" in redirected.why
    assert seen == [(RUN_PATH, "Bearer first"), (RUN_PATH, "Bearer second")]


@pytest.mark.parametrize("kind", ["known", "unknown", "missing"])
def test_a_server_that_the_authority_does_not_vouch_for_gets_no_token(tmp_path, kind):
    token, seen = tmp_path / "token", []
    token.write_text("secret")
    authorities = {name: tmp_path / name for name in ("known", "unknown")}
    for folder in authorities.values():
        folder.mkdir()
    certificates = {name: CertificateAuthority(folder) for name, folder in authorities.items()}
    file = tmp_path / "missing" if kind == "missing" else certificates[kind].certificate

    def answer(request: BaseHTTPRequestHandler) -> None:
        seen.append(request.headers["Authorization"])
        as_json(a_run())(request)

    with web_server(answers(answer), certificates["known"].server("kfp")) as url:
        settings = PlanSettings(kfp_api_address=url, kfp_api_token=token, kfp_api_authority=file)
        api = KfpApi(transport_to_kfp(settings), "kubeflow", wait=lambda _seconds: None)
        reason = api.answer(QUESTION).reason
    is_known = kind == "known"
    assert reason is (ConditionReason.READ if is_known else UNREACHABLE)
    assert seen == ["Bearer secret"] * is_known


@pytest.mark.parametrize(
    "address", ["ml-pipeline:8888", "http://a:1/path", "http://user@a:1", "http://a:1?x", "ftp://a"]
)
def test_an_address_is_that_of_a_server_and_no_more(address):
    with pytest.raises(ValueError, match="kfp_api_address"):
        PlanSettings(kfp_api_address=address)


def test_requests_are_a_second_apart_and_each_experiment_is_asked_for_once():
    paths, waits, clock = [], [], [100.0]

    def wait(seconds: float) -> None:
        waits.append(seconds)
        clock[0] += seconds

    def noted(answer: Answer) -> Answer:
        def noting(request: BaseHTTPRequestHandler) -> None:
            paths.append(request.path.partition("?")[0])
            clock[0] += 0.25
            answer(request)

        return noting

    pages = answers(noted(as_json(a_run())), noted(as_json(an_experiment())))
    with web_server(pages) as url:
        api = an_api(url)
        api.clock, api.wait = (lambda: clock[0]), wait
        assert api.answer(QUESTION).reason is ConditionReason.READ
        clock[0] += 10
        assert api.answer(QUESTION).reason is ConditionReason.READ
    assert paths == [RUN_PATH, EXPERIMENT_PATH, RUN_PATH]
    assert waits == [0.0, LEAST_PAUSE_SECONDS - 0.25, 0.0]


def test_a_defect_is_an_answer_and_the_thread_goes_on():
    api = an_api("http://127.0.0.1:1")
    taken: list[PackageAnswer] = []
    worker = Worker("packages", fail, taken.append, api.failed)
    worker.start()
    worker.submit(QUESTION)
    worker.submit(QUESTION)
    worker.stop()
    assert [each.reason for each in taken] == [MALFORMED, MALFORMED]
    assert "defect" in taken[0].why
