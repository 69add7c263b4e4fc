"""HTTP connections to the API server, with bytes in and out."""

import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import urllib3
from typing_extensions import override

from kfp_placement_kube.configuration import Configuration
from kfp_placement_kube.exceptions import GarbledError, UnreachableError, UntrustedError

# A peer that vanished without a word is noticed after 30 s, also while a watch waits for changes.
_KEEP_ALIVE = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)] + [
    (socket.IPPROTO_TCP, getattr(socket, name), value)
    for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
    if hasattr(socket, name)
]

_PIECE_BYTES = 2**16

LONGEST_RETRY_AFTER_SECONDS = 5.0
"""Longest wait before a request that the server was too busy for is sent again."""


@dataclass(frozen=True)
class TransportParams:
    """Limits and habits of a program's connections to an API server.

    Attributes:
        user_agent: the program's name and version, as the server's logs show it.
        timeout_seconds: time without a byte after which a request fails.
        connect_timeout_seconds: time after which a connection that is not made fails.
        connections: largest number of open connections: a stream for each watched kind, and a few
            requests at a time.
        max_answer_bytes: length of the longest answer that is read; None = any.
        max_answer_seconds: time within which the body of an answer must come in whole, for servers
            that may send one byte at a time; None = any.
        max_line_bytes: length of the longest line of a watch that is read; None = any.
        renews_account: whether the configuration is read again, once a request, when the server
            does not know the account any more; otherwise that is an error at once.
        retries_when_busy: whether a request is sent again, three times at most, when the server
            says that it is too busy now and when to try again; otherwise that is an error at once.
    """

    user_agent: str
    timeout_seconds: float = 30.0
    connect_timeout_seconds: float = 10.0
    connections: int = 32
    max_answer_bytes: int | None = None
    max_answer_seconds: float | None = None
    max_line_bytes: int | None = None
    renews_account: bool = False
    retries_when_busy: bool = False


class _RetryWhenBusy(urllib3.Retry):
    """Retries of requests that the server is too busy for, such as lists while it starts."""

    @override
    def get_retry_after(self, response: urllib3.BaseHTTPResponse) -> float | None:
        """Return the server's time, but bounded, since a proxy may name any time."""
        seconds = super().get_retry_after(response)
        return None if seconds is None else min(seconds, LONGEST_RETRY_AFTER_SECONDS)


class Transport:
    """Connections to one API server as one account; safe to use from several threads."""

    def __init__(self, load: Callable[[], Configuration], params: TransportParams) -> None:
        """Read the configuration; the first request opens a connection.

        Args:
            load: function that reads the configuration; called again by `renew`.
            params: limits and habits of the connections.

        Raises:
            ConfigurationError: there is no usable configuration.
        """
        self._load = load
        self._params = params
        self._account = self._load_account()
        self._retries = params.retries_when_busy and _RetryWhenBusy(
            3, connect=False, read=False, other=False, allowed_methods=None, raise_on_status=False
        )

    @property
    def address(self) -> str:
        """Address of the server."""
        return self._account[0].server

    @property
    def renews_account(self) -> bool:
        """True if `renew` must be called when the server does not know the account any more."""
        return self._params.renews_account

    def renew(self) -> None:
        """Read the configuration again, since the server does not know our credentials any more.

        Raises:
            ConfigurationError: there is no usable configuration any more.
        """
        self._account = self._load_account()

    def _load_account(self) -> tuple[Configuration, urllib3.PoolManager]:
        """Return the configuration with its connections, as other threads must see both."""
        configuration = self._load()
        return configuration, _pool(configuration, self._params.connections)

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
            method: HTTP method, such as GET or POST.
            path: address from the root of the server.
            query: parameters; empty ones are left out.
            body: body of the request; None = no body.
            content_type: content type of the body.
            accept: the wanted content type of the answer.
            silence_seconds: time without a byte after which the answer fails; None = as for every
                request.

        Raises:
            UnreachableError: no answer.
        """
        configuration, pool = self._account
        parameters = {key: value for key, value in query.items() if value}
        url = f"{configuration.server}{path}{'?' if parameters else ''}{urlencode(parameters)}"
        headers = {"Accept": accept, "User-Agent": self._params.user_agent}
        if body is not None:
            headers["Content-Type"] = content_type
        authorization = configuration.authorization()
        if authorization:
            headers["Authorization"] = authorization
        timeout = urllib3.Timeout(
            connect=self._params.connect_timeout_seconds,
            read=silence_seconds or self._params.timeout_seconds,
        )
        try:
            return pool.request(
                method,
                url,
                body=body,
                headers=headers,
                timeout=timeout,
                retries=self._retries,
                redirect=False,
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            # ValueError: the token or the address cannot be part of a request.
            raise unreachable(method, path, error) from error

    def read(self, response: urllib3.BaseHTTPResponse, path: str) -> bytes:
        """Return the whole body; the connection may be used again.

        Raises:
            GarbledError: the body is too long.
            UnreachableError: the connection broke, or the body took too long.
        """
        most = self._params.max_answer_bytes
        try:
            text = self._body(response, path, None if most is None else most + 1)
            if most is not None and len(text) > most:
                response.close()
                raise _too_long(path, f"more than {most} bytes")
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise unreachable("reading", path, error) from error
        finally:
            response.release_conn()
        return text

    def _body(self, response: urllib3.BaseHTTPResponse, path: str, most_bytes: int | None) -> bytes:
        """Return the body, or its beginning if it is longer than `most_bytes`.

        Raises:
            UnreachableError: it does not come in whole in time.
        """
        most_seconds = self._params.max_answer_seconds
        if most_seconds is None:
            text: bytes = response.read(most_bytes)
            return text
        until, body = time.monotonic() + most_seconds, bytearray()
        while piece := response.read1(_PIECE_BYTES):
            body += piece
            if most_bytes is not None and len(body) >= most_bytes:
                break
            if time.monotonic() > until:
                response.close()
                why = f"the answer took longer than {most_seconds:g} s"
                raise UnreachableError(f"reading {path}: {why}", why=why)
        return bytes(body)

    def lines(self, response: urllib3.BaseHTTPResponse, path: str) -> "Lines":
        """Return the lines of an answer that does not end."""
        return Lines(response, path, self._params.max_line_bytes)


@dataclass(eq=False)
class Lines:
    """The lines of an answer that does not end, as they come.

    Attributes:
        response: the answer, unread.
        path: address of the request, for messages.
        max_line_bytes: length of the longest line; None = any.
    """

    response: urllib3.BaseHTTPResponse
    path: str
    max_line_bytes: int | None

    def __post_init__(self) -> None:
        """Note the connection: reading begins with the iteration."""
        self._closed = False
        # Taken now: the response forgets its connection when it ends.
        connection = self.response.connection
        self._socket: socket.socket | None = getattr(connection, "sock", None)

    def __iter__(self) -> Iterator[bytes]:
        """Yield the lines until the server ends them or `close` is called.

        Raises:
            GarbledError: a line is too long.
            UnreachableError: the connection broke, or was silent for too long.
        """
        rest = b""
        try:
            for chunk in self.response.stream(None):
                lines = (rest + chunk).split(b"\n")
                if self.max_line_bytes is not None and max(map(len, lines)) > self.max_line_bytes:
                    raise _too_long(self.path, f"a line of more than {self.max_line_bytes} bytes")
                rest = lines.pop()
                yield from (line for line in lines if line)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            # ValueError: read after close, by another thread.
            if not self._closed:
                raise unreachable("watching", self.path, error) from error
        finally:
            # From here on the connection may serve another request, which `close` must not end.
            self._socket = None
            self.response.close()

    def close(self) -> None:
        """End the answer from any thread; the reader sees the end at once."""
        self._closed = True
        open_socket = self._socket
        if open_socket is not None:
            try:
                # The plain socket's method: SSLSocket.shutdown also drops the TLS state, which the
                # reader still uses.
                socket.socket.shutdown(open_socket, socket.SHUT_RDWR)
            except OSError:
                # The connection has ended already.
                return


def unreachable(method: str, path: str, error: Exception) -> UnreachableError:
    """Return the error for a request that got no answer, or none that can be trusted."""
    # Without the class and the address that urllib3 puts before it.
    why = re.sub(r"^HTTPS?Connection(Pool)?\([^)]*\): ", "", str(error))
    kind = UntrustedError if _is_untrusted(error) else UnreachableError
    return kind(f"{method} {path}: no answer: {why:.300}", why=why)


def _too_long(path: str, why: str) -> GarbledError:
    return GarbledError(f"reading {path}: {why}", why=why)


def _is_untrusted(error: BaseException | None) -> bool:
    """Return whether a certificate caused the error; urllib3 wraps the cause, once or twice."""
    while error is not None:
        wrapped = [each for each in error.args if isinstance(each, ssl.SSLCertVerificationError)]
        if wrapped or isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _pool(configuration: Configuration, connections: int) -> urllib3.PoolManager:
    default = urllib3.connection.HTTPConnection.default_socket_options
    optional: dict[str, Any] = {
        "ca_certs": configuration.authority_file,
        "cert_file": configuration.certificate_file,
        "key_file": configuration.key_file,
        "server_hostname": configuration.server_name,
    }
    return urllib3.PoolManager(
        maxsize=connections,
        cert_reqs=ssl.CERT_REQUIRED if configuration.verifies_server else ssl.CERT_NONE,
        socket_options=[*default, *_KEEP_ALIVE],
        **{key: value for key, value in optional.items() if value is not None},
    )
