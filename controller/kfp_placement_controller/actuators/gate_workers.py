"""Threads that take gates off, those of all namespaces in turn, so that the planner waits for none.

Anybody may make hundreds of pods with our gate; each costs two requests.
"""

import logging
import threading
from functools import partial

from typing_extensions import override

from kfp_placement_controller.actuators.gates import open_gate
from kfp_placement_controller.actuators.worker import Worker
from kfp_placement_controller.metrics import GATES_OPENED
from kfp_placement_controller.planning.gates import OpenGate
from kfp_placement_controller.warning_log import WarningLog
from kfp_placement_engine.contract.gates import Pin
from kfp_placement_engine.exceptions import InputError
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.exceptions import KubernetesError
from kfp_placement_kube.in_turn import InTurn

_LOG = logging.getLogger(__name__)


class GateWorkers(Worker[OpenGate, None]):
    """A few threads that take gates off."""

    def __init__(self, client: KubeClient, threads: int = 4) -> None:
        """Prepare the threads without starting them.

        Args:
            client: the API server, with connections of these threads' own.
            threads: number of threads.
        """
        super().__init__("gates", self._open_next, lambda _: None, threads=threads)
        self._client = client
        self._warnings = WarningLog(__name__)
        self._lock = threading.Lock()
        self._gates: InTurn[OpenGate] = InTurn()
        self._uids: set[str] = set()

    @override
    def stop(self) -> None:
        """End the threads, and leave gates that still wait to the next leader."""
        with self._lock:
            self._gates = InTurn()
        super().stop()

    @override
    def submit(self, task: OpenGate) -> None:
        """Let a gate be taken off soon, unless it waits already; returns at once."""
        with self._lock:
            if task.pod.uid in self._uids:
                return
            self._uids.add(task.pod.uid)
            self._gates.put(task.pod.namespace, task)
        super().submit(task)

    def _open_next(self, _: OpenGate) -> None:
        """Take off the gate whose turn it is, whichever was submitted."""
        with self._lock:
            gate = self._gates.take()
            if gate is None:
                return
            self._uids.discard(gate.pod.uid)
        turn = partial(self._open, gate)
        self._warnings.take_turn("some gates come off at their deadline only", turn)

    def _open(self, gate: OpenGate) -> None:
        """Take a gate off; if that fails, the coordinator decides it again."""
        pod = gate.pod
        pin = Pin(gate.node, gate.hosts) if gate.node or gate.hosts else None
        try:
            if open_gate(self._client, pod.namespace, pod.name, pod.uid, pin):
                GATES_OPENED.labels(str(gate.cause)).inc()
        except (KubernetesError, InputError) as error:
            _LOG.warning("OpenGate: %s", error)
