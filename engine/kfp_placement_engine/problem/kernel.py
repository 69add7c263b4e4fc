"""The C kernel (`engine/kernel`), loaded once, and problems in the form that it reads.

Arrays are passed as they are: `problem.h` has the fields of `ProblemArrays` in the same order, and
`tables.h` those of `ProblemTables`. When the library is loaded, only the total sizes of these
structs are compared.
"""

import ctypes
import sys
import weakref
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from kfp_placement_engine.problem.kernel_tables import ACTIVITY, Array, ProblemTables, tables_of
from kfp_placement_engine.problem.problem import (
    FLOAT,
    INTEGER,
    PlacementProblem,
    ProblemArrays,
    check_arrays,
)


class Policy(IntEnum):
    """Policy of the simulation, by the kernel's number; what each means is in `problem.h`."""

    KUBE_DEFAULT = 0
    STRICT_FIFO = 1
    READY = 2
    ORDERED = 3
    BACKFILL = 4
    GREEDY = 5
    FULLEST = 6


TERMS = 5
"""Number of terms of the objective."""

_OBJECTIVES = {"completion": 0, "makespan": 0, "packing": 1, "paper": 2}
"""Objective -> its number; `makespan` is `completion` with a limit of 0 for the latest end."""
_TIES = {"random": 0, "heap": 1, "first": 2}
_NUMBERS = (
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
    "images",
    "claim_count",
    "holders_count",
    "limits",
    "runs",
    "branches",
    "choices",
)


_NUMBER_TYPES: dict[object, Any] = {float: ctypes.c_double, int: ctypes.c_int64}
"""Types of the numbers in a C struct, whose other fields are pointers to arrays."""


class _Tables(ctypes.Structure):
    """The tables' C struct, which keeps the arrays that it points to."""

    _fields_ = [
        (name, _NUMBER_TYPES.get(hint, ctypes.c_void_p))
        for name, hint in ProblemTables.__annotations__.items()
    ]

    def __init__(self, tables: ProblemTables) -> None:
        super().__init__(
            *(address_of(each) if isinstance(each, np.ndarray) else each for each in tables)
        )
        self.tables = tables


class NativeProblem(ctypes.Structure):
    """The problem's C struct."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ProblemArrays._fields),
        ("topological", ctypes.c_void_p),
        ("tables", ctypes.POINTER(_Tables)),
        ("link_rate", ctypes.c_double),
        ("end_limit", ctypes.c_double),
        *((name, ctypes.c_int64) for name in _NUMBERS),
    ]


PROGRESS = np.dtype(
    [
        *((name, FLOAT) for name in ("start", "begin", "end", "pull_seconds", "arrival")),
        *((name, np.int32) for name in ("node", "cause", "queue_of", "sooner", "later", "waiting")),
    ],
    align=True,
)
"""Record of an activity's progress in a simulation: `Progress` of `state.h`."""


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
    structs = ctypes.sizeof(NativeProblem) + ctypes.sizeof(_Tables)
    if library.sizes() != structs + ACTIVITY.itemsize + PROGRESS.itemsize:
        raise ImportError(
            "the compiled kernel does not match this version; rebuild it with `make kernel`"
        )
    return library


KERNEL = _load()
"""The compiled library."""

_prepared: "weakref.WeakKeyDictionary[PlacementProblem, NativeProblem]" = (
    weakref.WeakKeyDictionary()
)


def address_of(array: Array) -> int:
    """Return the address of an array for the kernel.

    Raises:
        TypeError: the array is not contiguous.
    """
    if not array.flags.c_contiguous:
        raise TypeError(f"the kernel takes no {array.dtype.name} array that is not contiguous")
    return int(array.ctypes.data)


def pointer(array: Array, elements: np.dtype[Any], size: int) -> ctypes.c_void_p:
    """Return a pointer to a caller's array, of which the kernel reads this many elements.

    Raises:
        TypeError: the array has other elements or another size, or is not contiguous.
    """
    if array.dtype != elements or array.shape != (size,):
        raise TypeError(
            f"the kernel reads {elements} [{size}], not {array.dtype.name} {list(array.shape)}"
        )
    return ctypes.c_void_p(address_of(array))


def optional(array: Array, elements: np.dtype[Any], size: int) -> ctypes.c_void_p | None:
    """Return a pointer as `pointer` does; None for an array that is left empty."""
    return pointer(array, elements, size) if array.size else None


def native_of(problem: PlacementProblem) -> NativeProblem:
    """Return the problem's C struct, which is valid for as long as the problem lives."""
    prepared = _prepared.get(problem)
    if prepared is not None:
        return prepared
    arrays = problem.arrays
    check_arrays(arrays)
    native = NativeProblem()
    for name in ProblemArrays._fields:
        setattr(native, name, address_of(getattr(arrays, name)))
    native.topological = pointer(problem.topological, INTEGER, problem.activities)
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
    native.images = arrays.image_bytes.size
    native.claim_count = int(arrays.claims.max()) + 1 if arrays.claims.size else 0
    native.holders_count = arrays.holder_size.size
    native.limits = arrays.limit_most.size
    native.runs = arrays.run_weight.size
    native.branches = arrays.branch_choice.size
    native.choices = arrays.choice_around.size
    native.tables = ctypes.pointer(_Tables(tables_of(problem)))
    KERNEL.find_least_times(ctypes.byref(native))
    _prepared[problem] = native
    return native
