"""Limits on the connections to a port."""

import contextlib
import gc
import socket
import weakref

import pytest

from kfp_placement_controller.exceptions import SettingsError
from kfp_placement_controller.listening import LOOPBACK, ConnectionLimits, LimitedSocket, open_port
from tests.support.http_attacks import goes_on
from tests.support.scraping import own_metric

LIMITS = ConnectionLimits("a-port", most=3, most_per_address=2, new_per_second=100)


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
def closing():
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def connect(closing, clock):
    """Connects from an address, and says whether the connection was accepted."""

    def listen(limits):
        listening = closing.enter_context(
            LimitedSocket(socket.AF_INET, limits, clock=lambda: clock[0])
        )
        listening.bind((LOOPBACK, 0))
        listening.listen()

        def one(address):
            theirs = socket.create_connection((LOOPBACK, listening.port), 5, (address, 0))
            closing.callback(theirs.close)
            try:
                ours, peer = listening.accept()
            except ConnectionAbortedError:
                with pytest.raises(ConnectionResetError):
                    theirs.recv(1)
                return None
            assert peer[0] == address
            return closing.enter_context(ours)

        return one

    return listen


def refused(limit):
    return own_metric("http_refused_total", port="a-port", limit=limit)


def test_one_address_has_few_connections_and_all_together_have_more(connect):
    one, before = connect(LIMITS), refused("connections-of-address")
    assert [one(LOOPBACK) is not None for _ in range(3)] == [True, True, False]
    assert one("127.0.0.2") is not None
    assert refused("connections-of-address") == before + 1


def test_where_a_port_is_full_the_longest_silent_of_the_address_with_most_ends(connect, clock):
    one, before = connect(LIMITS), refused("connections")
    first, other, second = (one(each) for each in (LOOPBACK, "127.0.0.2", LOOPBACK))
    clock[0] = 1.0
    assert goes_on(first)
    assert one("127.0.0.3") is not None
    assert [goes_on(each) for each in (other, first, second)] == [True, True, False]
    assert refused("connections") == before + 1
    # What was ended counts no more, also when it is closed; now each address has one.
    second.close()
    clock[0] = 2.0
    assert goes_on(other)
    assert one("127.0.0.4") is not None
    assert not goes_on(first)


def test_a_connection_that_ends_makes_room_once(connect):
    one = connect(LIMITS)
    first, _ = one(LOOPBACK), one(LOOPBACK)
    first.close()
    first.close()
    assert one(LOOPBACK) is not None
    assert one(LOOPBACK) is None


def test_new_connections_of_a_second_are_limited_by_address(connect, clock):
    one = connect(ConnectionLimits("a-port", most=9, most_per_address=9, new_per_second=1))
    assert [one(LOOPBACK) is not None for _ in range(2)] == [True, False]
    assert one("127.0.0.2") is not None
    clock[0] = 1.0
    assert one(LOOPBACK) is not None


def test_what_is_left_of_connections_is_collected_now_and_then(connect):
    class Cycle:
        def __init__(self):
            self.own = self

    limits = ConnectionLimits("a-port", 9, 9, new_per_second=9, collected_after=2)
    one, left = connect(limits), weakref.ref(Cycle())
    gc.disable()
    try:
        one(LOOPBACK)
        assert left() is not None
        one(LOOPBACK)
        assert left() is None
    finally:
        gc.enable()


def test_all_addresses_of_the_machine_are_served(closing):
    opened = closing.enter_context(open_port(None, 0, LIMITS))
    closing.enter_context(socket.create_connection((LOOPBACK, opened.port), 5))
    opened.accept()[0].close()
    with pytest.raises(SettingsError, match=f"cannot listen on :{opened.port}"):
        open_port(None, opened.port, LIMITS)
