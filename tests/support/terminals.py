"""Programs on a terminal."""

import os
import pty


def in_terminal(command: list[str], **environment: str) -> tuple[str, int]:
    """Run a program on a terminal; return what the terminal receives, and the exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, {**os.environ, **environment})
    received = b""
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:
            break
        if not chunk:
            break
        received += chunk
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return received.decode(), os.waitstatus_to_exitcode(status)
