"""Errors and warnings of the SDK.

::

    PlacementError
    ├── MarkValueError       a value that Kubernetes, KFP or the planner would refuse (a ValueError)
    ├── NotConstantError     a pipeline parameter where only constants can stand (a TypeError)
    ├── UnknownOptionError   an option that does not exist (a TypeError)
    ├── UnknownStepError     a step that the run does not have (a KeyError)
    ├── ConflictError        contradicts what the author has set by other means (a ValueError)
    ├── UsageError           a function used on something it is not for (a TypeError)
    ├── MissingLibraryError  a library that is not installed (an ImportError)
    └── RunError             a run or a cluster that cannot be read or planned

    PlacementWarning         a mark that will have no effect (a UserWarning)

Every message names the step, the value and what to do. The built-in bases let code that knows
nothing of this package catch what it would expect.
"""

from typing_extensions import override

_NOT_AUTHORS = frozenset(
    ("IPython", "contextlib", "kfp", "kfp_placement", "kfp_placement_engine", "kfp_placement_kube")
)
"""Packages whose lines a notebook leaves out of our tracebacks."""


class PlacementError(Exception):
    """Base of all errors that the SDK raises."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows: the author's own lines, then the message.

        IPython's own traceback shows ten lines of code for every call inside the libraries.
        """
        import traceback

        calls = [
            (frame, line)
            for frame, line in traceback.walk_tb(self.__traceback__)
            if str(frame.f_globals.get("__name__")).partition(".")[0] not in _NOT_AUTHORS
        ]
        shown = [
            "Traceback (most recent call last):\n",
            *traceback.StackSummary.extract(calls).format(),
            *traceback.format_exception_only(self),
        ]
        return "".join(shown).splitlines()


class MarkValueError(PlacementError, ValueError):
    """A value that Kubernetes, KFP or the planner would refuse."""


class NotConstantError(PlacementError, TypeError):
    """A pipeline parameter or a step's output where only a constant can stand."""


class UnknownOptionError(PlacementError, TypeError):
    """An option that does not exist; the message names the closest one that does."""


class UnknownStepError(PlacementError, KeyError):
    """A step that the run does not have; the message names the closest one that it has."""

    # A KeyError shows its message quoted.
    @override
    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ConflictError(PlacementError, ValueError):
    """A mark that contradicts what the author has set by other means."""


class UsageError(PlacementError, TypeError):
    """A function or decorator used on something it is not for."""


class MissingLibraryError(PlacementError, ImportError):
    """A library that is not installed; the message says how to install it."""


class RunError(PlacementError):
    """A run or a cluster that cannot be read or planned; its cause is the engine's error."""


class PlacementWarning(UserWarning):
    """A mark that will have no effect."""
