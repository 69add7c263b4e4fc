"""Ports that others connect to, with limits on their connections.

Who is over a limit is disconnected as soon as the connection is accepted: no byte of it is read,
and no thread or TLS state made for it. asyncio and `http.server` accept in the same way, so the
limits apply to both. Most of them are for one address: a pod that floods a port has one of its own,
and neither the API server nor a kubelet has that one.
"""

import contextlib
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from kfp_placement_controller.exceptions import SettingsError
from kfp_placement_controller.metrics import HTTP_REFUSED

LOOPBACK = "127.0.0.1"
"""Address at which only the same pod can connect."""

_BACKLOG = 128
"""Number of connections that the kernel keeps until they are accepted."""

_RESET = struct.pack("ii", 1, 0)
"""Value of SO_LINGER with which nothing of a closed connection is left in the kernel."""


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits on the connections to one port.

    Attributes:
        port_name: name of the port in the metric of refusals.
        most: largest number of open connections.
        most_per_address: largest number of open connections of one address.
        new_per_second: largest number of new connections of one address in a second.
    """

    port_name: str
    most: int
    most_per_address: int
    new_per_second: int


class LimitedSocket(socket.socket):
    """A listening socket that disconnects who is over a limit."""

    def __init__(
        self,
        family: socket.AddressFamily,
        limits: ConnectionLimits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the socket; it does not listen yet.

        Args:
            family: family of its addresses.
            limits: limits on its connections.
            clock: seconds that never go back.
        """
        super().__init__(family, socket.SOCK_STREAM)
        self._limits = limits
        self._clock = clock
        # A connection may end in a thread that is not the one that accepts.
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()
        self._second = 0
        self._begun: Counter[str] = Counter()

    @property
    def port(self) -> int:
        """Port that the socket is bound to."""
        return int(self.getsockname()[1])

    @override
    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection and its address.

        Raises:
            ConnectionAbortedError: it was over a limit. Servers look at the next one then.
        """
        connection, peer = super().accept()
        address = peer[0]
        with self._lock:
            limit = self._limit_reached_by(address)
            if not limit:
                self._open[address] += 1
        if limit:
            HTTP_REFUSED.labels(self._limits.port_name, limit).inc()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            connection.close()
            raise ConnectionAbortedError
        return _Accepted(connection, lambda: self._ended(address)), peer

    def _limit_reached_by(self, address: str) -> str:
        """Return the limit that a new connection would exceed; "" = none."""
        limits, second = self._limits, int(self._clock())
        if second != self._second:
            self._second, self._begun = second, Counter()
        self._begun[address] += 1
        if self._begun[address] > limits.new_per_second:
            return "new-connections"
        if self._open[address] >= limits.most_per_address:
            return "connections-of-address"
        return "connections" if self._open.total() >= limits.most else ""

    def _ended(self, address: str) -> None:
        with self._lock:
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]


class _Accepted(socket.socket):
    """An accepted connection, which counts until it is closed."""

    def __init__(self, connection: socket.socket, ended: Callable[[], None]) -> None:
        family, kind, protocol = connection.family, connection.type, connection.proto
        super().__init__(family, kind, protocol, connection.detach())
        self._at_end = contextlib.ExitStack()
        self._at_end.callback(ended)

    @override
    def close(self) -> None:
        super().close()
        self._at_end.close()


def open_port(address: str | None, port: int, limits: ConnectionLimits) -> LimitedSocket:
    """Return a socket that listens.

    Args:
        address: address of this machine; None = all of them, of IPv6 too where there are any.
        port: port; 0 = any that is free.
        limits: limits on the connections.

    Raises:
        SettingsError: nobody can listen there, for example since the port is in use.
    """
    is_dual = address is None and socket.has_dualstack_ipv6()
    opened = LimitedSocket(socket.AF_INET6 if is_dual else socket.AF_INET, limits)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_dual:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        opened.bind((address or ("::" if is_dual else "0.0.0.0"), port))
        opened.listen(_BACKLOG)
    except OSError as error:
        opened.close()
        place = f"{address or ''}:{port}"
        raise SettingsError(f"cannot listen on {place}: {error.strerror}") from error
    return opened
