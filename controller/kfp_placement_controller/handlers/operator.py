"""Thread in which kopf follows Kueue's kinds, while we lead and a RunQueue asks for Kueue."""

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

import kopf

from kfp_placement_kube.configuration import Configuration

Registration = Callable[[kopf.OperatorRegistry], None]
"""Function that adds handlers to the registry of a new operator."""


@dataclass(eq=False)
class OperatorThread:
    """A kopf operator in a thread of its own, which can be started and stopped any number of times.

    Its handlers see events only: kopf writes nothing into objects, neither finalizers nor
    annotations.

    Attributes:
        load: function that reads the address of the API server and our credentials.
        identity: name of this process. kopf would make one from the name of the user, and a pod
            has none.
        register: function that adds handlers to the operator's registry, again at every start.
    """

    load: Callable[[], Configuration]
    identity: str
    register: Registration

    def __post_init__(self) -> None:
        """Prepare the operator without starting it."""
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, which must not run yet, and return at once."""
        self._stopping.clear()
        self._thread = threading.Thread(target=self._work, name="kopf", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread if it was started, and return when it has ended.

        There is no time limit: if kopf hangs, so does the caller, and the process is restarted.
        """
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def alive(self) -> bool:
        """Return whether the thread works, or was not started."""
        thread = self._thread  # Probes ask in threads of their own, while `stop` clears it.
        return thread is None or self._stopping.is_set() or thread.is_alive()

    def _work(self) -> None:
        # kopf writes a line for every event, which is too much.
        logging.getLogger("kopf").setLevel(logging.WARNING)
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
        settings.scanning.disabled = True
        registry = kopf.OperatorRegistry()
        self.register(registry)
        kopf.on.login(registry=registry)(lambda **_: _connection(self.load()))
        operator = kopf.operator(
            registry=registry,
            settings=settings,
            standalone=True,
            clusterwide=True,
            identity=self.identity,  # type: ignore[arg-type] # Its own kind of text, not exported.
            stop_flag=self._stopping,
        )
        asyncio.run(operator)


def _connection(configuration: Configuration) -> kopf.ConnectionInfo:
    """Return the API server and our credentials in kopf's form."""
    scheme, _, token = (configuration.authorization() or "").partition(" ")
    return kopf.ConnectionInfo(
        server=configuration.server,
        ca_path=configuration.authority_file,
        insecure=not configuration.verifies_server,
        scheme=scheme or None,
        token=token or None,
        certificate_path=configuration.certificate_file,
        private_key_path=configuration.key_file,
    )
