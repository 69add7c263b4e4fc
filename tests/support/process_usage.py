"""Memory, time and children of a process, as the operating system says (Linux)."""

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
    """Processes that this one has started, and theirs."""
    children = Path(f"/proc/{pid}/task")
    direct = [
        int(child)
        for task in children.iterdir()
        for child in (task / "children").read_text().split()
    ]
    return [process for child in direct for process in (child, *descendants(child))]
