"""Asks KFP's API for the packages of runs; it is a server of others, and so are its answers.

The address, the token and the certificates come from our settings, never from a Workflow, whose
creator may be anybody. The answer does not say in which namespace the run is, but its experiment
does: only packages of runs of the Workflow's own namespace are passed on, and of all others nothing
is said. Packages hold code and arguments of users, so no part of one is in a message.
"""

import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import orjson

from kfp_placement_controller.exceptions import PackageError
from kfp_placement_controller.metrics import PACKAGE_ANSWERS
from kfp_placement_controller.packages.actions import AskPackage, PackageAnswer
from kfp_placement_engine.contract.placement import ConditionReason
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.kfp.package_parts import pipeline_of
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_kube.exceptions import ConfigurationError, GarbledError, KubernetesError
from kfp_placement_kube.transport import Transport

MOST_VALUES = 500_000
"""Limit of JSON values in an answer: text of empty lists alone would take 40 times its size."""

LEAST_PAUSE_SECONDS = 1.0
"""Pause between two requests; KFP itself may ask the API server five times a second for all."""

MOST_EXPERIMENTS = 10_000
"""Number of experiments whose namespaces are remembered; they never change."""

_REASONS: Mapping[int, ConditionReason] = {
    HTTPStatus.NOT_FOUND: ConditionReason.NOT_FOUND,
    HTTPStatus.UNAUTHORIZED: ConditionReason.FORBIDDEN,
    HTTPStatus.FORBIDDEN: ConditionReason.FORBIDDEN,
    HTTPStatus.BAD_REQUEST: ConditionReason.MALFORMED,
}
"""Meanings of HTTP statuses; all others are those of a server that does not work."""

_ADVICE: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: ": compare the token's audience with TOKEN_REVIEW_AUDIENCE of"
    " KFP's API server",
    HTTPStatus.FORBIDDEN: ": bind ClusterRole kfp-placement-plan-kfp-api to the account, with the"
    " right to get runs and experiments of pipelines.kubeflow.org",
}
"""Advice on HTTP statuses that an admin can fix, as it follows the status in a message."""

_EXPERIMENT_ID = re.compile(r"[0-9A-Za-z-]{1,64}")


@dataclass
class KfpApi:
    """KFP's API as the planner's account may use it; for one thread.

    Attributes:
        transport: connections to the API.
        own_namespace: namespace in which KFP runs Workflows if it has one user only; its
            experiments then name no namespace.
        clock: seconds that never go back.
        wait: function that waits for the given number of seconds.
    """

    transport: Transport
    own_namespace: str
    clock: Callable[[], float] = time.monotonic
    wait: Callable[[float], object] = time.sleep
    _asked_at: float = -math.inf
    _namespaces: dict[str, str] = field(default_factory=dict)
    """Namespaces by the ids of experiments."""

    def answer(self, question: AskPackage) -> PackageAnswer:
        """Return the package of a run, or why there is none."""
        try:
            package = self.package(question)
            answer = PackageAnswer(question, ConditionReason.READ, package)
        except PackageError as error:
            answer = PackageAnswer(question, error.reason, why=f"{error!s:.300}")
        PACKAGE_ANSWERS.labels(answer.reason).inc()
        return answer

    def failed(self, question: AskPackage, error: Exception) -> PackageAnswer:
        """Return the answer after a defect: the run is planned by its outline."""
        why = f"a defect in reading the answer of KFP's API: {type(error).__name__}"
        PACKAGE_ANSWERS.labels(ConditionReason.MALFORMED).inc()
        return PackageAnswer(question, ConditionReason.MALFORMED, why=why)

    def package(self, question: AskPackage) -> bytes:
        """Return the specification of a run's pipeline as JSON.

        Raises:
            PackageError: there is none, or it cannot be read.
        """
        path = f"/apis/v2beta1/runs/{quote(question.package_id, safe='')}"
        run = self._get(path, {"view": "FULL"})
        if run.get("run_id") != question.package_id:
            raise _malformed("it is about another run")
        if self._namespace(run.get("experiment_id")) != question.run.namespace:
            raise _refusal(HTTPStatus.NOT_FOUND)
        try:
            return orjson.dumps(pipeline_of(Fields(run, Place("the answer"))))
        except InputError as error:
            raise _malformed("it has no pipeline_spec that can be read") from error
        except (orjson.JSONEncodeError, RecursionError) as error:
            raise _malformed("its pipeline_spec is nested too deeply") from error

    def _namespace(self, experiment_id: object) -> str:
        """Return the namespace of an experiment, and so of its runs.

        Raises:
            PackageError: it cannot be read.
        """
        if not isinstance(experiment_id, str) or not _EXPERIMENT_ID.fullmatch(experiment_id):
            raise _malformed("it names no experiment, so the namespace of the run is not known")
        namespace = self._namespaces.get(experiment_id)
        if namespace is None:
            experiment = self._get(f"/apis/v2beta1/experiments/{experiment_id}", {})
            namespace = str(experiment.get("namespace") or self.own_namespace)
            if len(self._namespaces) >= MOST_EXPERIMENTS:
                self._namespaces.clear()
            self._namespaces[experiment_id] = namespace
        return namespace

    def _get(self, path: str, query: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the object at a path, once the pause since the last request is over.

        Raises:
            PackageError: refused, no answer, or none that can be read.
        """
        self.wait(max(0.0, self._asked_at + LEAST_PAUSE_SECONDS - self.clock()))
        self._asked_at = self.clock()
        try:
            response = self.transport.send("GET", path, query)
            if response.status != HTTPStatus.OK:
                # The body of a refusal names the run's namespace and Workflow: it is never read.
                response.close()
                raise _refusal(response.status)
            text = self.transport.read(response, path)
        except ConfigurationError as error:
            raise PackageError(ConditionReason.FORBIDDEN, f"our token: {error!s:.200}") from error
        except GarbledError as error:
            why = f"the answer of KFP's API has {error.why}"
            raise PackageError(ConditionReason.TOO_LARGE, why) from error
        except KubernetesError as error:
            raise PackageError(ConditionReason.UNREACHABLE, f"{error.why:.200}") from error
        return _parsed(text)


def _refusal(status: int) -> PackageError:
    """Return the error for an answer with a status other than 200."""
    reason = _REASONS.get(status, ConditionReason.UNREACHABLE)
    is_redirect = HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST
    more = ", a redirect, which our token does not follow" if is_redirect else ""
    more += _ADVICE.get(status, "")
    return PackageError(reason, f"HTTP status {status}{more}")


def _parsed(text: bytes) -> Mapping[str, Any]:
    """Return the object in an answer.

    Raises:
        PackageError: it is something else, or would take too much memory.
    """
    # Commas within text count too, so the text has at most this many values. Counting is cheap.
    values = sum(map(text.count, (b",", b"[", b"{")))
    if values > MOST_VALUES:
        why = f"the answer of KFP's API has {values} values, and at most {MOST_VALUES} are read"
        raise PackageError(ConditionReason.TOO_LARGE, why)
    try:
        answer = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _malformed("it is not JSON, or is nested too deeply") from error
    if not isinstance(answer, dict):
        raise _malformed("it is not an object")
    return answer


def _malformed(why: str) -> PackageError:
    return PackageError(ConditionReason.MALFORMED, f"the answer of KFP's API is of no use: {why}")
