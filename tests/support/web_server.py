"""A web server on this machine, for what fetches files from strangers."""

import contextlib
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from tests.controlplane.certificates import KeyPair

Answer = Callable[[BaseHTTPRequestHandler], None]


class Answers(Protocol):
    """Answers by path, such as a dictionary of them."""

    def get(self, path: str, /) -> Answer | None:
        """The answer to requests of that path; None = there is no such path."""


def sending(body: bytes, *, status: int = 200, reason: str | None = None, **headers: str) -> Answer:
    """Answers with that body; underscores in names of headers are dashes."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status, reason)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    return answer


@contextmanager
def web_server(
    answers: Answers,
    pair: KeyPair | None = None,
    context: ssl.SSLContext | None = None,
) -> Iterator[str]:
    """Serves those paths, 404 for others; yields the address without a path.

    Args:
        answers: answers by path.
        pair: the server's certificate, for https.
        context: context that serves https, in place of the certificate.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(self.path.partition("?")[0])
            # Who asked may have gone.
            with contextlib.suppress(ConnectionError):
                (answer or sending(b"", status=404))(self)

        def do_POST(self) -> None:
            self.posted = self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, format: str, *arguments: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if pair is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
