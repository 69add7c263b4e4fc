"""Threads that take gates off, those of all namespaces in turn, so that the planner waits for none.

Anybody may make hundreds of pods with our gate; each costs two requests.
"""

import logging
import threading
from dataclasses import dataclass
from functools import partial

from kfp_placement_controller.actuators.gates import open_gate
from kfp_placement_controller.metrics import GATES_OPENED
from kfp_placement_controller.planning.gates import OpenGate
from kfp_placement_controller.warning_log import WarningLog
from kfp_placement_engine.contract.gates import Pin
from kfp_placement_engine.exceptions import InputError
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.exceptions import KubernetesError
from kfp_placement_kube.in_turn import InTurn

_LOG = logging.getLogger(__name__)

_STOP_SECONDS = 2.0


@dataclass(eq=False)
class GateWorkers:
    """A few threads that take gates off.

    Attributes:
        client: the API server, with connections of these threads' own.
        threads: number of threads.
    """

    client: KubeClient
    threads: int = 4

    def __post_init__(self) -> None:
        """Prepare the threads without starting them."""
        self._warnings = WarningLog(__name__)
        self._gates: InTurn[OpenGate] = InTurn()
        self._uids: set[str] = set()
        self._changed = threading.Condition()
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._work, name=f"gates-{number}", daemon=True)
            for number in range(self.threads)
        ]

    def start(self) -> None:
        """Start; returns at once."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads, unless they wait for somebody: then the process ends without them."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(_STOP_SECONDS)

    def alive(self) -> bool:
        """Return whether all threads work."""
        return all(thread.is_alive() for thread in self._threads)

    def submit(self, gate: OpenGate) -> None:
        """Let a gate be taken off soon, unless it waits already; returns at once."""
        with self._changed:
            if gate.pod.uid not in self._uids:
                self._uids.add(gate.pod.uid)
                self._gates.put(gate.pod.namespace, gate)
                self._changed.notify()

    def _next(self) -> OpenGate | None:
        """Wait for a gate; None = the threads must end."""
        with self._changed:
            while not self._stopping:
                gate = self._gates.take()
                if gate is not None:
                    self._uids.discard(gate.pod.uid)
                    return gate
                self._changed.wait()
        return None

    def _work(self) -> None:
        while (gate := self._next()) is not None:
            turn = partial(self._open, gate)
            self._warnings.take_turn("some gates come off at their deadline only", turn)

    def _open(self, gate: OpenGate) -> None:
        """Take a gate off; if that fails, the coordinator decides it again."""
        pod = gate.pod
        pin = Pin(gate.node, gate.hosts) if gate.node or gate.hosts else None
        try:
            if open_gate(self.client, pod.namespace, pod.name, pod.uid, pin):
                GATES_OPENED.labels(str(gate.cause)).inc()
        except (KubernetesError, InputError) as error:
            _LOG.warning("OpenGate: %s", error)
