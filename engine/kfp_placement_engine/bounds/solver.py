"""The solver of linear programs that the extra `bounds` brings, kept quiet."""

from typing import Any


def find_solvers() -> Any:
    """The module highspy, or None where the extra is not installed."""
    try:
        import highspy
    except ImportError:
        return None
    return highspy


def quiet_solver(highspy: Any) -> Any:
    """A solver on one thread that writes nothing: stdout is for what was asked for.

    highspy 1.16 names itself on stdout when callbacks are enabled, which `Highs()` does before any
    option can be set.

    Args:
        highspy: the module.
    """

    class Quiet(highspy.Highs):  # type: ignore[misc]
        def enableCallbacks(self) -> None:  # noqa: N802
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()

    solver = Quiet()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    return solver
