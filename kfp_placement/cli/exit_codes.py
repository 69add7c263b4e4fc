"""Exit codes of the command line; they are part of the contract with scripts."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of all commands."""

    OK = 0
    """Done."""

    FAILURE = 1
    """Failure: input cannot be read, a check found errors, or the program is at fault."""

    USAGE = 2
    """Wrong usage: an option or argument makes no sense."""

    NOT_FOUND = 3
    """Missing input: a file, module, data set, run or step does not exist."""

    UNSCHEDULABLE = 4
    """Success, but a step fits no node or is refused; the output was printed."""

    TIMED_OUT = 5
    """Timeout of `watch`: the run did not end in the time given."""

    INTERRUPTED = 130
    """Interruption with Ctrl-C."""
