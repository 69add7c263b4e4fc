"""Processes: whether they are alive, and how to end them."""

import os
import subprocess
from pathlib import Path

_END_SECONDS = 20.0
"""A machine with much to do takes long over the end of a server."""


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to end; one that is still there after a while is killed."""
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def is_alive(pid: int) -> bool:
    """Return whether a process is there, and is more than a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] in "ZX")
