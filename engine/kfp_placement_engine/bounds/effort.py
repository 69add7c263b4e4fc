"""How much the bounds may compute, counted: a bound is the same on every machine."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BoundEffort:
    """Limits of work for the linear programs; the other bounds take a few milliseconds.

    Attributes:
        pattern_cells: cells of knapsack tables for `pattern-lp`; 100 million take half a second of
            processor time.
    """

    pattern_cells: int


IN_A_PLAN = BoundEffort(pattern_cells=30_000_000)
"""At most a tenth of the 2 s that a plan takes."""

THOROUGH = BoundEffort(pattern_cells=100_000_000)
"""For benchmarks, whose figures are read beside the bound."""
