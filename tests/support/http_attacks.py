"""Attacks on an HTTP port, as a program of its own: what attacks must not slow down what measures.

`python -m tests.support.http_attacks NAME PORT ...`; it prints what came of it as JSON.
"""

import collections
import json
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator

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
    return context.wrap_socket(plain)


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

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
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

    all_threads = [threading.Thread(target=ask, args=(number,)) for number in range(threads)]
    for each in all_threads:
        each.start()
    for each in all_threads:
        each.join()
    return dict(outcomes)


def numbers(texts: list[str]) -> Iterator[float]:
    """Yield the numbers in texts."""
    for text in texts:
        yield float(text) if "." in text else int(text)


ATTACKS: dict[str, Callable[..., dict[str, float]]] = {"withhold": withhold, "flood": flood}


def main(name: str, port: str, path: str, *others: str) -> None:
    """Attack, and print what came of it."""
    print(json.dumps(ATTACKS[name](int(port), path, *numbers([*others]))))


if __name__ == "__main__":
    main(*sys.argv[1:])
