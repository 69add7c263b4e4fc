"""The kubelet stand-in at work on an API server, for all its nodes."""

import threading
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Self

from tests.controlplane import housekeeping, objects
from tests.controlplane.api import Api
from tests.controlplane.argo.watching import Watched
from tests.controlplane.exceptions import ApiError, ApiUnreachableError
from tests.controlplane.kubelet.kubelet import Change, Kubelets, Removal, Report, StatusChange

MINIMUM_PAUSE_SECONDS = 0.01


class KubeletLoop:
    """Kubelets of every node that is not lost; a context manager that stops them.

    The control plane must not let kwok simulate pods at the same time.
    """

    def __init__(self, api: Api, kubelets: Kubelets) -> None:
        self._api = api
        self._kubelets = kubelets
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopped = False
        self._open: list[Change] = []
        self._pods = Watched(api, "v1", "Pod", lambda _: self._wake.set())
        self._nodes = Watched(api, "v1", "Node", lambda _: None)
        self._thread = threading.Thread(target=self._work, name="kubelets", daemon=True)

    def __enter__(self) -> Self:
        self._nodes.start()
        self._pods.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._pods.stop()
        self._nodes.stop()
        self._stopped = True
        self._wake.set()
        self._thread.join(30)

    def fail(self, name: str, exit_code: int = 1) -> None:
        """End a pod's main container with this code."""
        with self._lock:
            self._kubelets.fail(name, datetime.now(UTC), exit_code)
        self._wake.set()

    def _work(self) -> None:
        while not self._stopped:
            self._wake.clear()
            now = datetime.now(UTC)
            alive = (node for node in self._nodes.items() if not housekeeping.is_lost(node))
            nodes = {node["metadata"]["name"]: node for node in alive}
            with self._lock:
                self._open += self._kubelets.look(self._pods.items(), nodes, now)
                following = self._kubelets.next_change(now)
            self._write_all()
            self._wake.wait(self._pause(following))

    def _pause(self, following: datetime | None) -> float | None:
        if self._open:
            return 0.2
        if following is None:
            return None
        return max(MINIMUM_PAUSE_SECONDS, (following - datetime.now(UTC)).total_seconds())

    def _write_all(self) -> None:
        """Write what is open, in order; what the server cannot take now is kept."""
        while self._open:
            try:
                self._write(self._open[0])
            except ApiUnreachableError:
                return
            except ApiError as error:
                is_busy = error.status == HTTPStatus.TOO_MANY_REQUESTS
                if is_busy or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    return
            self._open.pop(0)

    def _write(self, change: Change) -> None:
        if isinstance(change, Report):
            self._api.create(change.result)
        elif isinstance(change, StatusChange):
            item = objects.an_object("v1", "Pod", change.name, change.namespace)
            self._api.patch(item, {"status": change.status}, part="status")
        elif isinstance(change, Removal):
            pod = objects.an_object("v1", "Pod", change.name, change.namespace)
            self._api.delete(pod, grace_seconds=0)
