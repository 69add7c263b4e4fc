"""What is given to the kernel has the form that it reads, or is refused."""

import re
from dataclasses import replace

import numpy as np
import pytest

from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.kernel import PROGRESS, TERMS, Policy
from kfp_placement_engine.problem.kernel_tables import ACTIVITY, tables_of
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import AXES, ELEMENTS, ProblemArrays, check_arrays
from kfp_placement_engine.problem.schedule import AS_LISTED, TieBreak
from kfp_placement_engine.search.simulation import simulate_policy
from tests.support.builders import a_problem, a_run, a_step, cluster_of
from tests.support.checkout import ROOT

KERNEL = ROOT / "engine" / "kernel"
C_TYPES = {
    "int64": "int64_t",
    "int32": "int32_t",
    "float64": "double",
    "bool": "uint8_t",
    "uint8": "uint8_t",
}


@pytest.fixture
def problem():
    return a_problem(a_run(a_step("a"), a_step("b", "a")), cluster_of(2))


def struct(name: str, file: str) -> str:
    """The fields of a struct as the header declares them."""
    text = (KERNEL / file).read_text()
    structs = re.findall(r"typedef struct \w* ?{(.*?)} (\w+);", text, re.S)
    return next(fields for fields, named in structs if named == name)


def names_apart(fields: str) -> str:
    """`double one, other;` as `double one; double other;`, without comments."""
    kept = re.sub(r"/\*.*?\*/|\bconst ", "", fields, flags=re.S)
    declarations = [each.strip() for each in kept.split(";") if each.strip()]
    return "".join(
        f"{declaration.split()[0]} {name.strip()};"
        for declaration in declarations
        for name in declaration.split(" ", 1)[1].split(",")
    )


def test_the_arrays_of_a_problem_are_those_of_the_kernel():
    """In its order, of its types, with its axes."""
    declared = re.findall(r"const (\w+) \*(\w+); +/\* \[([^]]*)]", struct("Problem", "problem.h"))
    named = {"virtual": "is_virtual"}
    mirrored = [
        (C_TYPES[ELEMENTS[name].name], named.get(name, name), ", ".join(AXES[name]))
        for name in ProblemArrays._fields
    ]
    assert [*mirrored, ("int64_t", "topological", "A")] == declared


def test_the_tables_of_a_problem_are_those_of_the_kernel(problem):
    """In its order, of its types."""
    declared = re.findall(r"(\w+) (\*?)(\w+);", names_apart(struct("Tables", "tables.h")))
    tables = tables_of(problem)
    mirrored = [
        (C_TYPES.get(each.dtype.name, "Activity"), "*", name)
        if isinstance(each, np.ndarray)
        else (C_TYPES[np.dtype(type(each)).name], "", name)
        for name, each in tables._asdict().items()
    ]
    assert mirrored == declared


@pytest.mark.parametrize(
    ("mirrored", "name", "file"),
    [(ACTIVITY, "Activity", "tables.h"), (PROGRESS, "Progress", "state.h")],
)
def test_rows_of_activities_are_those_of_the_kernel(mirrored, name, file):
    declared = re.findall(r"(\w+) (\w+);", names_apart(struct(name, file)))
    assert [(C_TYPES[mirrored[each].name], each) for each in mirrored.names] == declared


def test_the_parameters_of_the_search_are_those_of_the_kernel():
    declared = re.findall(r"double (\w+);", struct("SearchParameters", "search.h"))
    assert [field[0] for field in native.SearchParameters._fields_] == declared


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("speed", np.ones(3), r"speed must be float64 \[N\] = \[2\], is float64 \[3\]"),
        ("speed", np.ones(2, np.int64), r"speed must be float64 \[N\] = \[2\], is int64 \[2\]"),
        (
            "claims_start",
            np.zeros(2, np.int64),
            r"claims_start must be int64 \[A \+ 1\] = \[3\], is int64 \[2\]",
        ),
        ("scored_used", np.zeros(2, np.int64), r"scored_used must be int64 \[N, 2\]"),
    ],
)
def test_arrays_that_contradict_each_other_are_refused(problem, name, array, message):
    check_arrays(problem.arrays)
    with pytest.raises(TypeError, match=message):
        check_arrays(problem.arrays._replace(**{name: array}))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gene_nodes": np.zeros(1, np.int64)}, r"reads int64 \[2\], not int64 \[1\]"),
        ({"priority": np.zeros(2, np.int64)}, r"reads float64 \[2\], not int64 \[2\]"),
        ({"not_before": np.zeros(1)}, r"reads float64 \[2\], not float64 \[1\]"),
        ({"priority": np.zeros(4)[::2]}, "not contiguous"),
    ],
)
def test_arrays_of_another_problem_are_not_simulated(problem, given, message):
    usual = Placement(np.zeros(2, np.int64), np.zeros(2))
    schedule = native.simulate(problem, Policy.READY, usual, AS_LISTED)
    assert schedule.terms.shape == (TERMS,)
    with pytest.raises(TypeError, match=message):
        native.simulate(problem, Policy.READY, replace(usual, **given), AS_LISTED)


def test_a_list_of_the_nodes_of_another_problem_is_not_simulated(problem):
    usual = Placement(np.zeros(2, np.int64), np.zeros(2))
    other = TieBreak(np.zeros(3, np.int64))
    with pytest.raises(TypeError, match=r"reads int64 \[2\], not int64 \[3\]"):
        native.simulate(problem, Policy.READY, usual, other)


def test_a_random_state_of_another_form_is_refused(problem):
    assert simulate_policy(problem, Policy.KUBE_DEFAULT).terms.size
    with pytest.raises(TypeError, match=r"reads uint64 \[4\], not int64 \[4\]"):
        native.Population(problem, 1, np.zeros(4, np.int64))
