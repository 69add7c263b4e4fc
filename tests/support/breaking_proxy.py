"""A way to an API server whose connections break."""

import contextlib
import random
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Self

_RESET = struct.pack("ii", 1, 0)
"""Value of SO_LINGER with which a socket is closed by a reset."""


class BreakingProxy:
    """A TCP proxy on a port of its own, whose connections break while there is a storm.

    Attributes:
        port: the port.
        resets: number of connections that were reset.
    """

    def __init__(self, target_port: int, seed: int = 1) -> None:
        """Take a port.

        Args:
            target_port: port of this machine to which connections go.
            seed: seed that decides which connections break.
        """
        self._target = ("127.0.0.1", target_port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._open: dict[socket.socket, socket.socket] = {}
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.port: int = self._server.getsockname()[1]
        self.resets = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()
        self._break(1.0)

    @contextlib.contextmanager
    def storm(self, pause_seconds: float = 0.2, share: float = 0.3) -> Iterator[None]:
        """Reset that share of all connections after each pause."""
        over = threading.Event()

        def rage() -> None:
            while not over.wait(pause_seconds):
                self._break(share)

        thread = threading.Thread(target=rage)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _break(self, share: float) -> None:
        with self._lock:
            chosen = [each for each in self._open if self._random.random() < share]
            pairs = [(each, self._open.pop(each)) for each in chosen]
        for pair in pairs:
            self.resets += 1
            for each in pair:
                with contextlib.suppress(OSError):
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                    each.shutdown(socket.SHUT_RD)
                each.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._server.accept()
                try:
                    far = socket.create_connection(self._target)
                except OSError:
                    near.close()
                    continue
                with self._lock:
                    self._open[near] = far
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with self._lock:
            for each in (source, sink):
                self._open.pop(each, None)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
