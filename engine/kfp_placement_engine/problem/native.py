"""The C kernel (`engine/kernel`), loaded once and called through ctypes.

Calls free the GIL, so searches run in threads. Arrays are passed as they are: every field of
`ProblemArrays` has its twin, in the same order, in `problem.h`, and of `ProblemTables` in
`tables.h`; the sizes of both sides are compared when the library is loaded.
"""

import ctypes
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from kfp_placement_engine.problem.kernel_tables import ACTIVITY, ProblemTables, tables_of
from kfp_placement_engine.problem.problem import (
    FLOAT,
    INTEGER,
    Floats,
    Integers,
    PlacementProblem,
    ProblemArrays,
    check_arrays,
)

KUBE_DEFAULT = 0
STRICT_FIFO = 1
READY = 2
ORDERED = 3
BACKFILL = 4
GREEDY = 5
FULLEST = 6
"""Policies of the simulation; their meaning is in `problem.h`."""

TERMS = 5
"""Number of terms of the objective."""

Array = np.ndarray[Any, Any]

_NO_MEMORY = "no memory left for the plan's search"

_WORD = np.dtype(np.uint64)
_RANDOM_STATE = 4
"""Number of words of a random generator's state."""

_OBJECTIVES = {"completion": 0, "makespan": 0, "packing": 1, "paper": 2}
"""Objective -> its number; `makespan` is `completion` with a limit of 0 for the latest end."""
_TIES = {"random": 0, "heap": 1, "first": 2}
_SCALARS = (
    "direct",
    "version_136",
    "ties",
    "objective",
    "exclusive_claims",
    "activities",
    "nodes",
    "resources",
    "classes",
    "genes",
)
_COUNTS = ("images", "claim_count", "iterations", "loops", "runs")


def _element(hint: object) -> Any:
    """Return the type of a field of a C struct: a number, or a pointer to an array."""
    numbers: dict[object, Any] = {float: ctypes.c_double, int: ctypes.c_int64}
    return numbers.get(hint, ctypes.c_void_p)


class _Tables(ctypes.Structure):
    """The tables' C struct, which keeps the arrays that it points to."""

    _fields_ = [(name, _element(hint)) for name, hint in ProblemTables.__annotations__.items()]

    def __init__(self, tables: ProblemTables) -> None:
        super().__init__(
            *(_address(each) if isinstance(each, np.ndarray) else each for each in tables)
        )
        self.tables = tables


class _Problem(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ProblemArrays._fields),
        ("topological", ctypes.c_void_p),
        ("tables", ctypes.POINTER(_Tables)),
        ("link_rate", ctypes.c_double),
        ("end_limit", ctypes.c_double),
        *((name, ctypes.c_int64) for name in (*_SCALARS, *_COUNTS)),
    ]


PROGRESS = np.dtype(
    [
        *((name, FLOAT) for name in ("start", "begin", "end", "pull_seconds", "arrival")),
        *((name, np.int32) for name in ("node", "cause", "queue_of", "sooner", "later", "waiting")),
    ],
    align=True,
)
"""Record of an activity's progress in a simulation: `Progress` of `state.h`."""


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


def _load() -> ctypes.CDLL:
    suffix = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
    path = Path(__file__).parents[1] / f"_kernel{suffix}"
    if not path.exists():
        raise ImportError(
            f"the compiled kernel {path.name} is missing; build it with `make kernel`"
        )
    library = ctypes.CDLL(str(path))
    for name in ("sizes", "simulate", "improve", "heft", "best_of"):
        getattr(library, name).restype = ctypes.c_int64
    library.search_open.restype = ctypes.c_void_p
    structs = ctypes.sizeof(_Problem) + ctypes.sizeof(_Tables)
    if library.sizes() != structs + ACTIVITY.itemsize + PROGRESS.itemsize:
        raise ImportError(
            "the compiled kernel does not match this version; rebuild it with `make kernel`"
        )
    return library


KERNEL = _load()
"""The compiled library."""

_prepared: "weakref.WeakKeyDictionary[PlacementProblem, _Problem]" = weakref.WeakKeyDictionary()


def _address(array: Array) -> int:
    """Return the address of an array for the kernel.

    Raises:
        TypeError: the array is not contiguous.
    """
    if not array.flags.c_contiguous:
        raise TypeError(f"the kernel takes no {array.dtype.name} array that is not contiguous")
    return int(array.ctypes.data)


def _pointer(array: Array, elements: np.dtype[Any], size: int) -> ctypes.c_void_p:
    """Return a pointer to a caller's array, of which the kernel reads this many elements.

    Raises:
        TypeError: the array has other elements or another size, or is not contiguous.
    """
    if array.dtype != elements or array.shape != (size,):
        raise TypeError(
            f"the kernel reads {elements} [{size}], not {array.dtype.name} {list(array.shape)}"
        )
    return ctypes.c_void_p(_address(array))


def _optional(array: Array, elements: np.dtype[Any], size: int) -> ctypes.c_void_p | None:
    return _pointer(array, elements, size) if array.size else None


def _native(problem: PlacementProblem) -> _Problem:
    """Return the problem's C struct; it borrows the arrays, which live as long as the problem."""
    prepared = _prepared.get(problem)
    if prepared is not None:
        return prepared
    arrays = problem.arrays
    check_arrays(arrays)
    native = _Problem()
    for name in ProblemArrays._fields:
        setattr(native, name, _address(getattr(arrays, name)))
    native.topological = _pointer(problem.topological, INTEGER, problem.activities)
    native.link_rate = problem.link_bytes_per_second
    native.end_limit = problem.end_limit_seconds
    native.direct = int(problem.direct_transfers)
    native.version_136 = int(problem.kube_version >= (1, 36))
    native.ties = _TIES[problem.tie_rule]
    native.objective = _OBJECTIVES[problem.objective]
    native.exclusive_claims = int(arrays.exclusive.sum())
    native.activities, native.resources = arrays.requests.shape
    native.classes, native.nodes = arrays.feasible.shape
    native.genes = arrays.allowed.shape[0]
    native.images = arrays.image_bytes.shape[0]
    native.claim_count = int(arrays.claims.max()) + 1 if arrays.claims.size else 0
    native.iterations = arrays.iteration_size.shape[0]
    native.loops = arrays.loop_parallelism.shape[0]
    native.runs = arrays.run_weight.shape[0]
    native.tables = ctypes.pointer(_Tables(tables_of(problem)))
    KERNEL.find_least_times(ctypes.byref(native))
    _prepared[problem] = native
    return native


def _checked(result: int) -> int:
    if result < 0:
        raise MemoryError(_NO_MEMORY)
    return result


def simulate(
    problem: PlacementProblem,
    policy: int,
    planned: Integers,
    priority: Floats,
    not_before: Floats,
    listed: Integers,
    draw: int = 0,
) -> dict[str, Any]:
    """Simulate a run under a policy.

    Args:
        problem: problem to simulate.
        policy: number of the policy, such as `READY`.
        planned: [G] planned node of each gene (READY, ORDERED, BACKFILL).
        priority: [A] numbers, smaller ones are more urgent (ORDERED, BACKFILL, GREEDY, FULLEST);
            for ORDERED they must not contradict the precedences.
        not_before: [A] planned starts to wait for (ORDERED), or empty.
        listed: [N] nodes as kube-scheduler lists them; empty = as numbered.
        draw: seed, 0 or more, of kube-scheduler's random ties (before 1.35).

    Returns:
        Arrays by the fields of `simulation.Schedule`.
    """
    activities = problem.activities
    progress, terms = np.empty(activities, PROGRESS), np.empty(TERMS)
    done = KERNEL.simulate(
        ctypes.byref(_native(problem)),
        ctypes.c_int64(policy),
        _pointer(planned, INTEGER, problem.genes),
        _pointer(priority, FLOAT, activities),
        _optional(not_before, FLOAT, activities),
        _optional(listed, INTEGER, problem.nodes),
        ctypes.c_int64(draw),
        ctypes.c_void_p(_address(progress)),
        ctypes.c_void_p(_address(terms)),
    )
    _checked(done - 1)
    times = ("start", "begin", "end", "pull_seconds")
    return {
        **{name: np.ascontiguousarray(progress[name]) for name in times},
        **{name: progress[name].astype(np.int64) for name in ("node", "cause")},
        "terms": terms,
    }


def heft(problem: PlacementProblem) -> tuple[Floats, Integers]:
    """Return [A] the starts and [A] the nodes (-1 = none) of HEFT's own schedule."""
    start, node = np.empty(problem.activities), np.empty(problem.activities, np.int64)
    done = KERNEL.heft(
        ctypes.byref(_native(problem)),
        ctypes.c_void_p(_address(start)),
        ctypes.c_void_p(_address(node)),
    )
    _checked(done - 1)
    return start, node


def best_of(
    problem: PlacementProblem, policy: int, plans: Integers, orders: Floats, terms: Floats
) -> int:
    """Simulate many plans, order after order, and find the best.

    Args:
        problem: problem to simulate.
        policy: number of the policy, such as `READY`.
        plans: [P, G] planned nodes.
        orders: [O, A] priorities.
        terms: [5] terms to beat, infinite to accept any; they become the terms of the best plan.

    Returns:
        Number of the first best plan: the order's number times P, plus the plan's; -1 = none is
        better.
    """
    number = KERNEL.best_of(
        ctypes.byref(_native(problem)),
        ctypes.c_int64(policy),
        _pointer(plans.ravel(), INTEGER, len(plans) * problem.genes),
        ctypes.c_int64(len(plans)),
        _pointer(orders.ravel(), FLOAT, len(orders) * problem.activities),
        ctypes.c_int64(len(orders)),
        _pointer(terms, FLOAT, TERMS),
    )
    return _checked(number + 1) - 1


def _open_search(owner: object, problem: PlacementProblem) -> ctypes.c_void_p:
    """Open the kernel's memory for a search; it is freed with the owner, who holds the problem."""
    native = _native(problem)
    address = KERNEL.search_open(ctypes.byref(native))
    if not address:
        raise MemoryError(_NO_MEMORY)
    search = ctypes.c_void_p(address)
    weakref.finalize(owner, _close_search, search, native)
    return search


def _close_search(search: ctypes.c_void_p, _native: _Problem) -> None:
    """Free a search. Freeing reads the problem's sizes, so the struct is kept until then."""
    KERNEL.search_close(search)


class Population:
    """The plans that one island of the search works on; slot 0 is the best of them.

    Attributes:
        genes: [P, G] nodes.
        keys: [P, A] starts.
        terms: [P, 5] terms of the objective.
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
        self.random_state = np.ascontiguousarray(random_state)
        _pointer(self.random_state, _WORD, _RANDOM_STATE)
        self._schedules = np.zeros(1, np.int64)
        self._native = _Population(
            *map(_address, (self.genes, self.keys, self.terms, self.random_state, self._schedules)),
            size,
        )

    @property
    def schedules(self) -> int:
        """Number of schedules that `improve` has simulated, including those that it gave up."""
        return int(self._schedules[0])

    def improve(self, parameters: SearchParameters, trials: int) -> int:
        """Try children, and return how many of them were the best so far."""
        if self._search is None:
            self._search = _open_search(self, self._problem)
        return _checked(
            KERNEL.improve(
                self._search,
                ctypes.byref(self._native),
                ctypes.byref(parameters),
                ctypes.c_int64(int(self._problem.dispatch == "ordered")),
                ctypes.c_int64(trials),
            )
        )
