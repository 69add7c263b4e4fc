"""The Argo stand-in at work on an API server."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Self

from tests.controlplane.api import Api
from tests.controlplane.argo.compression import compress_nodes, expand_nodes
from tests.controlplane.argo.controller import is_left_alone, reconcile
from tests.controlplane.argo.crds import VERSION
from tests.controlplane.argo.exceptions import ArgoError, Refusal
from tests.controlplane.argo.settings import COMPRESS_ABOVE_BYTES
from tests.controlplane.argo.state import LABEL_COMPLETED, LABEL_PHASE, LABEL_WORKFLOW
from tests.controlplane.argo.watching import Key, Watched, key_of
from tests.controlplane.exceptions import ApiError, ApiUnreachableError
from tests.controlplane.objects import JsonObject, an_object
from tests.controlplane.times import write_time

RETRY_SECONDS = 0.5
"""Pause after a write that failed."""

_OF_ANOTHER_FORM = (ArgoError, AttributeError, KeyError, TypeError, ValueError, RecursionError)
"""Errors of a reader that takes the form of a Workflow for granted; Argo reads it into types."""


class ApiCluster:
    """Changes that the controller makes to one namespace of an API server."""

    def __init__(self, api: Api, namespace: str, created: Callable[[JsonObject], None]) -> None:
        self._api = api
        self._namespace = namespace
        self._created = created

    def create_pod(self, pod: JsonObject) -> None:
        """Create a pod."""
        self._created(self._refusable(lambda: self._api.create(pod)))

    def end_pod(self, name: str) -> None:
        """Delete a pod."""
        self._refusable(lambda: self._api.delete(self._item("Pod", name)))

    def create_claim(self, claim: JsonObject) -> None:
        """Create a volume claim."""
        self._refusable(lambda: self._api.create(claim))

    def delete_claim(self, name: str) -> None:
        """Delete a volume claim."""
        self._refusable(lambda: self._api.delete(self._item("PersistentVolumeClaim", name)))

    def find_template(self, name: str) -> JsonObject:
        """A WorkflowTemplate."""
        return self._refusable(
            lambda: self._api.get(VERSION, "WorkflowTemplate", name, self._namespace)
        )

    def _item(self, kind: str, name: str) -> JsonObject:
        return an_object("v1", kind, name, self._namespace)

    def _refusable(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except ApiError as error:
            raise Refusal(error.status, error.reason, str(error)) from error


class ArgoLoop:
    """A controller; a context manager that stops it.

    Two of its kind must not run at once. All it knows is in the Workflows.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._due: dict[Key, float] = {}
        self._changed = threading.Condition()
        self._stopped = False
        self._workflows = Watched(api, VERSION, "Workflow", lambda item: self._ask(key_of(item)))
        query = {"labelSelector": LABEL_WORKFLOW}
        self._pods = Watched(api, "v1", "Pod", self._ask_owner, **query)
        self._results = Watched(api, VERSION, "WorkflowTaskResult", self._ask_owner, **query)
        self._thread = threading.Thread(target=self._work, name="argo", daemon=True)

    def __enter__(self) -> Self:
        for watched in (self._pods, self._results, self._workflows):
            watched.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for watched in (self._pods, self._results, self._workflows):
            watched.stop()
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join(30)

    def _ask_owner(self, item: JsonObject) -> None:
        metadata = item["metadata"]
        owner = (metadata.get("labels") or {}).get(LABEL_WORKFLOW)
        if owner:
            self._ask((metadata.get("namespace", ""), owner))

    def _ask(self, key: Key, seconds: float = 0.0) -> None:
        moment = time.monotonic() + seconds
        with self._changed:
            self._due[key] = min(moment, self._due.get(key, moment))
            self._changed.notify()

    def _next(self) -> Key | None:
        """The next Workflow to look at; None when it is over."""
        with self._changed:
            while not self._stopped:
                now = time.monotonic()
                key = min(self._due, key=self._due.__getitem__, default=None)
                if key is not None and self._due[key] <= now:
                    del self._due[key]
                    return key
                self._changed.wait(None if key is None else self._due[key] - now)
        return None

    def _work(self) -> None:
        while (key := self._next()) is not None:
            try:
                self._look(key)
            except (ApiError, ApiUnreachableError, Refusal):
                self._ask(key, RETRY_SECONDS)

    def _look(self, key: Key) -> None:
        workflow = self._workflows.get(key)
        if workflow is None or is_left_alone(workflow):
            return
        try:
            self._reconcile(key, workflow)
        except _OF_ANOTHER_FORM as error:
            self._refuse(workflow, error)

    def _refuse(self, workflow: JsonObject, error: Exception) -> None:
        """A Workflow that cannot be read has failed, as with Argo."""
        status = {
            "phase": "Failed",
            "message": f"cannot unmarshall spec: {error!r}",
            "finishedAt": write_time(datetime.now(UTC)),
        }
        labels = {LABEL_PHASE: "Failed", LABEL_COMPLETED: "true"}
        patch = {"metadata": {"labels": labels}, "status": status}
        self._workflows.put(self._api.patch(workflow, patch))

    def _reconcile(self, key: Key, workflow: JsonObject) -> None:
        namespace, name = key
        outcome = reconcile(
            expand_nodes(workflow),
            self._of(self._pods, namespace, name),
            self._of(self._results, namespace, name),
            ApiCluster(self._api, namespace, self._pods.put),
            datetime.now(UTC),
        )
        if outcome.changed:
            written = compress_nodes(outcome.workflow, COMPRESS_ABOVE_BYTES)
            self._workflows.put(self._api.replace(written))
            self._ask(key)
        if outcome.requeue_seconds is not None:
            self._ask(key, max(0.05, outcome.requeue_seconds))

    def _of(self, watched: Watched, namespace: str, workflow: str) -> list[JsonObject]:
        return [
            item
            for item in watched.items()
            if item["metadata"].get("namespace") == namespace
            and (item["metadata"].get("labels") or {}).get(LABEL_WORKFLOW) == workflow
        ]
