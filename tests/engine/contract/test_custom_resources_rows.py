"""Rows of a PipelinePlacement, both ways, their sizes, and what others may have written there."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.contract.rows import (
    MAX_ROWS,
    PlannedRow,
    StateRow,
    planned_row,
    state_row,
)
from kfp_placement_engine.contract.rows_reading import (
    MAX_PROBLEMS,
    read_planned_row,
    read_planned_rows,
    read_state_row,
    read_state_rows,
)
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.forecast import Basis, Level
from kfp_placement_engine.model.reasons import Reason, reason
from kfp_placement_engine.model.step_state import StepState, Waiting, WaitingFor
from kfp_placement_engine.plans.planned_step import Alternative
from tests.support.json_values import JSON_VALUES

NODES = 4

nodes = st.none() | st.integers(0, NODES - 1)
seconds = st.integers(0, 9999).map(lambda tenths: tenths / 10) | st.integers(1000, 10**7)
times = st.none() | seconds
latencies = st.none() | st.floats(0, 1e6).map(lambda latency_ms: round(latency_ms, 3))
texts = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=60)
numbers = st.integers(0, 10**6) | st.floats(0, 1e6).map(lambda number: round(number, 3))
arguments = st.recursive(
    texts | numbers, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=3
)
reasons = st.builds(Reason, texts, st.lists(arguments, max_size=4).map(tuple))
alternatives = st.lists(
    st.builds(Alternative, st.integers(0, NODES - 1), seconds, latencies), max_size=3
).map(tuple)
planned_rows = st.builds(PlannedRow, texts, nodes, times, times, st.none() | reasons, alternatives)
waitings = st.builds(
    Waiting,
    st.sampled_from([str(word) for word in WaitingFor]),
    seconds,
    times,
    st.just("") | texts,
)
state_rows = st.builds(
    StateRow,
    st.sampled_from([str(word) for word in StepState]),
    nodes,
    times,
    times,
    st.none() | waitings,
)


def through_json(row):
    return json.loads(json.dumps(row))


def test_an_argument_that_counts_is_named_at_the_end():
    basis = Basis(Level.ITERATION, 4, by_argument="epochs")
    row = PlannedRow("train", 0, 1.0, 2.0, duration_source="history", duration_basis=basis)
    written = planned_row(row)
    assert written[6] == ["history", "iteration", 4, -1, "epochs"]
    assert read_planned_row(written, NODES) == row
    for odd in (7, None, ["epochs"], "e" * 1000, "a\x1b[31m"):
        written[6][4] = odd
        assert read_planned_row(written, NODES).duration_basis == replace(basis, by_argument="")


@given(planned_rows)
def test_planned_rows_come_back(row):
    assert read_planned_row(through_json(planned_row(row)), NODES) == row


@given(state_rows)
def test_state_rows_come_back(row):
    assert read_state_row(through_json(state_row(row)), NODES) == row


def test_a_planned_row_is_compact():
    row = PlannedRow(
        "train",
        1,
        47.04,
        1249.0,
        reason("run-later", seconds=1200.0, node=2),
        (Alternative(2, 1200.0),),
    )
    written = json.dumps(planned_row(row), separators=(",", ":"))
    assert written == '["train",1,47,1249,["run-later",1200,2],[[2,1200]]]'


def test_a_round_trip_is_kept_to_a_microsecond():
    row = PlannedRow("predict", 0, alternatives=(Alternative(1, 0, 9.80004), Alternative(2, 0, 3)))
    assert planned_row(row)[5] == [[1, 0, 9.8], [2, 0, 3]]


@pytest.mark.parametrize(
    ("row", "written"),
    [
        (StateRow(StepState.PENDING), ["pending"]),
        (StateRow(StepState.RUNNING, 0, 12.3), ["running", 0, 12.3]),
        # A time before the submission, as clocks differ; -1 means none.
        (StateRow(StepState.RUNNING, 0, -0.4), ["running", 0, 0]),
        (StateRow(StepState.SUCCEEDED, 0, 0, 61.97), ["succeeded", 0, 0, 62]),
        (
            StateRow(StepState.WAITING, waiting=Waiting("node", 5, None, "0/3 nodes\nare free\n")),
            ["waiting", -1, -1, -1, ["node", 5, -1, "0/3 nodes are free"]],
        ),
        (
            StateRow(StepState.WAITING, waiting=Waiting("plan", 5, 65)),
            ["waiting", -1, -1, -1, ["plan", 5, 65]],
        ),
    ],
)
def test_a_state_row_says_no_more_than_it_must(row, written):
    assert state_row(row) == written


def test_entries_of_a_newer_revision_are_passed_over():
    row = ["train", 1, 0, 60, ["new-code", 7], [[2, 5, 9.8, "more"]], ["new"], {"field": 1}]
    assert read_planned_row(row, NODES) == PlannedRow(
        "train", 1, 0, 60, Reason("new-code", (7,)), (Alternative(2, 5, 9.8),), "new"
    )
    state = ["resting", 1, 0, None, ["sunrise", 3, 4, "", "new"], "new"]
    assert read_state_row(state, NODES) == StateRow("resting", 1, 0, None, Waiting("sunrise", 3, 4))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (None, "a step's name must be a string, not NoneType"),
        ({}, "must be a list, not dict"),
        ([], "a step's name must be a string"),
        ([""], "a step's name must have 1 to 1024"),
        (["a\x1b[31m"], "printable"),
        (["a" * 2000], "1 to 1024"),
        (["a", NODES], "not one of the 4 nodes"),
        (["a", -2], "not one of the 4 nodes"),
        (["a", 0.5], "not one of the 4 nodes"),
        (["a", True], "must be a number, not bool"),
        (["a", 0, "soon"], "must be a number, not str"),
        (["a", 0, math.nan], "must be a number up to"),
        (["a", 0, math.inf], "must be a number up to"),
        (["a", 0, 10**5000], "must be a number up to"),
        (["a", 0, 0, 1, [7]], "a reason's code must be a string"),
        (["a", 0, 0, 1, ["x", 10**5000]], "must be a number up to"),
        (["a", 0, 0, 1, ["x", None]], "an argument must be a number, not NoneType"),
        (["a", 0, 0, 1, ["x", [[[["deep"]]]]]], "too deep"),
        (["a", 0, 0, 1, [], [[-1, 5]]], "names no node"),
        (["a", 0, 0, 1, [], [7]], "must be a list"),
        (["a", 0, 0, 1, [], [[1]]], "a loss must be a number"),
    ],
)
def test_rows_that_cannot_be_used_are_refused(row, message):
    with pytest.raises(InputError, match=message):
        read_planned_row(row, NODES)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1], "a state must be a string"),
        (["waiting", -1, -1, -1, "node"], "must be a list"),
        (["waiting", -1, -1, -1, [""]], "must have 1 to"),
        (["waiting", -1, -1, -1, [1]], "must be a string"),
        (["waiting", -1, -1, -1, ["node", 1, 2, 3]], "a detail must be a string"),
    ],
)
def test_states_that_cannot_be_used_are_refused(row, message):
    with pytest.raises(InputError, match=message):
        read_state_row(row, NODES)


@given(st.lists(JSON_VALUES, max_size=8))
def test_reading_never_fails(rows):
    for read in (read_planned_rows(rows, NODES), read_state_rows(rows, NODES)):
        assert len(read.rows) == len(rows)
        assert sum(row is None for row in read.rows) >= len(read.problems)


def test_endless_arguments_are_cut():
    row = read_planned_row(["a", 0, 0, 1, ["x", *range(100)]], NODES)
    assert row.reason == Reason("x", tuple(range(16)))


def test_a_bad_row_spoils_no_other(golden):
    read = read_planned_rows([["a", 0], ["b", 99], ["c", 1], ["a", 2]], NODES)
    assert [row and row.name for row in read.rows] == ["a", None, "c", None]
    golden(read.problems)
    outside, again = read.problems
    assert outside.startswith("steps[1]: node 99 ")
    assert again.startswith("steps[3]: step 'a' ")


def test_endless_problems_are_counted(golden):
    read = read_state_rows([7] * 100, NODES)
    assert len(read.problems) == MAX_PROBLEMS + 1
    golden(read.problems[-1])
    assert read.problems[-1].startswith("90 more ")


def test_endless_rows_are_cut():
    read = read_state_rows([["pending"]] * (MAX_ROWS + 1), NODES)
    assert len(read.rows) == MAX_ROWS
    assert read.problems == (f"{MAX_ROWS + 1} rows; only {MAX_ROWS} are read",)
