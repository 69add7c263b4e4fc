"""Bounds by windows of time and kinds of nodes: not every step gets a fast node.

For a makespan T it asks whether the rows of `kinds_program` can hold. Where they cannot, no
schedule ends by T (destructive bounds, Klein and Scholl 1999). T is searched for by growing steps,
then by halving.

Where nodes are of several kinds, the rows make a linear program. The bound needs no trust in its
solver, whose prices y >= 0 of the rows are only a proposal: since every row holds for a schedule
that ends by T, so does their sum, weighted by y. If its left side is larger than its right one even
with every step on the kind, and every S at the end of its range, where that is least, there is no
such schedule (Farkas' lemma; safe bounds of Neumaier and Shcherbina 2004). So the solver may stop
at any time. To have prices for rows that cannot hold, it minimises by how many seconds the ends and
the windows must be exceeded.

Where all nodes are of one kind there is nothing to choose, and one window that is too full is the
proof; this needs no solver (energetic reasoning, Erschler, Lopez and Thuriot 1991).
"""

from typing import Any

import numpy as np

from kfp_placement_engine.bounds.critical_paths import Paths
from kfp_placement_engine.bounds.effort import BoundEffort
from kfp_placement_engine.bounds.kinds_program import Program, Rows, program_of, rows_of
from kfp_placement_engine.bounds.node_kinds import node_kinds
from kfp_placement_engine.bounds.solver import find_solvers, quiet_solver
from kfp_placement_engine.plans.comparison import Bound
from kfp_placement_engine.problem.problem import Booleans, Floats, PlacementProblem, owners

PRECISION = 1e-3
"""Relative precision with which T is searched for."""

GROWTH = 4.0
"""Next step of the search as a multiple of the gain so far, as long as makespans are refuted."""

FARTHEST = 4.0
"""Largest T that is tried, as a multiple of the largest other bound."""

WORK_OF_A_PROGRAM = 20
"""Work of making a program, in iterations of its solver."""

LEAST_GAP = 1e-7
"""Smallest difference of the two sides of the sum that counts, as a share of the summed amounts."""


def kinds_bound(
    problem: PlacementProblem,
    usable: Booleans,
    paths: Paths,
    interval: tuple[float, float],
    effort: BoundEffort,
) -> Bound | None:
    """Return the bound, if it is larger than the other ones.

    Args:
        problem: problem whose makespan is bounded.
        usable: [A, N] nodes that each activity may go to.
        paths: longest paths through the activities.
        interval: the largest other bound, and the makespan of some schedule, or infinity.
        effort: limits of the computation.

    Returns:
        `kinds-lp`, or `windows` where there is one kind of nodes; None where the bound is not
        larger, the solver is missing, or the program would be too large.
    """
    kinds = node_kinds(problem, usable, paths, effort.kinds_variables)
    if kinds is None:
        return None
    highspy = None if kinds.is_single else find_solvers()
    if highspy is None and not kinds.is_single:
        return None
    search = _Search(highspy, program_of(problem, kinds, paths), effort.kinds_work)
    seconds = search.bound_seconds(*interval)
    name = "windows" if kinds.is_single else "kinds-lp"
    return Bound(seconds, name) if seconds > interval[0] else None


class _Search:
    """A search for the largest makespan that can be refuted."""

    def __init__(self, highspy: Any, program: Program, work: int) -> None:
        self._highspy = highspy
        self._program = program
        self._work = work

    def bound_seconds(self, least: float, reached: float) -> float:
        """Return the bound, between another bound and the makespan that a schedule reaches."""
        low, high = least, FARTHEST * least
        # Most often there is nothing to gain, as the first program shows. Programs of a makespan
        # that is far too long take most work and prove nothing, so the steps grow slowly.
        tried = least * (1 + PRECISION)
        while tried < high and high > low * (1 + PRECISION) and self._work > 0:
            # A makespan that a schedule reaches cannot be refuted: no program is needed.
            if tried < reached and self._is_refuted(tried):
                low = tried
            else:
                high = tried
            tried = min((low + high) / 2, low + GROWTH * (low - least))
        return low

    def _is_refuted(self, seconds: float) -> bool:
        """Return whether it is proved that no schedule ends by this time."""
        allowed = self._program.allowed(seconds)
        if not allowed.any(axis=1).all():
            return True
        rows = rows_of(self._program, seconds, allowed)
        prices = self._prices(rows, allowed)
        return _is_contradiction(self._program, rows, prices, seconds, allowed)

    def _prices(self, rows: Rows, allowed: Booleans) -> Floats:
        """Return [rows] proposed prices, and count the work that they took."""
        if self._highspy is None:
            self._work -= rows.variables.size
            return _price_of_the_fullest(rows)
        size = rows.variables.size + rows.limits.size
        most = max(1, self._work // size)
        prices, iterations = solve_rows(self._highspy, self._program, rows, allowed, most)
        self._work -= size * (WORK_OF_A_PROGRAM + iterations)
        return prices


def _price_of_the_fullest(rows: Rows) -> Floats:
    """Return [rows] prices: 1 for the fullest window, where there is one kind of nodes."""
    use = np.bincount(owners(rows.starts), weights=rows.values, minlength=rows.limits.size)
    prices = np.zeros(rows.limits.size)
    if prices.size:
        prices[np.argmax(use - rows.limits)] = 1.0
    return prices


def solve_rows(
    highspy: Any, program: Program, rows: Rows, allowed: Booleans, iterations: int
) -> tuple[Floats, int]:
    """Return [rows] prices after at most this many iterations, and the number of iterations."""
    solver = quiet_solver(highspy)
    # The dual simplex method, without presolving.
    options = {
        "solver": "simplex",
        "simplex_strategy": 1,
        "presolve": "off",
        "simplex_iteration_limit": iterations,
    }
    for option, value in options.items():
        solver.setOptionValue(option, value)
    solver.passModel(_model(highspy, program, rows, allowed))
    solver.run()
    prices = -np.array(solver.getSolution().row_dual, np.float64)[allowed.shape[0] :]
    if prices.size != rows.limits.size:  # stopped before there were any
        prices = np.zeros(rows.limits.size)
    return np.maximum(prices, 0.0), int(solver.getInfo().simplex_iteration_count)


def _model(highspy: Any, program: Program, rows: Rows, allowed: Booleans) -> Any:
    """Return the rows as a minimisation of its last variable: the seconds by which they fail."""
    (steps, kinds), starts = allowed.shape, program.head.size
    exceeded = allowed.size + starts
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = exceeded + 1, steps + rows.limits.size
    model.col_cost_ = np.append(np.zeros(exceeded), 1.0)
    model.col_lower_ = np.concatenate([np.zeros(allowed.size), program.head, [0.0]])
    model.col_upper_ = np.append(allowed.ravel().astype(np.float64), np.full(starts + 1, np.inf))
    model.row_lower_ = np.append(np.ones(steps), np.full(rows.limits.size, -np.inf))
    model.row_upper_ = np.append(np.ones(steps), rows.limits)
    # One row for each step: it is on one node. Then the others, with one more entry if elastic.
    ends = rows.starts[1:][rows.is_elastic]
    counts = np.append(np.full(steps, kinds), np.diff(rows.starts) + rows.is_elastic)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.append(0, np.cumsum(counts)).astype(np.int32)
    model.a_matrix_.index_ = np.append(
        np.arange(allowed.size), np.insert(rows.variables, ends, exceeded)
    ).astype(np.int32)
    model.a_matrix_.value_ = np.append(np.ones(allowed.size), np.insert(rows.values, ends, -1.0))
    return model


def _is_contradiction(
    program: Program, rows: Rows, prices: Floats, seconds: float, allowed: Booleans
) -> bool:
    """Return whether the rows, weighted by prices, cannot hold together."""
    steps = program.kinds.seconds
    weights = prices[owners(rows.starts)] * rows.values
    sums = np.bincount(rows.variables, weights=weights, minlength=steps.size + program.head.size)
    of_kinds = np.where(allowed, sums[: steps.size].reshape(steps.shape), np.inf).min(axis=1)
    # S is the end less the time on the kind, which is not below the least over all kinds.
    latest = seconds - program.tail - program.least
    of_starts = sums[steps.size :] * np.where(sums[steps.size :] > 0, program.head, latest)
    amounts = np.abs(of_kinds).sum() + np.abs(of_starts).sum() + prices @ np.abs(rows.limits)
    return bool(of_kinds.sum() + of_starts.sum() - prices @ rows.limits > LEAST_GAP * amounts)
