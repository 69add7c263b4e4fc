"""/healthz, /readyz and /metrics of a process, in a thread of their own."""

import io
import logging
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from typing import Any

from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from typing_extensions import override

from kfp_placement_controller.listening import ConnectionLimits, open_port

_LOG = logging.getLogger(__name__)

Check = Callable[[], str]
"""Function that returns what is wrong; "" = nothing."""

LIMITS = ConnectionLimits("probes", most=32, most_per_address=4, new_per_second=50)
"""Limits of the port: a kubelet asks every few seconds, and a Prometheus more rarely."""

MOST_HEAD_BYTES = 2**13
MOST_HEAD_SECONDS = 5.0
MOST_METRICS_PAUSE_SECONDS = 1.0
METRICS_SHARE = 0.1
"""Largest share of the time in which metrics are collected, however often somebody asks."""


class ProbeServer:
    """Answers what kubelet and Prometheus ask."""

    def __init__(self, address: str | None, port: int, healthy: Check, ready: Check) -> None:
        """Open the port; no request is answered yet.

        Args:
            address: address to listen on; None = all of them.
            port: port to listen on; 0 = one that is free.
            healthy: check for what only a restart fixes.
            ready: check for what the process still waits for.

        Raises:
            SettingsError: nobody can listen there, for example since the port is in use.
        """
        listening = open_port(address, port, LIMITS)
        self.port = listening.port
        self._server = _Server(listening, _handler({"/healthz": healthy, "/readyz": ready}))
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="probes", daemon=True
        )

    def start(self) -> None:
        """Start; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port and end the thread."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, listening: socket, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(listening.getsockname(), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        _LOG.debug("a request of %s was not answered", client_address, exc_info=True)


class _Metrics:
    """The text of all metrics; requests at the same time share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._text = b""
        self._begun = self._not_before = 0.0

    def text(self) -> bytes:
        """Return metrics that were collected after this call, or wait until that may begin."""
        asked = time.monotonic()
        with self._lock:
            if self._begun < asked:
                time.sleep(max(self._not_before - time.monotonic(), 0.0))
                self._begun = time.monotonic()
                self._text = generate_latest()
                ended = time.monotonic()
                pause = min((ended - self._begun) / METRICS_SHARE, MOST_METRICS_PAUSE_SECONDS)
                self._not_before = ended + pause
            return self._text


def _handler(checks: dict[str, Check]) -> type[BaseHTTPRequestHandler]:
    metrics = _Metrics()

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        @override
        def handle(self) -> None:
            self.rfile.close()
            self.rfile = io.BytesIO(_head(self.connection))
            self.connection.settimeout(self.timeout)
            super().handle()

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._send(200, metrics.text(), CONTENT_TYPE_LATEST)
            elif path in checks:
                wrong = checks[path]()
                self._send(503 if wrong else 200, f"{wrong or 'ok'}\n".encode(), "text/plain")
            else:
                self._send(404, b"not found\n", "text/plain")

        @override
        def log_message(self, format: str, *args: object) -> None:
            """Probes are not logged."""

        def _send(self, status: int, body: bytes, content_type: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def _head(connection: socket) -> bytes:
    """Return the head of a request, or its beginning if it is too long.

    Raises:
        TimeoutError: it has not come in time.
    """
    head, until = b"", time.monotonic() + MOST_HEAD_SECONDS
    while b"\r\n\r\n" not in head and len(head) < MOST_HEAD_BYTES:
        connection.settimeout(max(until - time.monotonic(), 0.001))
        piece = connection.recv(MOST_HEAD_BYTES - len(head))
        if not piece:
            break
        head += piece
    return head
