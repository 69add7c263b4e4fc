"""A way to an API server on which requests fail, before or after the server has done them."""

import contextlib
import http.client
import random
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

_PIECE_BYTES = 2**16
_BREAKS_PER_FAULT = 0.25
"""Share of the events of a watch with which it breaks, as a part of the share of faults."""

_HOP_HEADERS = ("transfer-encoding", "content-length", "connection", "keep-alive")
"""Headers that say something of one connection, and nothing of the next one."""


class Fault(Enum):
    """The outcome of a request that fails."""

    REFUSED = "not done"
    LOST = "done, without an answer"


class FaultyProxy:
    """An HTTPS proxy before an API server, with the server's certificate and a port of its own.

    Attributes:
        port: the port.
        writes: number of writes that failed, by fault.
    """

    def __init__(self, server_port: int, folder: Path, seed: int = 1) -> None:
        """Take a port.

        Args:
            server_port: port of the API server on this machine.
            folder: folder of the control plane, with the server's key and certificates.
            seed: seed that decides which requests fail.
        """
        self.server_port = server_port
        self.trust = ssl.create_default_context(cafile=folder / "ca.crt")
        self.writes: Counter[Fault] = Counter()
        self._random, self._share = random.Random(seed), 0.0
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(folder / "kube-apiserver.crt", folder / "kube-apiserver.key")
        self._server = _Server(("127.0.0.1", 0), _Connection)
        self._server.proxy = self
        # The thread of each connection makes the handshake, with its first read.
        self._server.socket = serving.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @contextlib.contextmanager
    def failing(self, share: float) -> Iterator[None]:
        """Let this share of the requests fail, one half refused and one half lost."""
        self._share = share
        try:
            yield
        finally:
            self._share = 0.0

    def fault(self, method: str) -> Fault | None:
        """Return the fault of a request; None = none."""
        drawn = self._random.random()
        if drawn >= self._share:
            return None
        fault = Fault.REFUSED if drawn < self._share / 2 else Fault.LOST
        self.writes[fault] += method != "GET"
        return fault

    def breaks(self) -> bool:
        """Return whether an answer breaks off before its next piece."""
        return self._random.random() < self._share * _BREAKS_PER_FAULT


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    proxy: FaultyProxy

    def handle_error(self, *_: Any) -> None:
        """Say nothing: connections are meant to break."""


class _Connection(BaseHTTPRequestHandler):
    """One connection, whose requests are passed on one after another."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def _pass_on(self) -> None:
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = proxy.fault(self.command)
        if fault is Fault.REFUSED:
            self.send_response(500)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        server = http.client.HTTPSConnection("127.0.0.1", proxy.server_port, context=proxy.trust)
        with contextlib.closing(server):
            headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP_HEADERS}
            server.request(self.command, self.path, body or None, headers)
            answer = server.getresponse()
            if fault is Fault.LOST:
                self.close_connection = True
            else:
                self._relay(answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass_on  # noqa: N815

    def _relay(self, answer: http.client.HTTPResponse) -> None:
        """Send an answer piece by piece, as it comes."""
        self.send_response(answer.status)
        for key, value in answer.getheaders():
            if key.lower() not in _HOP_HEADERS:
                self.send_header(key, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while piece := answer.read1(_PIECE_BYTES):
            if self.server.proxy.breaks():
                self.close_connection = True
                return
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
