"""HTTP to the API server, bytes in and out."""

import re
import socket
import ssl
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

LONGEST_PUT_OFF_SECONDS = 5.0
"""How long a server may put a request off at a time."""


@dataclass(frozen=True)
class TransportParams:
    """How a program talks to an API server.

    Attributes:
        user_agent: the program's name and version, as the server's logs show it.
        timeout_seconds: how long a request may be silent.
        connect_timeout_seconds: how long a connection may take to be made.
        connections: kept open at most: a stream per watched kind, and a few requests at a time.
        max_answer_bytes: longest answer that is read; None = any.
        max_line_bytes: longest line of a watch that is read; None = any.
        renews_account: the configuration is read again, once a request, when the server does not
            know the account any more; otherwise that is an error at once.
        comes_again: a request is sent again, three times at most, when the server says that it is
            too busy now and when to come again; otherwise that is an error at once.
    """

    user_agent: str
    timeout_seconds: float = 30.0
    connect_timeout_seconds: float = 10.0
    connections: int = 32
    max_answer_bytes: int | None = None
    max_line_bytes: int | None = None
    renews_account: bool = False
    comes_again: bool = False


class _ComingAgain(urllib3.Retry):
    """Retries only what the server puts off, such as lists while it starts."""

    @override
    def get_retry_after(self, response: urllib3.BaseHTTPResponse) -> float | None:
        """Bounded, since something in between may name any time."""
        seconds = super().get_retry_after(response)
        return None if seconds is None else min(seconds, LONGEST_PUT_OFF_SECONDS)


class Transport:
    """Connections to one API server as one account; safe to use from several threads."""

    def __init__(self, load: Callable[[], Configuration], params: TransportParams) -> None:
        """Nothing is opened yet.

        Args:
            load: reads where the server is and who asks; called again by `renew`.
            params: how to talk to it.

        Raises:
            ConfigurationError: there is no usable configuration.
        """
        self._load = load
        self._params = params
        self._configuration = load()
        self._pool = _pool(self._configuration, params.connections)
        self._retries = params.comes_again and _ComingAgain(
            3, connect=False, read=False, other=False, allowed_methods=None, raise_on_status=False
        )

    @property
    def address(self) -> str:
        """The server's."""
        return self._configuration.server

    @property
    def renews_account(self) -> bool:
        """Whether `renew` must be called when the server does not know the account any more."""
        return self._params.renews_account

    def renew(self) -> None:
        """Read the configuration again: the server does not know our credentials any more.

        Raises:
            ConfigurationError: there is no usable one any more.
        """
        self._configuration = self._load()
        self._pool = _pool(self._configuration, self._params.connections)

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
            accept: the wanted content type of the answer.
            silence_seconds: how long the answer may be silent; None = as for every request.

        Raises:
            UnreachableError: no answer.
        """
        parameters = {key: value for key, value in query.items() if value}
        url = f"{self.address}{path}{'?' if parameters else ''}{urlencode(parameters)}"
        headers = {"Accept": accept, "User-Agent": self._params.user_agent}
        if body is not None:
            headers["Content-Type"] = content_type
        authorization = self._configuration.authorization()
        if authorization:
            headers["Authorization"] = authorization
        timeout = urllib3.Timeout(
            connect=self._params.connect_timeout_seconds,
            read=silence_seconds or self._params.timeout_seconds,
        )
        try:
            return self._pool.request(
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
            # ValueError: a token or an address that no request can carry.
            raise unreachable(method, path, error) from error

    def read(self, response: urllib3.BaseHTTPResponse, what: str) -> bytes:
        """The whole body; the connection may be used again.

        Raises:
            GarbledError: it is too long.
            UnreachableError: it broke off.
        """
        most = self._params.max_answer_bytes
        try:
            text: bytes = response.read(None if most is None else most + 1)
            if most is not None and len(text) > most:
                response.close()
                raise _too_long(what, f"more than {most} bytes")
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise unreachable("reading", what, error) from error
        finally:
            response.release_conn()
        return text

    def lines(self, response: urllib3.BaseHTTPResponse, what: str) -> "Lines":
        """The lines of an answer that does not end."""
        return Lines(response, what, self._params.max_line_bytes)


class Lines:
    """The lines of an answer that does not end, as they come."""

    def __init__(
        self, response: urllib3.BaseHTTPResponse, what: str, max_line_bytes: int | None = None
    ) -> None:
        """Nothing is read yet.

        Args:
            response: the answer, unread.
            what: was asked for, for messages.
            max_line_bytes: longest line; None = any.
        """
        self._response = response
        self._what = what
        self._max_line_bytes = max_line_bytes
        self._closed = False
        # Taken now: the response forgets its connection when it ends.
        connection = response.connection
        self._socket: socket.socket | None = getattr(connection, "sock", None)

    def __iter__(self) -> Iterator[bytes]:
        """The lines, until the server ends them or `close` is called.

        Raises:
            GarbledError: a line is too long.
            UnreachableError: the connection broke, or was silent for too long.
        """
        rest = b""
        try:
            for chunk in self._response.stream(None):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (line for line in lines if line)
                if self._max_line_bytes is not None and len(rest) > self._max_line_bytes:
                    raise _too_long(self._what, f"a line of more than {self._max_line_bytes} bytes")
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            # ValueError: read after close, by another thread.
            if not self._closed:
                raise unreachable("watching", self._what, error) from error
        finally:
            self._response.close()

    def close(self) -> None:
        """End it from any thread; the reader sees the end at once."""
        self._closed = True
        if self._socket is not None:
            try:
                # Not the method of SSLSocket, which would take the TLS state from under the reader.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            except OSError:
                # It has ended already.
                return


def unreachable(method: str, path: str, error: Exception) -> UnreachableError:
    """The error for a request that got no answer, or none that can be trusted."""
    # Without the class and the address that urllib3 puts before it.
    why = re.sub(r"^HTTPS?Connection(Pool)?\([^)]*\): ", "", str(error))
    kind = UntrustedError if _is_untrusted(error) else UnreachableError
    return kind(f"{method} {path}: no answer: {why:.300}", why=why)


def _too_long(what: str, why: str) -> GarbledError:
    return GarbledError(f"reading {what}: {why}", why=why)


def _is_untrusted(error: BaseException | None) -> bool:
    """Whether a certificate is what it fails for: urllib3 wraps the reason, once or twice."""
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
