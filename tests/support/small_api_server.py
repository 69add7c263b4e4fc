"""Small API server for tests of whole processes: objects in memory, and scripted watches."""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from kfp_placement_controller import kinds as controller_kinds
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_kube import kinds
from kfp_placement_kube.kinds import JsonObject, Kind

Change = tuple[str, JsonObject]


@dataclass
class SmallApiServer:
    """API server that serves as long as the context lasts, and allows everything.

    It holds what is written to it; a list is always empty.

    Attributes:
        streams: changes that the first watch brings, by the path of its list.
        refused: status of the answer to a list and its watch, by path.
        objects: objects that have been written, by path.
        writes: paths of all writes, in order.
    """

    streams: dict[str, Sequence[Change]] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    objects: dict[str, JsonObject] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Take a port, and serve nothing yet."""
        self.closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.api = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def kubeconfig(self) -> str:
        """Return the text of a kubeconfig that leads here."""
        server = f"http://127.0.0.1:{self._server.server_port}"
        document = {
            "current-context": "here",
            "clusters": [{"name": "here", "cluster": {"server": server}}],
            "users": [{"name": "me", "user": {"token": "secret"}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        }
        return json.dumps(document)

    def write(self, path: str, raw: JsonObject) -> JsonObject:
        """Hold an object, as a new version."""
        self.writes.append(path)
        metadata = {**raw["metadata"], "resourceVersion": str(len(self.writes))}
        self.objects[path.removesuffix("/status")] = {**raw, "metadata": metadata}
        return {**raw, "metadata": metadata}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    api: SmallApiServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        api, parts = self.server.api, urlsplit(self.path)
        if parts.path in api.refused:
            self._send(api.refused[parts.path], _FAILURE)
        elif "watch" in parse_qs(parts.query):
            self._stream(api.streams.pop(parts.path, ()))
        elif _size(parts.path) == 0:
            self._send(200, {"resources": _RESOURCES})
        elif _size(parts.path) in (1, 3):
            self._send(200, {"items": [], "metadata": {"resourceVersion": "1"}})
        else:
            item = api.objects.get(parts.path)
            self._send(404 if item is None else 200, item or _FAILURE)

    def do_POST(self) -> None:
        api, path, body = self.server.api, urlsplit(self.path).path, self._body()
        if path.endswith("/selfsubjectaccessreviews"):
            self._send(201, {**body, "status": {"allowed": True}})
        else:
            self._send(201, api.write(f"{path}/{body['metadata'].get('name', '')}", body))

    def do_PUT(self) -> None:
        self._send(200, self.server.api.write(urlsplit(self.path).path, self._body()))

    def do_PATCH(self) -> None:
        path, patch = urlsplit(self.path).path, self._body()
        old = self.server.api.objects.get(path.removesuffix("/status"), {"metadata": {}})
        metadata = {**old["metadata"], **patch.get("metadata", {})}
        self._send(200, self.server.api.write(path, {**old, **patch, "metadata": metadata}))

    def _body(self) -> JsonObject:
        body: JsonObject = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        return body

    def _send(self, status: int, body: JsonObject) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _stream(self, changes: Sequence[Change]) -> None:
        """Send the changes, and stay open until the server closes."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        for kind, raw in changes:
            line = json.dumps({"type": kind, "object": raw}).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.server.api.closing.wait()


_KINDS = [
    *vars(kinds).values(),
    *vars(controller_kinds).values(),
    *(source.kind for source in DEFAULT_SOURCES),
]
_RESOURCES = [{"name": kind.plural} for kind in _KINDS if isinstance(kind, Kind)]
_FAILURE: JsonObject = {"kind": "Status", "status": "Failure", "message": "made up"}


def _size(path: str) -> int:
    """Return the number of parts behind the version: 1 or 3 name a list, 2 or 4 an object."""
    parts = path.strip("/").split("/")
    return len(parts) - (2 if parts[0] == "api" else 3)
