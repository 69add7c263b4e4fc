"""Free ports on the loopback address."""

import atexit
import random
import socket

LOOPBACK = "127.0.0.1"
# Below the range from which kernels take ports for outgoing connections, so that none of those can
# take a port between our asking for it and its use, nor while a server restarts.
FIRST_PORT, LAST_PORT = 10_240, 32_000
"""Range from which ports are given away."""

_TRIES = 1_000

_reserved: list[socket.socket] = []
"""UDP sockets at the ports given away. Nothing else uses UDP there: who asks next, in whatever
process, sees that a port is taken before a server listens on it."""


def free_ports(count: int) -> list[int]:
    """Return this many different ports on which nothing listens; nobody else is given them."""
    chooser = random.SystemRandom()
    ports: list[int] = []
    for _ in range(_TRIES):
        if len(ports) == count:
            return ports
        port = chooser.randint(FIRST_PORT, LAST_PORT)
        if _is_free(port) and _reserve(port):
            ports.append(port)
    raise OSError(f"no {count} free ports on {LOOPBACK} from {FIRST_PORT} to {LAST_PORT}")


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _reserve(port: int) -> bool:
    """Keep a port for this process until it ends; False = another has it."""
    keeping = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        keeping.bind((LOOPBACK, port))
    except OSError:
        keeping.close()
        return False
    _reserved.append(keeping)
    return True


@atexit.register
def _give_back() -> None:
    while _reserved:
        _reserved.pop().close()
