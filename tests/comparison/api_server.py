"""A stand-in for an API server: answers from objects in memory, and keeps what is written."""

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from tests.comparison.objects import KINDS, Address, JsonObject, Store, read_address

Change = tuple[str, JsonObject]


@dataclass
class ApiServer:
    """Serves as long as the context lasts.

    Attributes:
        store: what there is.
        streams: changes that the first watch of a kind brings, by plural.
        refused: status and message of answers, by how the path begins.
        unserved: plurals of kinds that are not known here.
        writes: what was written, as text, in order.
    """

    store: Store
    streams: Mapping[str, Sequence[Change]] = field(default_factory=dict)
    refused: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    unserved: Iterable[str] = ()
    writes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Listen nowhere yet."""
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self._streamed: set[str] = set()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.api = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def kubeconfig(self, namespace: str = "team-a") -> str:
        """The text of a kubeconfig that leads here."""
        context = {"cluster": "here", "user": "me", "namespace": namespace}
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "here",
                "clusters": [{"name": "here", "cluster": {"server": f"http://{self.address}"}}],
                "users": [{"name": "me", "user": {"token": "secret"}}],
                "contexts": [{"name": "here", "context": context}],
            }
        )

    def changes(self, plural: str) -> Sequence[Change]:
        """What a watch brings; the next one of that kind brings nothing."""
        with self.lock:
            first = plural not in self._streamed
            self._streamed.add(plural)
        return self.streams.get(plural, ()) if first else ()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    api: ApiServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what is asked is no result."""

    def do_GET(self) -> None:
        address, query = self._asked()
        if self._is_refused(address):
            return None
        if not address.api_version:
            return self._send(200, _versions())
        if not address.plural:
            return self._send(200, _resources(address, self.server.api.unserved))
        if address.name:
            found = self.server.api.store.get(address)
            return self._send(404, _missing(address)) if found is None else self._send(200, found)
        if query.get("watch"):
            return self._stream(address, query)
        accept = self.headers.get("Accept", "")
        return self._send(200, self.server.api.store.page(address, query, accept))

    def do_POST(self) -> None:
        address, query = self._asked()
        body = json.loads(self._body())
        if address.plural == "selfsubjectaccessreviews":
            return self._send(201, {**body, "status": {"allowed": True}})
        if self._is_refused(address):
            return None
        self._keep(body)
        name = (body.get("metadata") or {}).get("name", "")
        target = address.named(name)
        with self.server.api.lock:
            if self.server.api.store.get(target) is not None:
                return self._send(409, _status(409, f'{address.plural} "{name}" already exists'))
            if query.get("dryRun") != "All":
                self.server.api.store.put(target, body)
        return self._send(201, body)

    def do_PUT(self) -> None:
        self._change(lambda _, body: body)

    def do_PATCH(self) -> None:
        json_patch = "json-patch" in self.headers.get("Content-Type", "")
        self._change(_patched if json_patch else _merged)

    def _change(self, change: Any) -> None:
        address, query = self._asked()
        body = json.loads(self._body())
        if self._is_refused(address):
            return None
        self._keep(body)
        store = self.server.api.store
        with self.server.api.lock:
            old = store.get(address)
            if old is None:
                return self._send(404, _missing(address))
            version = old["metadata"].get("resourceVersion")
            if isinstance(body, dict):
                wanted = (body.get("metadata") or {}).get("resourceVersion")
                if wanted not in (None, version):
                    return self._send(409, _status(409, "the object has been modified"))
            new = change(old, body)
            if query.get("dryRun") != "All":
                store.put(address, new)
        return self._send(200, new)

    def _asked(self) -> tuple[Address, dict[str, str]]:
        parts = urlsplit(self.path)
        return read_address(parts.path), dict(parse_qsl(parts.query))

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _keep(self, body: Any) -> None:
        kind = self.headers.get("Content-Type", "")
        text = f"{self.command} {self.path} {kind}\n{json.dumps(body, indent=1, sort_keys=True)}"
        self.server.api.writes.append(text)

    def _is_refused(self, address: Address) -> bool:
        path = urlsplit(self.path).path
        for start, (status, message) in self.server.api.refused.items():
            if path.startswith(start):
                self._send(status, _status(status, message))
                return True
        known = address.plural in KINDS and address.plural not in self.server.api.unserved
        if address.plural and not known:
            message = "the server could not find the requested resource"
            self._send(404, _status(404, message))
            return True
        return False

    def _send(self, status: int, body: JsonObject) -> None:
        send_json(self, status, body)

    def _stream(self, address: Address, query: Mapping[str, str]) -> None:
        """The scripted changes; then it stays open until the server closes."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        for kind, raw in self.server.api.changes(address.plural):
            if kind in ("ERROR", "BOOKMARK") or self.server.api.store.selects(address, query, raw):
                line = json.dumps({"type": kind, "object": raw}).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.server.api.closing.wait()


def send_json(handler: BaseHTTPRequestHandler, status: int, body: object) -> None:
    """Answer a request with an object as JSON."""
    text = json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(text)))
    handler.end_headers()
    handler.wfile.write(text)


def _versions() -> JsonObject:
    """What all groups have, the old one among them: a client reads its part."""
    groups = []
    for api_version in sorted({kind.api_version for kind in KINDS.values()} - {"v1"}):
        name, _, version = api_version.partition("/")
        served = {"groupVersion": api_version, "version": version}
        groups.append({"name": name, "versions": [served], "preferredVersion": served})
    return {"versions": ["v1"], "groups": groups}


def _resources(address: Address, unserved: Iterable[str]) -> JsonObject:
    found = [
        {
            "name": plural,
            "singularName": kind.kind.lower(),
            "kind": kind.kind,
            "namespaced": kind.namespaced,
            "verbs": ["get", "list", "watch", "create", "patch", "update"],
        }
        for plural, kind in KINDS.items()
        if plural not in unserved
        and (kind.api_version == address.api_version or _is_newer(plural, address))
    ]
    return {"kind": "APIResourceList", "groupVersion": address.api_version, "resources": found}


def _is_newer(plural: str, address: Address) -> bool:
    """Events have a group of their own beside the old one."""
    return plural == "events" and address.api_version.startswith("events.k8s.io/")


def _missing(address: Address) -> JsonObject:
    return _status(404, f'{address.plural} "{address.name}" not found')


def _status(code: int, message: str) -> JsonObject:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "code": code,
    }


def _merged(old: JsonObject, patch: Any) -> JsonObject:
    """A merge patch applied."""
    new = dict(old)
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        elif isinstance(value, dict) and isinstance(new.get(key, {}), dict):
            new[key] = _merged(new.get(key, {}), value)
        else:
            new[key] = value
    return new


def _patched(old: JsonObject, operations: Any) -> JsonObject:
    """A JSON patch of objects and whole lists applied."""
    new: JsonObject = json.loads(json.dumps(old))
    for operation in operations:
        *path, last = operation["path"].removeprefix("/").split("/")
        target: Any = new
        for part in path:
            target = target[int(part) if isinstance(target, list) else part]
        key = int(last) if isinstance(target, list) and last != "-" else last
        if operation["op"] == "remove":
            del target[key]
        elif operation["op"] in ("add", "replace"):
            if isinstance(target, list) and operation["op"] == "add":
                target.insert(len(target) if key == "-" else key, operation["value"])
            else:
                target[key] = operation["value"]
    return new
