"""Ports are given away once."""

import socket

from tests.controlplane import ports


def test_a_port_is_given_away_once(monkeypatch):
    """Also if no server listens on it yet."""
    (port,) = ports.free_ports(1)
    monkeypatch.setattr(ports, "FIRST_PORT", port)
    monkeypatch.setattr(ports, "LAST_PORT", port + 1)
    others = set()
    for _ in range(5):
        try:
            others.update(ports.free_ports(1))
        except OSError:
            break
    assert port not in others


def test_a_server_can_listen_on_it():
    (port,) = ports.free_ports(1)
    with socket.create_server((ports.LOOPBACK, port)) as server:
        assert server.getsockname()[1] == port
