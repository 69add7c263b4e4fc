"""A live cluster as its API server shows it: plain dicts in and out, errors of ours.

The only module that imports the Kubernetes client, and of that only what reads a kubeconfig and
sets up connections: its models take too much memory and drop what they do not know.
"""

import json
import os
import socket
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

import urllib3
import yaml
from kubernetes import config
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject

from kfp_placement._api_answers import Answers
from kfp_placement._kubeconfig import choose_context, default_kubeconfigs, kubeconfig_source
from kfp_placement.live.exceptions import (
    ClusterConflictError,
    ClusterError,
    ClusterExpiredError,
    ClusterForbiddenError,
    ClusterMissingError,
)

JsonObject = dict[str, Any]

PAGE_SIZE = 250
"""Objects asked for at a time."""

_CONNECT_SECONDS = 10.0
_SILENCE_SECONDS = 60.0
_WATCH_SILENCE_SECONDS = 150.0
"""A bookmark comes every minute or so; a watch that is silent for longer is dead."""

# What the official client's reader raises on files of another form.
_UNUSABLE = (
    config.ConfigException,
    yaml.YAMLError,
    OSError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
)

_IN_CLUSTER_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_USER_AGENT = f"kfp-placement/{version('kfp-placement')}"
_KEEP_ALIVE = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
_ERRORS: Mapping[int, type[ClusterError]] = {
    HTTPStatus.UNAUTHORIZED: ClusterForbiddenError,
    HTTPStatus.FORBIDDEN: ClusterForbiddenError,
    HTTPStatus.NOT_FOUND: ClusterMissingError,
    HTTPStatus.CONFLICT: ClusterConflictError,
    HTTPStatus.GONE: ClusterExpiredError,
}


class Access(NamedTuple):
    """How to get to a cluster.

    Attributes:
        configuration: of the official client.
        namespace: the one that is meant where none is named.
        source: where this comes from, for messages.
    """

    configuration: Configuration
    namespace: str
    source: str


class LiveCluster:
    """One API server as one account; safe to use from several threads.

    Attributes:
        namespace: the one that is meant where none is named.
    """

    def __init__(self, access: Access) -> None:
        """Open nothing yet."""
        self._access = access
        self._answers = Answers(str(access.configuration.host), access.source)
        self._pool = _pool(access.configuration)
        self.namespace = access.namespace

    @classmethod
    def connect(cls, kubeconfig: Path | None = None, context: str | None = None) -> Self:
        """The cluster that kubectl would talk to; nothing is sent yet.

        Args:
            kubeconfig: file; None = `KUBECONFIG`, else `~/.kube/config`, else, within a pod, its
                account.
            context: by name; None = the current one.

        Raises:
            ClusterMissingError: there is no such file or context.
            ClusterError: the file cannot be used.
        """
        return cls(_access(kubeconfig, context))

    def get(self, path: str, query: Mapping[str, str] | None = None) -> JsonObject:
        """What is at a path.

        Raises:
            ClusterError: refused, or no answer.
        """
        return self._ask("GET", path, query)

    def list(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        page_size: int = PAGE_SIZE,
        accept: str = "application/json",
    ) -> Iterator[JsonObject]:
        """The pages of a list, as they are asked for.

        Raises:
            ClusterError: refused, or no answer.
        """
        further = ""
        while True:
            asked = {**(query or {}), "limit": str(page_size), "continue": further}
            page = self._ask("GET", path, asked, accept=accept)
            yield page
            further = str((page.get("metadata") or {}).get("continue") or "")
            if not further:
                return

    def create(self, path: str, body: object, *, dry_run: bool = False) -> JsonObject:
        """Create an object.

        Raises:
            ClusterError: refused, or no answer.
        """
        return self._ask("POST", path, _dry(dry_run), body)

    def patch(self, path: str, merge_patch: object, *, dry_run: bool = False) -> JsonObject:
        """Change an object by a merge patch.

        Raises:
            ClusterError: refused, or no answer.
        """
        content = "application/merge-patch+json"
        return self._ask("PATCH", path, _dry(dry_run), merge_patch, content_type=content)

    def stream(self, path: str, query: Mapping[str, str]) -> Iterator[tuple[str, JsonObject]]:
        """Changes as they happen: ADDED, MODIFIED, DELETED or BOOKMARK, and the object.

        Ends when the server ends it, which it does after some minutes.

        Raises:
            ClusterError: refused, or the connection broke.
        """
        asked = {**query, "watch": "true", "allowWatchBookmarks": "true"}
        response = self._send("GET", path, asked, silence_seconds=_WATCH_SILENCE_SECONDS)
        try:
            for line in self._answers.lines(response):
                event = self._answers.parsed(line)
                kind, item = str(event.get("type")), event.get("object")
                if not isinstance(item, dict):
                    raise self._answers.garbled("a change without an object")
                if kind == "ERROR":
                    raise self._refusal(int(item.get("code") or 0), item)
                yield kind, item
        finally:
            response.close()

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: object = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> JsonObject:
        response = self._send(method, path, query or {}, body, content_type, accept)
        return self._answers.parsed(self._answers.body(response))

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: object = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        *,
        silence_seconds: float = _SILENCE_SECONDS,
    ) -> urllib3.BaseHTTPResponse:
        configuration = self._access.configuration
        given = {key: value for key, value in query.items() if value}
        url = f"{configuration.host}{path}{'?' if given else ''}{urlencode(given)}"
        headers = {"Accept": accept, "User-Agent": _USER_AGENT}
        authorization = configuration.get_api_key_with_prefix("authorization")
        if authorization:
            headers["Authorization"] = authorization
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            response = self._pool.request(
                method,
                url,
                body=None if body is None else json.dumps(body).encode(),
                headers=headers,
                timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=silence_seconds),
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise self._answers.none(error) from error
        if response.status >= HTTPStatus.BAD_REQUEST:
            text = self._answers.body(response)
            try:
                answer = self._answers.parsed(text)
            except ClusterError:
                answer = {"message": text[:300].decode(errors="replace")}
            raise self._refusal(response.status, answer)
        return response

    def _refusal(self, status: int, answer: Mapping[str, Any]) -> ClusterError:
        message = str(answer.get("message") or "refused").strip()[:1000]
        if status == HTTPStatus.UNAUTHORIZED:
            message = (
                f"{self._answers.server} does not know the account of"
                f" {self._access.source}; log in again, or name another one with --context"
            )
        elif status == HTTPStatus.FORBIDDEN:
            message += "; ask whoever manages the cluster for that right"
        return _ERRORS.get(status, ClusterError)(message)


def _access(kubeconfig: Path | None, context: str | None) -> Access:
    configuration = Configuration()
    if kubeconfig is None and context is None and not default_kubeconfigs() and _in_pod():
        try:
            config.load_incluster_config(configuration)
            namespace = _IN_CLUSTER_NAMESPACE.read_text("utf-8").strip()
        except (config.ConfigException, OSError, ValueError) as error:
            raise ClusterError(f"the pod's service account cannot be used: {error}") from error
        return Access(configuration, namespace or "default", "the pod's service account")
    origin = kubeconfig_source(kubeconfig)
    file = None if kubeconfig is None else str(kubeconfig)
    try:
        contexts, active = config.list_kube_config_contexts(file)
        chosen = choose_context(contexts, active, context, origin)
        config.load_kube_config(
            file, context=chosen["name"], client_configuration=configuration, persist_config=False
        )
    except _UNUSABLE as error:
        raise ClusterError(f"{origin}: no usable kubeconfig: {_what_is_wrong(error)}") from error
    own = (chosen.get("context") or {}).get("namespace")
    return Access(configuration, str(own or "default"), f"context {chosen['name']}")


def _what_is_wrong(error: Exception) -> str:
    """A sentence; what the official client's reader stumbles over says nothing to people."""
    if isinstance(error, config.ConfigException | OSError):
        return f"{error!s:.300}"
    if isinstance(error, yaml.YAMLError | UnicodeError):
        return f"no YAML: {' '.join(str(error).split()):.300}"
    return "it must be a mapping with contexts, clusters and users, as kubectl writes it"


def _in_pod() -> bool:
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and _IN_CLUSTER_NAMESPACE.is_file()


def _pool(configuration: Configuration) -> urllib3.PoolManager:
    pool: urllib3.PoolManager = RESTClientObject(configuration).pool_manager
    usual = urllib3.connection.HTTPConnection.default_socket_options
    pool.connection_pool_kw["socket_options"] = [*usual, *_KEEP_ALIVE]
    return pool


def _dry(dry_run: bool) -> Mapping[str, str]:
    return {"dryRun": "All"} if dry_run else {}
