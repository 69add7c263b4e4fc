"""Which addresses a download connects to."""

import socket
import urllib.error
import urllib.request

import pytest

from kfp_placement.clusters.web_addresses import (
    CheckedHandler,
    Connections,
    RedirectError,
    address_kind,
)
from tests.support.web_server import sending, web_server


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("93.184.216.34", "public"),
        ("2606:2800:220:1:248:1893:25c8:1946", "public"),
        ("10.1.2.3", "private"),
        ("fec0::1", "private"),
        ("100.100.100.200", "link-local"),
        ("192.0.0.192", "link-local"),
        ("168.63.129.16", "link-local"),
        ("fd00:ec2::254", "link-local"),
        ("224.0.0.1", "private"),
        ("127.0.0.53", "loopback"),
        ("::1", "loopback"),
        ("0.0.0.0", "loopback"),
        ("::", "loopback"),
        ("169.254.169.254", "link-local"),
        ("fe80::1%1", "link-local"),
        ("::ffff:169.254.169.254", "link-local"),
        ("::ffff:127.0.0.1", "loopback"),
        ("2002:7f00:1::", "loopback"),
        ("64:ff9b::a9fe:a9fe", "link-local"),
        ("64:ff9b::5db8:d822", "public"),
        ("64:ff9b:1::5db8:d822", "private"),
        ("64:ff9b:1::a9fe:a9fe", "link-local"),
        ("::127.0.0.1", "loopback"),
        ("::ffff:0:127.0.0.1", "loopback"),
    ],
)
def test_an_address_is_of_a_network(address, kind):
    assert address_kind(address) == kind


@pytest.fixture
def server():
    with web_server({"/": sending(b"x")}) as address:
        yield int(address.rpartition(":")[2])


def opened(connections, host, port):
    connections.open_checked((host, port), 5).close()
    connections.end()


def test_the_first_address_may_be_any_and_those_after_it_are_of_its_network(server):
    connections = Connections()
    opened(connections, "127.0.0.1", server)
    assert connections.first == "loopback"
    opened(connections, "localhost", server)
    for host in ("169.254.169.254", "10.0.0.1", "::ffff:10.0.0.1"):
        with pytest.raises(RedirectError, match="whose address is"):
            opened(connections, host, server)


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "127.1", "localhost", "0.0.0.0"])
def test_a_public_server_leads_to_public_addresses_only(server, host):
    with pytest.raises(RedirectError, match="whose address is loopback"):
        opened(Connections(first="public"), host, server)


def test_what_counts_is_the_address_that_is_connected_to(server, monkeypatch):
    """A name may mean a public address when it is looked at, and another one a moment later."""
    answers = [("93.184.216.34", 80), ("127.0.0.1", server)]

    def resolved(*_arguments, **_options):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", answers.pop(0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setattr(socket.socket, "connect", lambda *_: None)
    connections = Connections()
    opened(connections, "rebinding.example", 80)
    assert connections.first == "public"
    with pytest.raises(RedirectError, match="loopback"):
        opened(connections, "rebinding.example", 80)


@pytest.mark.parametrize("host", ["127.0.0.1", "169.254.169.254", "x.localhost", "[::1]", "127.1"])
def test_a_proxy_is_not_asked_for_what_is_not_followed(server, host, monkeypatch):
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    proxy = urllib.request.ProxyHandler({"http": f"http://127.0.0.1:{server}"})

    connections = Connections(first="public")
    opener = urllib.request.build_opener(proxy, CheckedHandler(connections))
    with pytest.raises(OSError, match="whose address is"):
        opener.open(f"http://{host}/", timeout=5)
    with pytest.raises(urllib.error.HTTPError, match="404") as caught:
        opener.open("http://example.com/", timeout=5)
    caught.value.close()
    connections.end()
