"""What the exit codes mean; they are part of the contract with scripts."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of all commands."""

    OK = 0
    """Done."""

    FAILURE = 1
    """Input that cannot be read, a check that found errors, or a failure of the program."""

    USAGE = 2
    """An option or argument that makes no sense."""

    NOT_FOUND = 3
    """A file, module, data set, run or step that is not there."""

    UNSCHEDULABLE = 4
    """A step fits no node; the output was still printed."""

    TIMED_OUT = 5
    """What was waited for did not happen in the time given."""

    INTERRUPTED = 130
    """Stopped with Ctrl-C."""
