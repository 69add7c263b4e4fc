"""A stand-in of KFP 3's API: it gives the packages of runs to those who may read these runs.

Who asks, and whether they may, is decided by the control plane's own reviews of tokens and rights,
in the order and with the fields of KFP's API server with several users (`MULTIUSER=true`).
"""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.controlplane.api import Api
from tests.controlplane.certificates import KeyPair
from tests.controlplane.kubelet.packages import Package
from tests.support.web_server import Answer, sending, web_server

AUDIENCE = "pipelines.kubeflow.org"

_RUNS = "/apis/v2beta1/runs/"
_EXPERIMENTS = "/apis/v2beta1/experiments/"
_CODES = {401: 16, 403: 7, 404: 5, 503: 14}
"""Codes of gRPC, which KFP's answers have beside those of HTTP."""

Trouble = Callable[[BaseHTTPRequestHandler, Answer], None]
"""Function that answers a request in place of the proper answer, which it is given."""


@dataclass(frozen=True)
class StoredRun:
    """A run that KFP's API has stored.

    Attributes:
        run_id: id of the run, which a label of its Workflow has.
        namespace: namespace of its Workflow.
        workflow: name of its Workflow.
        package: documents of its package; with two, the answer has the other of its two forms.
        stored_from_seconds: value of `time.monotonic()` from which on the API has it.
    """

    run_id: str
    namespace: str
    workflow: str
    package: Package
    stored_from_seconds: float = 0.0

    @property
    def experiment_id(self) -> str:
        """Id of its experiment: each namespace has one, which alone says what namespace it is."""
        return f"experiment-of-{self.namespace}"

    def answer(self, *, is_full: bool) -> dict[str, Any]:
        """The run as the API describes it."""
        source: dict[str, Any] = {"pipeline_version_reference": {"pipeline_id": "p"}}
        if is_full and len(self.package) == 1:
            source = {"pipeline_spec": self.package[0]}
        elif is_full:
            pipeline, platform = self.package
            source = {"pipeline_spec": {"pipeline_spec": pipeline, "platform_spec": platform}}
        names = {
            "run_id": self.run_id,
            "experiment_id": self.experiment_id,
            "display_name": self.workflow,
        }
        return {**names, "state": "RUNNING", **source, "tasks": []}


@dataclass(frozen=True)
class ReceivedRequest:
    """A request that the API has received.

    Attributes:
        at_seconds: value of `time.monotonic()` at the request.
        target: path and query.
        headers: headers of the request, with their names in lower case.
    """

    at_seconds: float
    target: str
    headers: Mapping[str, str]


class KfpApi:
    """KFP's API at work.

    Attributes:
        address: its address, without a path.
        requests: requests so far; the last is the latest.
        trouble: what it does in place of answering properly; None = nothing.
    """

    def __init__(self, api: Api) -> None:
        """Take the API server, as somebody who may create reviews; nothing is served yet."""
        self.address = ""
        self.requests: list[ReceivedRequest] = []
        self.trouble: Trouble | None = None
        self._api = api
        self._runs: dict[str, StoredRun] = {}

    def store(self, run: StoredRun) -> None:
        """Store a run, in place of another with its id."""
        self._runs[run.run_id] = run

    def get(self, path: str, /) -> Answer | None:
        """The answer to requests of a path, as the web server asks for it."""
        if path.startswith(_RUNS):
            return partial(self._answer, partial(self._run, path.removeprefix(_RUNS)))
        if path.startswith(_EXPERIMENTS):
            return partial(self._answer, partial(self._experiment, path.removeprefix(_EXPERIMENTS)))
        return None

    def _answer(
        self, answer_to: Callable[[BaseHTTPRequestHandler], Answer], request: BaseHTTPRequestHandler
    ) -> None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append(ReceivedRequest(time.monotonic(), request.path, headers))
        proper = answer_to(request)
        if self.trouble is None:
            proper(request)
        else:
            self.trouble(request, proper)

    def _run(self, run_id: str, request: BaseHTTPRequestHandler) -> Answer:
        run = self._runs.get(run_id)
        if run is None or time.monotonic() < run.stored_from_seconds:
            return refusal(404, f"Failed to authorize with the run ID {run_id}")
        view = parse_qs(urlsplit(request.path).query).get("view")
        body = run.answer(is_full=view == ["FULL"])
        return self._to_who_may_read(request, body, run.namespace, "runs", run.workflow)

    def _experiment(self, experiment_id: str, request: BaseHTTPRequestHandler) -> Answer:
        for run in self._runs.values():
            if run.experiment_id == experiment_id:
                body = {"experiment_id": experiment_id, "namespace": run.namespace}
                return self._to_who_may_read(request, body, run.namespace, "experiments", "Default")
        return refusal(404, f"Failed to authorize with the experiment ID {experiment_id}")

    def _to_who_may_read(
        self, request: BaseHTTPRequestHandler, body: Any, namespace: str, resource: str, name: str
    ) -> Answer:
        """An answer, or the refusal if who asks may not read this."""
        user = self._user(request.headers.get("Authorization", ""))
        if user is None:
            return refusal(401, "User identity is empty in the request header")
        if not self._may_read(user, namespace, resource, name):
            return refusal(403, f"User '{user}' is not authorized")
        return _json_answer(body)

    def _user(self, authorization: str) -> str | None:
        """The user of a bearer token that is meant for KFP, by a review of the token."""
        if not authorization.startswith("Bearer "):
            return None
        spec = {"token": authorization.removeprefix("Bearer "), "audiences": [AUDIENCE]}
        status = self._review("authentication.k8s.io/v1", "TokenReview", spec)
        is_for_us = AUDIENCE in status.get("audiences", ())
        return status["user"]["username"] if status.get("authenticated") and is_for_us else None

    def _may_read(self, user: str, namespace: str, resource: str, name: str) -> bool:
        """Whether a user may read something; as in KFP, groups of the user do not count."""
        attributes = {
            "group": "pipelines.kubeflow.org",
            "version": "v2beta1",
            "resource": resource,
            "verb": "get",
            "namespace": namespace,
            "name": name,
        }
        spec = {"user": user, "resourceAttributes": attributes}
        status = self._review("authorization.k8s.io/v1", "SubjectAccessReview", spec)
        return bool(status["allowed"])

    def _review(self, version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        item = {"apiVersion": version, "kind": kind, "metadata": {}, "spec": spec}
        status: dict[str, Any] = self._api.create(item)["status"]
        return status


@contextlib.contextmanager
def serving_kfp_api(api: Api, pair: KeyPair | None = None) -> Iterator[KfpApi]:
    """KFP's API at work beside a control plane.

    Args:
        api: the API server, as somebody who may create reviews.
        pair: certificate of KFP's API, for https.
    """
    kfp_api = KfpApi(api)
    with web_server(kfp_api, pair) as address:
        kfp_api.address = address
        yield kfp_api


def _json_answer(body: Any, status: int = 200) -> Answer:
    return sending(json.dumps(body).encode(), status=status, Content_Type="application/json")


def refusal(status: int, message: str = "made up by a test") -> Answer:
    """An error as KFP's API writes it."""
    body = {"error": message, "code": _CODES[status], "message": message, "details": []}
    return _json_answer(body, status)


# Troubles.


def refusing(status: int) -> Trouble:
    """Refuse every request with this status."""
    return lambda request, _: refusal(status)(request)


def waiting(seconds: float) -> Trouble:
    """Answer properly, so much later."""

    def answer(request: BaseHTTPRequestHandler, proper: Answer) -> None:
        time.sleep(seconds)
        proper(request)

    return answer


def dripping(seconds: float) -> Trouble:
    """Send a byte every tenth of a second: no single read takes long, the answer does."""

    def answer(request: BaseHTTPRequestHandler, _: Answer) -> None:
        request.send_response(200)
        request.end_headers()
        for _number in range(round(seconds * 10)):
            request.wfile.write(b" ")
            time.sleep(0.1)

    return answer


def large(mebibytes: int, *, states_length: bool = True) -> Trouble:
    """Send an answer of this size, which may not say how long it is."""
    body = b'{"pipeline_spec": {"x": "' + b"x" * (mebibytes * 2**20) + b'"}}'
    return lambda request, _: _sending_raw(request, body, states_length=states_length)


def deep(levels: int = 100_000) -> Trouble:
    """Send JSON of this depth."""
    body = b'{"pipeline_spec": ' + b"[" * levels + b"]" * levels + b"}"
    return lambda request, _: sending(body)(request)


def answering_for(run: StoredRun) -> Trouble:
    """Send this run, whichever run is asked for."""
    return lambda request, _: _json_answer(run.answer(is_full=True))(request)


def redirecting(address: str) -> Trouble:
    """Redirect every request to the same path of another server."""
    return lambda request, _: sending(b"", status=307, Location=f"{address}{request.path}")(request)


def _sending_raw(request: BaseHTTPRequestHandler, body: bytes, *, states_length: bool) -> None:
    request.send_response(200)
    if states_length:
        request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)
