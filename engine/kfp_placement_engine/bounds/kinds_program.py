"""The rows of the linear program over kinds of nodes, for one makespan in question.

Suppose a schedule ends at T or before. Let x[j, k] be 1 if step j is on a node of kind k, and S[j]
its end less its least time d[j, k] there. With heads h (not bound earlier) and tails q (what must
follow its end), of any such schedule:

- x[j, k] = 0 where h[j] + d[j, k] + q[j] > T, and sum over k of x[j, k] = 1 (Lenstra, Shmoys and
  Tardos 1990, section 2, prune assignments by T in this way);
- S[i] + sum over k of d[i, k] x[i, k] <= S[j] for every edge from i to j;
- S[j] + sum over k of d[j, k] x[j, k] <= T - q[j]; and h[j] <= S[j];
- in every window from a to b a step on kind k runs for at least

      e[j, k] = min(b - a, d[j, k], h[j] + d[j, k] - a, b - (T - q[j] - d[j, k]))

  or 0, wherever it starts between h[j] and T - q[j] - d[j, k]: the least is at one of the two ends
  (left and right shift; Lopez 1991, Baptiste, Le Pape and Nuijten 2001, section 3.3.3). What all
  steps take of a resource of the kind in the window is no more than there is:
  sum over j of e[j, k] x[j, k] request[j] <= (b - a) room[k].

Each row holds for every schedule that ends by T. With 0 <= x <= 1 instead of whole numbers, the
rows allow more. If no x and S fulfil all of them, no schedule ends by T.
"""

from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.bounds.critical_paths import Paths
from kfp_placement_engine.bounds.node_kinds import NodeKinds
from kfp_placement_engine.problem.problem import (
    Booleans,
    Floats,
    Integers,
    PlacementProblem,
    distinct,
    owners,
)

WINDOWS = 8
"""Number of heads, and of tails, from which windows are made; with twice as many the bounds of the
recorded workflow runs are 0.1% larger and take twice as long."""

RESOURCES = 2
"""Number of resources whose use is counted, the scarcest first."""

SLACK = 1e-9
"""Relative time by which a step may end after T, since sums are rounded."""


@dataclass(frozen=True)
class Rows:
    """Rows of the form: sum of values x variables <= limits.

    Attributes:
        starts: [rows + 1] row i is the entries from starts[i] to starts[i + 1].
        variables: [entries] number of the variable: j K + k for x[j, k], J K + a for S[a].
        values: [entries] factor of the variable.
        limits: [rows] right side, in seconds.
        is_elastic: [rows] whether a solver may exceed the limit by the seconds that it minimises.
    """

    starts: Integers
    variables: Integers
    values: Floats
    limits: Floats
    is_elastic: Booleans


@dataclass(frozen=True)
class Program:
    """The part of the program that is the same for every makespan.

    A is the number of activities, J of steps, K of kinds of nodes.

    Attributes:
        kinds: steps by kind of node.
        head, tail: [A] least times before the bind and after the end.
        least: [A] least time from bind to end.
        step_of: [A] number of the activity among the J steps, -1 = it is not a step.
        edges: [E, 2] activities of which one precedes the other.
        last: activities whose tail does not follow from an edge.
        heads, tails: seconds after the start and before the end at which windows begin and end.
        resources: resources that may be short, scarcest first.
    """

    kinds: NodeKinds
    head: Floats
    tail: Floats
    least: Floats
    step_of: Integers
    edges: Integers
    last: Integers
    heads: Floats
    tails: Floats
    resources: Integers

    def allowed(self, seconds: float) -> Booleans:
        """Return [J, K] whether a step may be on a kind of node if the run ends by this time."""
        steps = self.kinds.steps
        around = (self.head + self.tail)[steps]
        return np.asarray(around[:, None] + self.kinds.seconds <= seconds * (1 + SLACK))


def program_of(problem: PlacementProblem, kinds: NodeKinds, paths: Paths) -> Program:
    """Prepare the program.

    Args:
        problem: problem whose makespan is bounded.
        kinds: steps by kind of node.
        paths: longest paths through the activities.
    """
    arrays = problem.arrays
    step_of = np.full(problem.activities, -1, np.int64)
    step_of[kinds.steps] = np.arange(kinds.steps.size)
    after = owners(arrays.predecessors_start)
    edges = np.stack([arrays.predecessors, after], axis=1)
    by_edges = np.zeros(problem.activities)
    np.maximum.at(by_edges, edges[:, 0], (paths.shortest + paths.tail)[edges[:, 1]])
    sinks = np.diff(arrays.successors_start) == 0
    tails = paths.tail[kinds.steps]
    load = np.where(np.isfinite(kinds.seconds), kinds.seconds, 0.0)[:, :, None] * kinds.shares
    return Program(
        kinds=kinds,
        head=paths.head,
        tail=paths.tail,
        least=paths.shortest,
        step_of=step_of,
        edges=edges,
        last=np.flatnonzero(sinks | (paths.tail > by_edges)),
        heads=_moments(paths.head[kinds.steps], paths.end[kinds.steps], kinds),
        tails=_moments(tails, tails + paths.shortest[kinds.steps], kinds),
        resources=np.argsort(-load.sum(axis=(0, 1)), kind="stable")[:RESOURCES],
    )


def rows_of(program: Program, seconds: float, allowed: Booleans) -> Rows:
    """Return the rows that hold for every schedule that ends by a time.

    Args:
        program: part that is the same for every makespan.
        seconds: the time T.
        allowed: [J, K] kinds of nodes that steps may be on then.

    Returns:
        The rows. Where there is one kind of nodes they are those of windows alone, since the others
        hold for every makespan that is at least the critical path.
    """
    blocks = _window_rows(program, seconds, allowed)
    if not (blocks and program.kinds.is_single):
        blocks = [_precedence_rows(program, allowed), _end_rows(program, seconds, allowed), *blocks]
    counts = np.concatenate([np.diff(block.starts) for block in blocks])
    return Rows(
        starts=np.concatenate([[0], np.cumsum(counts)]),
        variables=np.concatenate([block.variables for block in blocks]),
        values=np.concatenate([block.values for block in blocks]),
        limits=np.concatenate([block.limits for block in blocks]),
        is_elastic=np.concatenate([block.is_elastic for block in blocks]),
    )


def _moments(outer: Floats, inner: Floats, kinds: NodeKinds) -> Floats:
    """Return the times at which windows begin, or seen from the end of the run, at which they end.

    Where there is one kind of nodes, the part of a step in a window may change at its outer and its
    inner time. With several kinds the inner times gain little for the work that they take.

    Args:
        outer: heads of the steps; or their tails.
        inner: earliest ends of the steps; or the same from the end of the run.
        kinds: steps by kind of node.
    """
    if kinds.is_single:
        return distinct(np.concatenate([_some(outer), _some(inner)]))
    return _some(outer)


def _some(values: Floats) -> Floats:
    """Return `WINDOWS` of the different values, evenly spaced among them."""
    different = distinct(values)
    if different.size <= WINDOWS:
        return different
    return different[np.linspace(0, different.size - 1, WINDOWS).astype(np.int64)]


def _precedence_rows(program: Program, allowed: Booleans) -> Rows:
    before, after = program.edges.T
    ends = _ends(program, before, allowed)
    starts = program.kinds.seconds.size + after
    return _sorted_rows(
        rows=np.concatenate([ends.rows, np.arange(before.size)]),
        variables=np.concatenate([ends.variables, starts]),
        values=np.concatenate([ends.values, np.full(before.size, -1.0)]),
        limits=-ends.constants,
        is_elastic=np.zeros(before.size, np.bool_),
    )


def _end_rows(program: Program, seconds: float, allowed: Booleans) -> Rows:
    ends = _ends(program, program.last, allowed)
    limits = seconds - program.tail[program.last] - ends.constants
    elastic = np.ones(limits.size, np.bool_)
    return _sorted_rows(ends.rows, ends.variables, ends.values, limits, elastic)


@dataclass(frozen=True)
class _Ends:
    """Entries of rows, each with the end of an activity less a constant."""

    rows: Integers
    variables: Integers
    values: Floats
    constants: Floats


def _ends(program: Program, activities: Integers, allowed: Booleans) -> _Ends:
    """Return the ends S[a] + sum over k of d[a, k] x[a, k]; S[a] + the least time if not steps."""
    seconds, step = program.kinds.seconds, program.step_of[activities]
    of_steps = np.flatnonzero(step >= 0)
    row, kind = np.nonzero(allowed[step[of_steps]])
    chosen = step[of_steps][row]
    return _Ends(
        rows=np.concatenate([np.arange(activities.size), of_steps[row]]),
        variables=np.concatenate([seconds.size + activities, chosen * seconds.shape[1] + kind]),
        values=np.concatenate([np.ones(activities.size), seconds[chosen, kind]]),
        constants=np.where(step >= 0, 0.0, program.least[activities]),
    )


def _sorted_rows(
    rows: Integers, variables: Integers, values: Floats, limits: Floats, is_elastic: Booleans
) -> Rows:
    order = np.argsort(rows, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=limits.size))])
    return Rows(starts, variables[order], values[order], limits, is_elastic)


def _window_rows(program: Program, seconds: float, allowed: Booleans) -> list[Rows]:
    """Return the rows for the use of each kind's resources in each window, in seconds of them."""
    kinds = program.kinds
    head = program.head[kinds.steps][:, None]
    latest = (seconds - program.tail[kinds.steps])[:, None]
    moments = distinct(np.concatenate([program.heads, seconds - program.tails]))
    moments = moments[(moments >= 0) & (moments <= seconds)]
    take = np.where(allowed, kinds.seconds, 0.0)
    rows = []
    for first, begin in enumerate(moments):
        left = np.minimum(take, head + take - begin)
        for end in moments[first + 1 :]:
            least = np.minimum(np.minimum(left, end - latest + take), end - begin)
            least = np.where(allowed, np.maximum(least, 0.0), 0.0)
            rows += _rows_of_window(program, least, float(end - begin))
    return rows


def _rows_of_window(program: Program, least: Floats, length: float) -> list[Rows]:
    """Return the rows of one window, without those that hold wherever the steps are."""
    rows = []
    for resource in program.resources:
        use = least * program.kinds.shares[:, :, resource]
        for kind in np.flatnonzero(use.sum(axis=0) > length):
            steps = np.flatnonzero(use[:, kind])
            rows.append(
                Rows(
                    starts=np.array([0, steps.size], np.int64),
                    variables=steps * use.shape[1] + kind,
                    values=use[steps, kind],
                    limits=np.array([length]),
                    is_elastic=np.ones(1, np.bool_),
                )
            )
    return rows
