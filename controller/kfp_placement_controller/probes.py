"""/healthz, /readyz and /metrics of a process, in a thread of their own."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from typing_extensions import override

from kfp_placement_controller.exceptions import SettingsError

Check = Callable[[], str]
"""Function that returns what is wrong; "" = nothing."""


class ProbeServer:
    """Answers what kubelet and Prometheus ask."""

    def __init__(self, address: str, port: int, healthy: Check, ready: Check) -> None:
        """Open the port; no request is answered yet.

        Args:
            address: address to listen on.
            port: port to listen on; 0 = one that is free.
            healthy: check for what only a restart fixes.
            ready: check for what the process still waits for.

        Raises:
            SettingsError: nobody can listen there, for example since the port is in use.
        """
        handler = _handler({"/healthz": healthy, "/readyz": ready})
        try:
            self._server = ThreadingHTTPServer((address, port), handler)
        except OSError as error:
            raise SettingsError(f"cannot listen on {address}:{port}: {error.strerror}") from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="probes", daemon=True
        )

    @property
    def port(self) -> int:
        """Port that the server listens on."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Start; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port and end the thread."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


def _handler(checks: dict[str, Check]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._send(200, generate_latest(), CONTENT_TYPE_LATEST)
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
