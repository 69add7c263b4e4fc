"""Connections of a download: which addresses a server may send us to.

A URL may lead anywhere, since somebody has chosen it: also to a server of one's own network or
machine. A redirect is chosen by the server, so it leads to public addresses, or to those of the
kind of the first: otherwise a public server could have us ask a cloud's metadata server. What
counts is the address that is connected to, since a name may mean another one each time.
"""

import contextlib
import http.client
import socket
import urllib.request
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from typing_extensions import override

from kfp_placement_engine.model.step_names import listed

AddressKind = Literal["public", "private", "loopback", "link-local"]
"""Network that an address is of; an address of no other network here counts as private."""

_INTERNET = IPv6Network("2000::/3")
"""Addresses of IPv6 that the Internet knows; all others are of some smaller network."""

_TRANSLATED = IPv6Network("64:ff9b::/96")
"""Addresses that stand for those of IPv4 (RFC 6052)."""

_TRANSLATED_BY_SOME = tuple(map(IPv6Network, ("64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96")))
"""Addresses that stand for those of IPv4 in some networks alone, so they are never public."""

_IETF = IPv4Network("192.0.0.0/24")
"""Addresses of protocols, some of which Python counts as global."""

_METADATA = frozenset(
    map(
        ip_address,
        ("192.0.0.192", "168.63.129.16", "100.100.100.200", "fd00:ec2::254", "fd20:ce::254"),
    )
)
"""Metadata servers of clouds that are not link-local by their form, but serve a machine alone."""


def address_kind(text: str) -> AddressKind:
    """Return the network of an address; one of IPv6 that stands for one of IPv4 counts as that.

    Raises:
        ValueError: the text is not an address.
    """
    named = ip_address(text)
    address = _inner(named) if isinstance(named, IPv6Address) else named
    if any(each.is_loopback or each.is_unspecified for each in (named, address)):
        return "loopback"
    if address.is_link_local or address in _METADATA:
        return "link-local"
    return "public" if _is_public(address) and not _is_of_some_network(named) else "private"


def _inner(address: IPv6Address) -> IPv4Address | IPv6Address:
    if address in _TRANSLATED or _is_of_some_network(address):
        return IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour or address


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    is_unicast = address in _INTERNET if isinstance(address, IPv6Address) else address not in _IETF
    return is_unicast and address.is_global and not address.is_multicast


def _is_of_some_network(address: IPv4Address | IPv6Address) -> bool:
    return any(address in each for each in _TRANSLATED_BY_SOME)


@dataclass
class Connections:
    """The connections of one download, and the rule for those after the first.

    Attributes:
        first: network of the address that was connected to first; None = not yet.
    """

    first: AddressKind | None = None
    _opened: socket.socket | None = None

    def open_checked(
        self, address: tuple[str, int], timeout: float | None = None, *_: object
    ) -> socket.socket:
        """Connect to a host by the first of its addresses that is allowed and answers.

        Args:
            address: name or address of the host, and the port.
            timeout: time for each try, in seconds.

        Raises:
            RedirectError: a redirect leads to a host none of whose addresses is allowed.
            OSError: no address answers.
        """
        host, port = address
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        kinds = [address_kind(str(place[0])) for *_, place in answers]
        allowed = [each for each, kind in zip(answers, kinds, strict=True) if self._allows(kind)]
        failure: OSError = self._refusal(host, kinds)
        for family, kind, protocol, _name, place in allowed:
            opened = socket.socket(family, kind, protocol)
            try:
                opened.settimeout(timeout)
                opened.connect(place)
            except OSError as error:
                opened.close()
                failure = error
            else:
                self.first = self.first or address_kind(str(place[0]))
                return self._noted(opened)
        raise failure

    def open_proxy(
        self, host: str, address: tuple[str, int], timeout: float | None = None, *_: object
    ) -> socket.socket:
        """Connect to the proxy of a host, whose address is the proxy's to find.

        Raises:
            RedirectError: a redirect leads to an address that is not allowed.
            OSError: the proxy does not answer.
        """
        kind = _kind_by_name(host)
        if not self._allows(kind):
            raise self._refusal(host, [kind])
        self.first = self.first or kind
        return self._noted(socket.create_connection(address, timeout))

    def end(self) -> None:
        """End the last connection, from any thread."""
        ending, self._opened = self._opened, None
        if ending is not None:
            with ending, contextlib.suppress(OSError):
                ending.shutdown(socket.SHUT_RDWR)

    def _noted(self, opened: socket.socket) -> socket.socket:
        self.end()
        # TLS takes the connection away from its socket.
        self._opened = opened.dup()
        return opened

    def _allows(self, kind: AddressKind) -> bool:
        return self.first is None or kind in ("public", self.first)

    def _refusal(self, host: str, kinds: Collection[AddressKind]) -> "RedirectError":
        return RedirectError(
            f"redirects it to {host:.200}, whose address is {listed(sorted({*kinds}))}"
        )


def _kind_by_name(host: str) -> AddressKind:
    """Return the network of a host as far as its name tells: a name may stand for any address."""
    if host.rstrip(".").lower().endswith("localhost"):
        return "loopback"
    try:
        return address_kind(host if ":" in host else socket.inet_ntoa(socket.inet_aton(host)))
    except (OSError, ValueError):
        return "public"


class RedirectError(OSError):
    """A redirect leads to an address that is not allowed."""


class CheckedHandler(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    """Opener of `http` and `https` by the rules of `Connections`."""

    def __init__(self, connections: Connections) -> None:
        """Take the connections of the download."""
        super().__init__()
        self._connections = connections

    @override
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Send a request."""
        return self.do_open(self._by(http.client.HTTPConnection, req), req)

    @override
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Send a request with TLS."""
        return self.do_open(self._by(http.client.HTTPSConnection, req), req)

    def _by(
        self, kind: Callable[..., http.client.HTTPConnection], request: urllib.request.Request
    ) -> Callable[..., http.client.HTTPConnection]:
        """Return what makes the connection for a request."""
        connections = self._connections
        is_proxied = request.has_proxy() or getattr(request, "_tunnel_host", None)
        host = unquote(urlsplit(request.full_url).hostname or "")
        opening = partial(connections.open_proxy, host) if is_proxied else connections.open_checked

        def make(*arguments: Any, **options: Any) -> http.client.HTTPConnection:
            made = kind(*arguments, **options)
            # The class has it so that others can replace it.
            setattr(made, "_create_connection", opening)  # noqa: B010
            return made

        return make
