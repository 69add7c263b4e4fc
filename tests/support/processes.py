"""Processes that a test did not start itself."""

import os
from pathlib import Path


def is_alive(pid: int) -> bool:
    """Whether there is such a process that is not just waiting to be noticed dead."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] in "ZX")
