"""The solver of linear programs that the extra `bounds` brings, kept quiet."""

from typing import Any


def find_solvers() -> Any:
    """Return the module highspy, or None where the extra is not installed."""
    try:
        import highspy
    except ImportError:
        return None
    return highspy


def quiet_solver(highspy: Any) -> Any:
    """Create a solver on one thread that does not write to stdout, which is for our own output.

    highspy 1.16 names itself on stdout when callbacks are enabled, which `Highs()` does before any
    option can be set.

    Args:
        highspy: module of the solver.
    """

    class Quiet(highspy.Highs):  # type: ignore[misc]
        def enableCallbacks(self) -> None:  # noqa: N802
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()

    solver = Quiet()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    return solver
