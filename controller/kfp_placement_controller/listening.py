"""Ports that others connect to, with limits on their connections.

An address over its limits is disconnected as soon as its connection is accepted: no byte of it is
read, and no thread or TLS state made for it. asyncio and `http.server` accept in the same way, so
the limits apply to both. A pod that floods a port has an address of its own, and neither the API
server nor a kubelet has that one. Where many pods fill a port together, a new connection takes the
place of one of theirs: questions of others are answered in milliseconds, so they are not silent for
longest.
"""

import contextlib
import gc
import itertools
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

_BACKLOG = 1024
"""Number of connections that the kernel keeps until they are accepted: more than many pods begin at
a time, since beyond it the kernel drops the others, who try again a second later."""

_RESET = struct.pack("ii", 1, 0)
"""Value of SO_LINGER with which nothing of a closed connection is left in the kernel."""


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits on the connections to one port.

    Attributes:
        port_name: name of the port in the metric of refusals.
        most: largest number of open connections; one more ends another.
        most_per_address: largest number of open connections of one address.
        new_per_second: largest number of new connections of one address in a second.
        collected_after: number of connections after which those that have ended are collected as
            garbage; 0 = they leave none.
    """

    port_name: str
    most: int
    most_per_address: int
    new_per_second: int
    collected_after: int = 0


class LimitedSocket(socket.socket):
    """A listening socket that disconnects who is over a limit, or silent where others need room.

    Attributes:
        limits: limits on its connections.
    """

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
        self.limits = limits
        self._clock = clock
        # A connection may end in a thread that is not the one that accepts.
        self._lock = threading.Lock()
        self._open: dict[_Accepted, str] = {}
        self._of_address: Counter[str] = Counter()
        self._second = 0
        self._begun: Counter[str] = Counter()
        self._numbers = itertools.count(1)

    @property
    def port(self) -> int:
        """Port that the socket is bound to."""
        return int(self.getsockname()[1])

    @override
    def listen(self, backlog: int = _BACKLOG, /) -> None:
        """Listen with our backlog: that of asyncio says how many it accepts at a time, too."""
        super().listen(_BACKLOG)

    @override
    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection and its address.

        Raises:
            ConnectionAbortedError: its address was over a limit. Servers look at the next one then.
        """
        connection, peer = super().accept()
        address, silenced = peer[0], None
        with self._lock:
            limit = self._limit_reached_by(address)
            if not limit:
                if len(self._open) >= self.limits.most:
                    silenced = max(self._open, key=self._is_less_needed)
                    self._forget(silenced)
                accepted = _Accepted(connection, self._ended, self._clock)
                self._open[accepted] = address
                self._of_address[address] += 1
        if limit:
            HTTP_REFUSED.labels(self.limits.port_name, limit).inc()
            _reset_at_close(connection)
            connection.close()
            raise ConnectionAbortedError
        if silenced is not None:
            HTTP_REFUSED.labels(self.limits.port_name, "connections").inc()
            silenced.end()
        if (most := self.limits.collected_after) and next(self._numbers) % most == 0:
            gc.collect()
        return accepted, peer

    def _limit_reached_by(self, address: str) -> str:
        """Return the limit that a new connection would exceed; "" = none."""
        limits, second = self.limits, int(self._clock())
        if second != self._second:
            self._second, self._begun = second, Counter()
        self._begun[address] += 1
        if self._begun[address] > limits.new_per_second:
            return "new-connections"
        is_over = self._of_address[address] >= limits.most_per_address
        return "connections-of-address" if is_over else ""

    def _is_less_needed(self, each: "_Accepted") -> tuple[int, float]:
        """Return a key that grows with the connections of its address, then with its silence."""
        return self._of_address[self._open[each]], -each.heard_at

    def _ended(self, connection: "_Accepted") -> None:
        with self._lock:
            self._forget(connection)

    def _forget(self, connection: "_Accepted") -> None:
        address = self._open.pop(connection, None)
        if address is not None:
            self._of_address[address] -= 1
            if not self._of_address[address]:
                del self._of_address[address]


class _Accepted(socket.socket):
    """An accepted connection, which counts until it is closed.

    Attributes:
        heard_at: time at which something came.
    """

    def __init__(
        self,
        connection: socket.socket,
        ended: Callable[["_Accepted"], None],
        clock: Callable[[], float],
    ) -> None:
        family, kind, protocol = connection.family, connection.type, connection.proto
        super().__init__(family, kind, protocol, connection.detach())
        self._ended, self._clock = ended, clock
        self.heard_at = clock()

    @override
    def recv(self, *arguments: Any) -> bytes:
        self.heard_at = self._clock()
        return super().recv(*arguments)

    @override
    def recv_into(self, *arguments: Any) -> int:
        self.heard_at = self._clock()
        return super().recv_into(*arguments)

    @override
    def close(self) -> None:
        super().close()
        self._ended(self)

    def end(self) -> None:
        """Disconnect; its server sees the end, and closes it."""
        # It may have ended already.
        with contextlib.suppress(OSError):
            _reset_at_close(self)
            self.shutdown(socket.SHUT_RDWR)


def _reset_at_close(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


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
        opened.listen()
    except OSError as error:
        opened.close()
        place = f"{address or ''}:{port}"
        raise SettingsError(f"cannot listen on {place}: {error.strerror}") from error
    return opened
