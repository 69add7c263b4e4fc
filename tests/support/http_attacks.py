"""Attacks on an HTTP port, as a program of its own: what attacks must not slow down what measures.

`python -m tests.support.http_attacks NAME PORT ...`; it prints what came of it as JSON.
"""

import collections
import contextlib
import json
import socket
import ssl
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from kfp_placement_controller.extender.bodies import MAX_BODY_BYTES

HOST = "127.0.0.1"
HEAD = "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{more}\r\n"


def head(path: str, length: int) -> bytes:
    """Return the head of a question of that length."""
    return HEAD.format(path=path, more=f"Content-Length: {length}\r\n").encode()


def connected(
    port: int, source: str = "", *, tls: bool = True, seconds: float = 10
) -> socket.socket:
    """Return a connection.

    Args:
        port: port of this machine.
        source: loopback address that the connection comes from; "" = the usual one.
        tls: whether it is encrypted, with any certificate.
        seconds: longest time for each step.
    """
    plain = socket.create_connection((HOST, port), seconds, (source, 0) if source else None)
    if not tls:
        return plain
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    encrypted = context.wrap_socket(plain, do_handshake_on_connect=False)
    try:
        encrypted.do_handshake()
    except OSError:
        encrypted.close()
        raise
    return encrypted


def status_of(connection: socket.socket) -> str:
    """Return the status that is answered; the name of an error without an answer."""
    try:
        answer = connection.recv(2**16)
    except OSError as error:
        return type(error).__name__
    return answer.split(b" ", 2)[1].decode() if answer.startswith(b"HTTP/") else "closed"


def withhold(port: int, path: str, count: int, length: int, addresses: int) -> dict[str, float]:
    """Send all of many bodies but the last byte; returns what came of each, by status."""
    outcomes: collections.Counter[str] = collections.Counter()

    def one(number: int) -> None:
        try:
            with connected(port, f"127.0.0.{2 + number % addresses}") as connection:
                connection.settimeout(30)
                connection.sendall(head(path, length) + b" " * (length - 1))
                outcomes[status_of(connection)] += 1
        except OSError as error:
            outcomes[type(error).__name__] += 1

    with ThreadPoolExecutor(count) as pool:
        pool.map(one, range(count))
    return dict(outcomes)


def flood(port: int, path: str, seconds: float, length: int, threads: int) -> dict[str, float]:
    """Ask without a pause, each question on a connection of its own."""
    outcomes: collections.Counter[str] = collections.Counter()
    until = time.monotonic() + seconds
    tls = path.startswith("/mutate")
    body = b'{"request": {"object": {"a": [' + b"[]," * (length // 3) + b"0]}}}"
    question = head(path, len(body)) + body
    if not tls:
        question = f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()

    def ask(number: int) -> None:
        while time.monotonic() < until:
            try:
                with connected(port, f"127.0.0.{2 + number}", tls=tls) as connection:
                    connection.sendall(question)
                    outcomes[status_of(connection)] += 1
            except OSError as error:
                outcomes[type(error).__name__] += 1

    with ThreadPoolExecutor(threads) as pool:
        pool.map(ask, range(threads))
    return dict(outcomes)


def repeat(port: int, what: str, seconds: float, threads: int) -> dict[str, float]:
    """Send the same repeatedly from 12 addresses, on a connection of its own each time."""
    outcomes: collections.Counter[str] = collections.Counter()
    until = time.monotonic() + seconds
    sent = CONTENTS[what]

    def one(number: int) -> None:
        while time.monotonic() < until:
            try:
                source = f"127.0.0.{2 + number % 12}"
                with connected(port, source, tls=what != "no-tls") as connection:
                    connection.sendall(sent)
                    outcomes["cut" if what == "cut" else status_of(connection)] += 1
            except OSError as error:
                outcomes[type(error).__name__] += 1

    with ThreadPoolExecutor(threads) as pool:
        pool.map(one, range(threads))
    return dict(outcomes)


def _question(item: bytes) -> bytes:
    """Return a question as large as it may be, full of the same items."""
    before = b'{"request": {"uid": "u", "object": {"metadata": {}, "items": ['
    count = (MAX_BODY_BYTES - 100) // (len(item) + 1)
    body = before + b",".join([item] * count) + b"]}}}"
    return head("/mutate", len(body)) + body


CONTENTS: dict[str, bytes] = {
    # Of all JSON, these take the most memory for their size.
    "nested-objects": _question(b'{"":' * 900 + b"0" + b"}" * 900),
    "nested-lists": _question(b"[" * 900 + b"]" * 900),
    "distinct-keys": _question(b'{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0}'),
    "cut": head("/mutate", MAX_BODY_BYTES) + b" " * (MAX_BODY_BYTES - 1),
    "heads": b"GET / HTTP/1.1\r\nHost: x\r\n" + (b"A: " + b"x" * 4000 + b"\r\n") * 100,
    "long-head": b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 2**20,
    "no-http": b"\r\nGET /x HTTP/1.1\r\n\r\n" * 50_000,
    "pipelined": (head("/mutate", 2) + b"{}") * 20_000,
    "upgraded": b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    + b"x" * 2**22,
    "no-tls": b"\x16\x03\x01\x40\x00" + b"x" * 2**21,
}


def hold(port: int, path: str, count: int) -> dict[str, float]:
    """Begin many requests at once from one address, say how many go on, and stay."""
    held = []
    for _ in range(count):
        with contextlib.suppress(OSError):
            opened = connected(port, "127.0.0.4", tls=path == "/mutate")
            opened.sendall(b"GET")
            held.append(opened)
    time.sleep(0.5)
    going_on = [each for each in held if goes_on(each)]
    print(json.dumps({"held": len(going_on)}), flush=True)
    time.sleep(30)
    return {}


def crowd(port: int, path: str, seconds: float, addresses: int, count: int) -> dict[str, float]:
    """Begin requests from many addresses, and each again as soon as it is ended."""
    until = time.monotonic() + seconds

    def again_and_again(number: int) -> None:
        source = f"127.0.1.{2 + number % addresses}"
        while time.monotonic() < until:
            try:
                with connected(port, source, tls=False) as connection:
                    connection.sendall(f"GET {path} HTTP/1.1\r\n".encode())
                    while connection.recv(100):
                        pass
            except OSError:
                time.sleep(0.02)

    with ThreadPoolExecutor(addresses * count) as pool:
        pool.map(again_and_again, range(addresses * count))
    return {}


def goes_on(connection: socket.socket) -> bool:
    """Return whether the other side has not ended a connection."""
    connection.settimeout(0.01)
    try:
        return connection.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


def reach(port: int, _path: str) -> dict[str, float]:
    """Connect by every address of this machine; returns 1 for those that are answered."""
    addresses = {HOST, "127.0.0.6", *socket.gethostbyname_ex(socket.gethostname())[2]}
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
        # Sends nothing.
        route.connect(("192.0.2.1", 9))
        addresses.add(route.getsockname()[0])
    reached = dict.fromkeys(sorted(addresses), 0.0)
    for address in addresses:
        with contextlib.suppress(OSError), socket.create_connection((address, port), 2):
            reached[address] = 1.0
    return reached


ATTACKS: dict[str, Callable[..., dict[str, float]]] = {
    each.__name__: each for each in (withhold, flood, repeat, hold, crowd, reach)
}


def main(name: str, port: str, path: str, *others: str) -> None:
    """Attack, and print what came of it."""
    print(json.dumps(ATTACKS[name](int(port), path, *map(json.loads, others))))


if __name__ == "__main__":
    main(*sys.argv[1:])
