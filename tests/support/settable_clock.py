"""A time of day that a test sets for the processes that it starts."""

import mmap
import struct
import subprocess
from pathlib import Path

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
