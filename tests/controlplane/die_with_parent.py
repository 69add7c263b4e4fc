"""Becomes another program that the kernel kills as soon as the process that started it ends.

Run as a script, with the parent's process id and the command as arguments. It needs nothing but the
standard library, and little of that: it runs once for every component.
"""

import os
import sys

_PR_SET_PDEATHSIG = 1
_SIGKILL = 9


def main() -> None:
    """Ask the kernel (Linux only), see that the parent has not ended before, and go."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0) != 0:
            sys.exit(f"prctl failed: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        sys.exit("the parent has ended")
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
