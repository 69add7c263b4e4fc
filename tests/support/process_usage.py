"""Memory, time and children of a process, as the operating system says (Linux)."""

import contextlib
from pathlib import Path

_TICKS_PER_SECOND = 100
"""Ticks of /proc in a second on every Linux that matters here."""


def memory_bytes(pid: int) -> int:
    """Memory of a process in RAM.

    Raises:
        OSError: there is no such process, or this is not Linux.
    """
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return 1024 * int(line.split()[1])
    return 0


def cpu_seconds(pid: int) -> float:
    """Time that a process has computed for, that of its children that have ended included.

    Raises:
        OSError: there is no such process, or this is not Linux.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS_PER_SECOND


def descendants(pid: int) -> list[int]:
    """Processes that this one has started, and theirs; none of a process that has ended."""
    direct: list[int] = []
    with contextlib.suppress(FileNotFoundError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            # A thread, or the whole process, may end between any two lines here.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                direct += map(int, (task / "children").read_text().split())
    return [process for child in direct for process in (child, *descendants(child))]


def family_memory_bytes(pid: int) -> int:
    """Memory in RAM of a process and of those that it has started.

    Raises:
        OSError: there is no such process, or this is not Linux.
    """
    total = memory_bytes(pid)
    for child in descendants(pid):
        with contextlib.suppress(OSError):  # It has just ended.
            total += memory_bytes(child)
    return total
