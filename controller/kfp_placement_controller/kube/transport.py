"""HTTP to the API server by the official client's configuration and pool, bytes in and out."""

import re
import socket
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlencode

import urllib3
import yaml
from kubernetes import config
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject

from kfp_placement_controller.exceptions import SettingsError, UnreachableError

CONNECT_TIMEOUT_SECONDS = 10.0
CONNECTIONS = 32
"""Kept open at most: a stream per watched kind, and a few requests at a time."""

_USER_AGENT = f"kfp-placement-controller/{version('kfp-placement-controller')}"

# A peer that vanished without a word is noticed after 30 s, also while a watch waits for news.
_KEEP_ALIVE = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)] + [
    (socket.IPPROTO_TCP, getattr(socket, name), value)
    for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
    if hasattr(socket, name)
]


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


class Transport:
    """Connections to one API server as one account; safe to use from several threads."""

    def __init__(self, kubeconfig: Path | None, timeout_seconds: float) -> None:
        """Open nothing yet.

        Args:
            kubeconfig: file that names the server and the account; None: the pod's own account,
                whose token is read again every minute.
            timeout_seconds: how long a request may be silent.

        Raises:
            SettingsError: there is no usable configuration.
        """
        self._kubeconfig = kubeconfig
        self._timeout_seconds = timeout_seconds
        self._configuration = _load(kubeconfig)
        self._pool = _pool(self._configuration)

    @property
    def address(self) -> str:
        """The server's."""
        return str(self._configuration.host)

    def renew(self) -> None:
        """Read the configuration again: the server does not know our credentials any more."""
        self._configuration = _load(self._kubeconfig)
        self._pool = _pool(self._configuration)

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None = None,
        content_type: str = "application/json",
        *,
        accept: str = "application/json",
        silence_seconds: float | None = None,
    ) -> urllib3.BaseHTTPResponse:
        """Send a request; the answer's body is still to be read.

        Args:
            method: GET, POST and so on.
            path: from the root of the server.
            query: parameters; empty ones are left out.
            body: what to send.
            content_type: what that is.
            accept: what the answer is to be.
            silence_seconds: how long the answer may be silent; None = as for every request.

        Raises:
            UnreachableError: no answer.
        """
        parameters = {key: value for key, value in query.items() if value}
        url = f"{self.address}{path}{'?' if parameters else ''}{urlencode(parameters)}"
        headers = {"Accept": accept, "User-Agent": _USER_AGENT}
        if body is not None:
            headers["Content-Type"] = content_type
        authorization = self._configuration.get_api_key_with_prefix("authorization")
        if authorization:
            headers["Authorization"] = authorization
        timeout = urllib3.Timeout(
            connect=CONNECT_TIMEOUT_SECONDS, read=silence_seconds or self._timeout_seconds
        )
        try:
            return self._pool.request(
                method,
                url,
                body=body,
                headers=headers,
                timeout=timeout,
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise unreachable(method, path, error) from error

    def read(self, response: urllib3.BaseHTTPResponse, what: str) -> bytes:
        """The whole body; the connection may be used again.

        Raises:
            UnreachableError: it broke off.
        """
        try:
            return response.data
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise unreachable("reading", what, error) from error
        finally:
            response.release_conn()


class Lines:
    """The lines of an answer that does not end, as they come."""

    def __init__(self, response: urllib3.BaseHTTPResponse, what: str) -> None:
        """Read nothing yet."""
        self._response = response
        self._what = what
        self._closed = False
        # Taken now: the response forgets its connection when it ends.
        connection = response.connection
        self._socket: socket.socket | None = getattr(connection, "sock", None)

    def __iter__(self) -> Iterator[bytes]:
        """The lines, until the server ends them or `close` is called.

        Raises:
            UnreachableError: the connection broke, or was silent for too long.
        """
        rest = b""
        try:
            for chunk in self._response.stream(None):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (line for line in lines if line)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            # ValueError: read after close, by another thread.
            if not self._closed:
                raise unreachable("watching", self._what, error) from error
        finally:
            self._response.close()

    def close(self) -> None:
        """End it from any thread; who reads sees the end at once."""
        self._closed = True
        if self._socket is not None:
            try:
                # Not the method of SSLSocket, which would take the TLS state from under the reader.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            except OSError:
                # It has ended already.
                return


def unreachable(method: str, path: str, error: Exception) -> UnreachableError:
    """The error for a request that got no answer."""
    # Without the class and the address that urllib3 puts before it.
    why = re.sub(r"^HTTPS?Connection(Pool)?\([^)]*\): ", "", str(error))
    return UnreachableError(0, "Unreachable", f"{method} {path}: no answer: {why:.300}")


def _load(kubeconfig: Path | None) -> Configuration:
    configuration = Configuration()
    try:
        if kubeconfig is None:
            config.load_incluster_config(configuration)
        else:
            config.load_kube_config(
                str(kubeconfig), client_configuration=configuration, persist_config=False
            )
    except _UNUSABLE as error:
        raise SettingsError(_no_way(kubeconfig, error)) from error
    return configuration


def _no_way(kubeconfig: Path | None, error: Exception) -> str:
    """Why there is no configuration; what the official client stumbles over says nothing."""
    if kubeconfig is None:
        return "this is no pod with a service account; outside of a cluster give --kubeconfig FILE"
    known = isinstance(error, config.ConfigException | OSError)
    why = f"{error!s:.300}" if known else "it is no kubeconfig as kubectl writes it"
    return f"no way to the API server by --kubeconfig {kubeconfig}: {why}"


def _pool(configuration: Configuration) -> urllib3.PoolManager:
    pool: urllib3.PoolManager = RESTClientObject(configuration, maxsize=CONNECTIONS).pool_manager
    default = urllib3.connection.HTTPConnection.default_socket_options
    pool.connection_pool_kw["socket_options"] = [*default, *_KEEP_ALIVE]
    return pool
