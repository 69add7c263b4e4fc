"""The thread in which kopf works, for as long as this process leads."""

import asyncio
import logging
import threading
from collections.abc import Callable

import kopf

from kfp_placement_kube.configuration import Configuration

STOP_SECONDS = 10.0
"""How long kopf may take to end."""

Registration = Callable[[kopf.OperatorRegistry], None]


class OperatorThread:
    """Starts and stops kopf, any number of times.

    Handlers see events only: nothing is written into objects, neither finalizers nor annotations.
    """

    def __init__(
        self,
        load: Callable[[], Configuration],
        identity: str,
        register: Registration,
    ) -> None:
        """Nothing is started yet.

        Args:
            load: reads where the API server is and who asks.
            identity: of this process. kopf would make one of the user's name, which a pod has not.
            register: adds handlers to the operator's registry, again at every start.
        """
        self._load = load
        self._identity = identity
        self._register = register
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start; returns at once."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="kopf", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it if it has been started; returns when it has."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)
            self._thread = None

    def alive(self) -> bool:
        """Whether it works, or need not."""
        return self._thread is None or self._thread.is_alive()

    def _work(self) -> None:
        # A line for every event is too much.
        logging.getLogger("kopf").setLevel(logging.WARNING)
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
        settings.scanning.disabled = True
        registry = kopf.OperatorRegistry()
        self._register(registry)
        kopf.on.login(registry=registry)(lambda **_: _connection(self._load()))
        operator = kopf.operator(
            registry=registry,
            settings=settings,
            standalone=True,
            clusterwide=True,
            identity=self._identity,  # type: ignore[arg-type] # Its own kind of text, not exported.
            stop_flag=self._stopping,
        )
        asyncio.run(operator)


def _connection(configuration: Configuration) -> kopf.ConnectionInfo:
    """The API server and the account, as kopf takes them."""
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
