"""Limits of the computation of bounds, counted in steps: a bound is the same on every machine."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BoundEffort:
    """Limits of work for the linear programs; the other bounds take a few milliseconds.

    Attributes:
        pattern_cells: cells of knapsack tables for `pattern-lp`; 100 million take half a second.
        kinds_variables: steps x kinds of nodes of the largest program for `kinds-lp`.
        kinds_work: iterations of its solver x entries of the program; 100 million take 0.1 to
            0.2 s.
    """

    pattern_cells: int
    kinds_variables: int
    kinds_work: int


IN_A_PLAN = BoundEffort(pattern_cells=20_000_000, kinds_variables=1_500, kinds_work=30_000_000)
"""Limits for planning: bounds take at most a tenth of the 2 s that a plan takes."""

THOROUGH = BoundEffort(pattern_cells=100_000_000, kinds_variables=10_000, kinds_work=1_000_000_000)
"""Limits for benchmarks, whose figures are read beside the bound."""
