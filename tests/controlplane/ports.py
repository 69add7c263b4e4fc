"""Free ports on the loopback address."""

import random
import socket

LOOPBACK = "127.0.0.1"
# Below the range from which kernels take ports for outgoing connections, so that none of those can
# take a port between our asking for it and its use, nor while a server restarts.
_FIRST, _LAST = 10_240, 32_000
_TRIES = 1_000


def free_ports(count: int) -> list[int]:
    """So many different ports on which nothing listens."""
    chooser = random.SystemRandom()
    found: list[int] = []
    for _ in range(_TRIES):
        if len(found) == count:
            return found
        port = chooser.randint(_FIRST, _LAST)
        if port not in found and _is_free(port):
            found.append(port)
    raise OSError(f"no {count} free ports on {LOOPBACK} from {_FIRST} to {_LAST}")


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
