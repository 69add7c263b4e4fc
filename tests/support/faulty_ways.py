"""Faults around our processes: connections that break, and a clock that jumps."""

import contextlib
import mmap
import random
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

_RESET = struct.pack("ii", 1, 0)
"""Value of SO_LINGER with which a socket is closed by a reset."""

_CLOCK = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long long none, *offset = &none;
__attribute__((constructor)) static void attach(void) {
    const char *path = getenv("CLOCK_OFFSET");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0) return;
    void *seconds = mmap(0, sizeof none, PROT_READ, MAP_SHARED, file, 0);
    if (seconds != MAP_FAILED) offset = seconds;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *(volatile long long *)offset;
    return failed;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *out) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (out) *out = exact.tv_sec;
    return exact.tv_sec;
}
"""


class SettableClock:
    """The time of day of processes that are started with `variables`; the machine's stays as it is.

    Attributes:
        variables: variables of the environment of such a process.
    """

    def __init__(self, folder: Path) -> None:
        """Compile the library that replaces the clock of the C library."""
        source, library, offset = (folder / f"clock{end}" for end in (".c", ".so", ""))
        source.write_text(_CLOCK)
        offset.write_bytes(bytes(8))
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        self.variables = {"LD_PRELOAD": str(library), "CLOCK_OFFSET": str(offset)}
        with offset.open("r+b") as file:
            self._offset = mmap.mmap(file.fileno(), 8)

    def set(self, seconds: int) -> None:
        """Set the clock this number of seconds after the machine's; negative = before it."""
        self._offset[:] = struct.pack("q", seconds)


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
