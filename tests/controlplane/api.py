"""A small client of the API server: any kind, any version, plain dicts.

The official client that KFP allows is too old for what 1.36 serves (MutatingAdmissionPolicy, for
one), and its typed objects drop what they do not know.
"""

import contextlib
import http.client
import json
import ssl
import urllib.parse
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kfp_placement_kube.json_text import read_json
from tests.controlplane.exceptions import ApiError, ApiUnreachableError
from tests.controlplane.objects import JsonObject

Listed = tuple[list[JsonObject], str]
"""Objects, and the version from which a watch shows all that happens afterwards."""

_PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
_FIELD_MANAGER = "kfp-placement-test"
_TIMEOUT_SECONDS = 30.0
_GONE = (ConnectionError, http.client.RemoteDisconnected, ssl.SSLEOFError)
"""Errors of a connection that the server has closed meanwhile."""


class Api:
    """The API server as one user sees it.

    Attributes:
        address: the server's address.
    """

    def __init__(self, address: str, authority: Path, token: str) -> None:
        """Open nothing yet; connections are kept for the next requests, each for one at a time.

        Args:
            address: the server's address, `https://host:port`.
            authority: certificate of the authority that the server's is checked by.
            token: token of the user who calls; empty = nobody.
        """
        self.address = address
        self._authority = authority
        self._token = token
        self._host = address.removeprefix("https://")
        self._ssl = ssl.create_default_context(cafile=authority)
        self._resources: dict[tuple[str, str], tuple[str, bool]] = {}
        # A list's own operations are atomic: no lock.
        self._idle: list[http.client.HTTPSConnection] = []
        weakref.finalize(self, _close_all, self._idle)

    def acting_as(self, token: str) -> "Api":
        """Return this server as another user sees it."""
        return Api(self.address, self._authority, token)

    def get(
        self, api_version: str, kind: str, name: str, namespace: str | None = None
    ) -> JsonObject:
        """One object.

        Raises:
            ApiError: there is none (404), or it may not be read.
        """
        return self.request("GET", self.path(api_version, kind, namespace, name))

    def find(
        self, api_version: str, kind: str, name: str, namespace: str | None = None
    ) -> JsonObject | None:
        """One object, or None if there is none."""
        try:
            return self.get(api_version, kind, name, namespace)
        except ApiError as error:
            if error.status == http.HTTPStatus.NOT_FOUND:
                return None
            raise

    def list(
        self, api_version: str, kind: str, namespace: str | None = None, **query: str
    ) -> list[JsonObject]:
        """Return all objects of a kind, of one namespace or of all.

        Args:
            api_version: group and version.
            kind: the kind.
            namespace: namespace of the objects; None = all.
            query: parameters such as `labelSelector`.
        """
        return self.list_with_version(api_version, kind, namespace, **query)[0]

    def list_with_version(
        self, api_version: str, kind: str, namespace: str | None = None, **query: str
    ) -> Listed:
        """Return what `list` does, and the version of the list."""
        answer = self.request("GET", self.path(api_version, kind, namespace), query=query)
        items: list[JsonObject] = answer["items"]
        # The items of a list do not say what they are.
        whole = [{"apiVersion": api_version, "kind": kind, **item} for item in items]
        return whole, answer["metadata"]["resourceVersion"]

    def create(self, item: Mapping[str, Any], **query: str) -> JsonObject:
        """Create an object, and return it as the server keeps it."""
        meta = item["metadata"]
        path = self.path(item["apiVersion"], item["kind"], meta.get("namespace"))
        return self.request("POST", path, item, query=query)

    def replace(self, item: Mapping[str, Any], part: str = "") -> JsonObject:
        """Write an object, which must be there, or a part of it such as `status`."""
        return self.request("PUT", self._path_of(item, part), item)

    def patch(
        self, item: Mapping[str, Any], patch: Any, how: str = "merge", part: str = "", **query: str
    ) -> JsonObject:
        """Change an object.

        Args:
            item: the object; only kind, name and namespace are looked at.
            patch: merge patch with the changes.
            how: `merge`, `strategic`, `json`, or `apply` (server-side, with force).
            part: a part such as `status`.
            query: parameters such as `dryRun`.
        """
        if how == "apply":
            query = {"fieldManager": _FIELD_MANAGER, "force": "true", **query}
        path = self._path_of(item, part)
        return self.request("PATCH", path, patch, query=query, content_type=_PATCH_TYPES[how])

    def delete(self, item: Mapping[str, Any], grace_seconds: int | None = None) -> None:
        """Delete an object; one that is gone already is no error."""
        options: JsonObject = {"propagationPolicy": "Background"}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        try:
            self.request("DELETE", self._path_of(item), options)
        except ApiError as error:
            if error.status != http.HTTPStatus.NOT_FOUND:
                raise

    def watch(
        self, api_version: str, kind: str, namespace: str | None = None, **query: str
    ) -> Iterator[tuple[str, JsonObject]]:
        """Changes of a kind as they happen: ADDED, MODIFIED, DELETED, and the object.

        Args:
            api_version: group and version.
            kind: the kind.
            namespace: namespace of the objects; None = all.
            query: parameters such as `resourceVersion`; without one, what there is comes first.

        Raises:
            ApiError: the server refused.
            ApiUnreachableError: it did not answer, or nothing came for a while.
        """
        path = self.path(api_version, kind, namespace)
        with self._response("GET", path, query={"watch": "true", **query}) as response:
            if response.status >= http.HTTPStatus.BAD_REQUEST:
                _answer(response.status, response.read())
            for line in response:
                event = read_json(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise ApiError(status["code"], status["reason"], status["message"])
                yield event["type"], event["object"]

    def path(
        self, api_version: str, kind: str, namespace: str | None = None, name: str | None = None
    ) -> str:
        """Return the path at which the server keeps objects of a kind.

        Raises:
            ApiError: it knows no such kind.
        """
        plural, namespaced = self._resource(api_version, kind)
        parts = [_group(api_version)]
        if namespaced and namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(plural)
        if name is not None:
            parts.append(urllib.parse.quote(name, safe=""))
        return "/".join(parts)

    def request(self, method: str, path: str, body: Any = None, **how: Any) -> Any:
        """One request.

        Args:
            method: GET, POST and so on.
            path: path from the root of the server.
            body: object to send as JSON, or bytes to send as they are.
            how: `query`: parameters; `content_type` of the body; `accept`: what is asked for.

        Returns:
            The answer: parsed if it is JSON, else text.

        Raises:
            ApiError: the server refused.
            ApiUnreachableError: it did not answer.
        """
        with self._response(method, path, body, **how) as response:
            return _answer(response.status, response.read())

    @contextlib.contextmanager
    def _response(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Iterator[http.client.HTTPResponse]:
        if query:
            path = f"{path}?{urllib.parse.urlencode(query)}"
        headers = {"Accept": accept, "Content-Type": content_type}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        try:
            connection, response = self._sent(method, path, body, headers)
        except (OSError, http.client.HTTPException) as error:
            raise ApiUnreachableError(f"{method} {self.address}{path}: {error!r}") from error
        try:
            with response:
                yield response
                # Of a watch that was left the rest is still to come.
                reusable = response.isclosed() and not response.will_close
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise ApiUnreachableError(f"{method} {self.address}{path}: {error!r}") from error
        except BaseException:
            connection.close()
            raise
        if reusable:
            self._idle.append(connection)
        else:
            connection.close()

    def _sent(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPSConnection, http.client.HTTPResponse]:
        """Send a request by a connection that was kept, if the server has kept it too."""
        while self._idle:
            with contextlib.suppress(IndexError, *_GONE):
                return _exchange(self._idle.pop(), method, path, body, headers)
        connection = http.client.HTTPSConnection(
            self._host, context=self._ssl, timeout=_TIMEOUT_SECONDS
        )
        return _exchange(connection, method, path, body, headers)

    def _path_of(self, item: Mapping[str, Any], part: str = "") -> str:
        meta = item["metadata"]
        path = self.path(item["apiVersion"], item["kind"], meta.get("namespace"), meta["name"])
        return f"{path}/{part}" if part else path

    def _resource(self, api_version: str, kind: str) -> tuple[str, bool]:
        if (api_version, kind) not in self._resources:
            resources = self.request("GET", _group(api_version))["resources"]
            for row in resources:
                if "/" not in row["name"]:
                    self._resources[api_version, row["kind"]] = (row["name"], row["namespaced"])
        if (api_version, kind) not in self._resources:
            raise ApiError(404, "NotFound", f"the server serves no {kind} in {api_version}")
        return self._resources[api_version, kind]


def _exchange(
    connection: http.client.HTTPSConnection,
    method: str,
    path: str,
    body: bytes | None,
    headers: Mapping[str, str],
) -> tuple[http.client.HTTPSConnection, http.client.HTTPResponse]:
    try:
        connection.request(method, path, body, dict(headers))
        return connection, connection.getresponse()
    except BaseException:
        connection.close()
        raise


def _close_all(connections: list[http.client.HTTPSConnection]) -> None:
    for connection in connections:
        connection.close()


def _group(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _answer(status: int, received: bytes) -> Any:
    text = received.decode()
    try:
        answer = read_json(received)
    except ValueError:
        answer = text
    if status < http.HTTPStatus.BAD_REQUEST:
        return answer
    if isinstance(answer, dict):
        raise ApiError(status, answer.get("reason", ""), answer.get("message", ""))
    raise ApiError(status, "", text)
