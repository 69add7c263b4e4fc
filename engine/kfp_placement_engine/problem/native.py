"""Calls of the C kernel: a simulation, HEFT, and the inner loop of the search.

Calls free the GIL, so searches run in threads.
"""

import ctypes
import weakref

import numpy as np

from kfp_placement_engine.problem.kernel import (
    KERNEL,
    PROGRESS,
    TERMS,
    Policy,
    address_of,
    native_of,
    optional,
    pointer,
)
from kfp_placement_engine.problem.kernel_tables import Array
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import FLOAT, INTEGER, Floats, Integers, PlacementProblem
from kfp_placement_engine.problem.schedule import Schedule, TieBreak


class _Population(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("genes", "keys", "terms", "random", "schedules")),
        ("size", ctypes.c_int64),
    ]


class SearchParameters(ctypes.Structure):
    """Parameters of the search; what they mean is in `search.h`."""

    _fields_ = [
        (name, ctypes.c_double)
        for name in (
            "crossover_rate",
            "window_share",
            "serial_share",
            "moved_share",
            "greedy_share",
            "deadline_share",
            "most_moves",
        )
    ]


def _raise_if_no_memory(is_short: bool) -> None:
    if is_short:
        raise MemoryError("no memory left for planning")


def simulate(
    problem: PlacementProblem, policy: Policy, placement: Placement, ties: TieBreak
) -> Schedule:
    """Simulate a run under a policy.

    Args:
        problem: problem to simulate.
        policy: policy that decides on nodes and order, as far as the placement does not.
        placement: planned nodes (READY, ORDERED, BACKFILL); priorities (ORDERED, BACKFILL, GREEDY,
            FULLEST), which for ORDERED must not contradict the precedences; and starts to wait for
            (ORDERED).
        ties: way in which ties fall.

    Raises:
        TypeError: an array has other elements or another size, or is not contiguous.
    """
    activities = problem.activities
    progress, terms = np.empty(activities, PROGRESS), np.empty(TERMS)
    is_done = KERNEL.simulate(
        ctypes.byref(native_of(problem)),
        ctypes.c_int64(policy),
        pointer(placement.gene_nodes, INTEGER, problem.genes),
        pointer(placement.priority, FLOAT, activities),
        optional(placement.not_before, FLOAT, activities),
        optional(ties.listed, INTEGER, problem.nodes),
        ctypes.c_int64(ties.draw),
        ctypes.c_void_p(address_of(progress)),
        ctypes.c_void_p(address_of(terms)),
    )
    _raise_if_no_memory(not is_done)
    start, begin, end, pull_seconds = (
        np.ascontiguousarray(progress[name]) for name in ("start", "begin", "end", "pull_seconds")
    )
    node, cause = (progress[name].astype(np.int64) for name in ("node", "cause"))
    return Schedule(
        start, begin, end, node, pull_seconds, cause, terms, problem.arrays.after_failure
    )


def heft(problem: PlacementProblem) -> tuple[Floats, Integers]:
    """Return [A] the starts and [A] the nodes (-1 = none) of HEFT's own schedule."""
    start, node = np.empty(problem.activities), np.empty(problem.activities, np.int64)
    is_done = KERNEL.heft(
        ctypes.byref(native_of(problem)),
        ctypes.c_void_p(address_of(start)),
        ctypes.c_void_p(address_of(node)),
    )
    _raise_if_no_memory(not is_done)
    return start, node


def best_of(
    problem: PlacementProblem, policy: Policy, plans: Integers, orders: Floats, terms: Floats
) -> int:
    """Simulate many plans, order after order, and find the best.

    Args:
        problem: problem to simulate.
        policy: policy of the simulation.
        plans: [P, G] planned nodes.
        orders: [O, A] priorities.
        terms: [5] terms to beat, infinite to accept any; they become the terms of the best plan.

    Returns:
        Number of the first best plan: the order's number times P, plus the plan's; -1 = none is
        better.
    """
    # Named, so that copies live until the call ends.
    flat_plans, flat_orders = plans.ravel(), orders.ravel()
    number: int = KERNEL.best_of(
        ctypes.byref(native_of(problem)),
        ctypes.c_int64(policy),
        pointer(flat_plans, INTEGER, len(plans) * problem.genes),
        ctypes.c_int64(len(plans)),
        pointer(flat_orders, FLOAT, len(orders) * problem.activities),
        ctypes.c_int64(len(orders)),
        pointer(terms, FLOAT, TERMS),
    )
    _raise_if_no_memory(number < -1)
    return number


def _open_search(owner: object, problem: PlacementProblem) -> ctypes.c_void_p:
    """Open the kernel's memory for a search; it is freed with the owner, who holds the problem."""
    native = native_of(problem)
    address = KERNEL.search_open(ctypes.byref(native))
    _raise_if_no_memory(not address)
    search = ctypes.c_void_p(address)
    # Freeing reads the problem's sizes, so the struct is kept until then.
    weakref.finalize(owner, lambda _: KERNEL.search_close(search), native)
    return search


class Population:
    """The plans that one island of the search works on; slot 0 is the best of them.

    Attributes:
        genes: [P, G] nodes.
        keys: [P, A] starts.
        terms: [P, 5] terms of the objective.
        random_state: [4] present state of the random generator.
    """

    def __init__(self, problem: PlacementProblem, size: int, random_state: Array) -> None:
        """Create a population whose plans the caller fills in.

        Args:
            problem: problem to solve.
            size: number of plans (P).
            random_state: [4] first state of the random generator, uint64.

        Raises:
            TypeError: the random state has another size or type.
        """
        self.genes = np.zeros((size, problem.genes), np.int64)
        self.keys = np.zeros((size, problem.activities))
        self.terms = np.full((size, TERMS), np.inf)
        self._problem = problem
        self._search: ctypes.c_void_p | None = None
        self.random_state = np.array(random_state)
        pointer(self.random_state, np.dtype(np.uint64), 4)
        self._schedules = np.zeros(1, np.int64)
        arrays = (self.genes, self.keys, self.terms, self.random_state, self._schedules)
        self._native = _Population(*map(address_of, arrays), size)
        # The kernel keeps their addresses.
        self._native.arrays = arrays

    @property
    def schedules(self) -> int:
        """Number of schedules that `improve` has simulated, including those that it gave up."""
        return int(self._schedules[0])

    def improve(self, parameters: SearchParameters, trials: int) -> int:
        """Try children, and return how many of them were the best so far."""
        if self._search is None:
            self._search = _open_search(self, self._problem)
        improved: int = KERNEL.improve(
            self._search,
            ctypes.byref(self._native),
            ctypes.byref(parameters),
            ctypes.c_int64(int(self._problem.dispatch == "ordered")),
            ctypes.c_int64(trials),
        )
        _raise_if_no_memory(improved < 0)
        return improved
