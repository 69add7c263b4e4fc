"""Reasons as codes: every sentence of an explanation has one, and whatever is read is shown."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement_engine.contract.rows import PlannedRow, Reason, Waiting, planned_row
from kfp_placement_engine.contract.rows_reading import read_planned_row
from kfp_placement_engine.contract.texts import (
    OBJECTION_TEXTS,
    REASON_TEXTS,
    ObjectionCode,
    ReasonCode,
    reason_text,
    waiting_text,
)
from kfp_placement_engine.planning.plan_runs import PlanOptions, plan_run
from kfp_placement_engine.readers import read_cluster_file, read_run_file
from tests.engine.planner.random_runs import cases
from tests.support.structural_schemas import ROOT

NODES = ("cloud", "edge", "gpu")

OBJECTIONS = (
    (2, "short", "cpu", 4000, 2500),
    (1, "short", "memory", 2**33, 2**31),
    (1, "taint", "gpu=true:NoSchedule"),
    (1, "cordoned"),
    (3, "selector"),
    (1, "volume"),
    (4, "latency", "HOME-EDGE", 20),
    (2, "no-latency", "HOME-EDGE"),
)
OBJECTIONS_TEXT = (
    "2 nodes: not enough cpu (asks 4, at most 2500m free), "
    "1 node: not enough memory (asks 8Gi, at most 2Gi free), "
    "1 node: untolerated taint gpu=true:NoSchedule, 1 node: node is cordoned, "
    "3 nodes: node(s) didn't match node affinity/selector, 1 node: its volume is elsewhere, "
    "4 nodes: round trip to HOME-EDGE beyond 20 ms, 2 nodes: round trip to HOME-EDGE unknown"
)
SENTENCES = [
    (Reason("cached"), "taken to come from the cache: only its driver pod runs"),
    (
        Reason("unlabelled", ("importer",)),
        "importer pods carry no labels; where the default scheduler would put it",
    ),
    (
        Reason("unmarked"),
        "carries no scheduler mark; where the default scheduler would put it",
    ),
    (Reason("volume-pinned", ("data",)), "volume claim data is available on this node only"),
    (Reason("volume-shared", ("data", "train")), "shares volume data with train"),
    (Reason("volume-shared", ("data", "train", 2)), "shares volume data with train and 2 more"),
    (
        Reason("latency-unknown", ("HOME-EDGE",)),
        "no node with room states a latency to HOME-EDGE",
    ),
    (
        Reason("latency-missed", (89.67, "HOME-EDGE", 1, 9.8)),
        "89.7 ms to HOME-EDGE: edge (9.8 ms) had no room when the step was ready",
    ),
    (
        Reason("latency-missed", ("", "HOME-EDGE", 1, 9.8)),
        "unknown latency to HOME-EDGE: edge (9.8 ms) had no room when the step was ready",
    ),
    (
        Reason("latency-searched", (89.67, "HOME-EDGE", 1, 9.8)),
        "89.7 ms to HOME-EDGE: the search found no better plan with it on edge (9.8 ms)",
    ),
    (
        Reason("latency-best", ("HOME-EDGE", 3, 9.8, 42.6)),
        "lowest round trip to HOME-EDGE of 3 nodes with room: 9.8 ms, next 42.6 ms",
    ),
    (
        Reason("latency-near", ("HOME-EDGE", 1, 9.8)),
        "round trip within the tolerance of the lowest to HOME-EDGE of 1 node with room: 9.8 ms",
    ),
    (Reason("only-node"), "the only node that can take it"),
    (
        Reason("only-node", (OBJECTIONS,)),
        f"the only node that can take it ({OBJECTIONS_TEXT})",
    ),
    (
        Reason("unschedulable", (12, OBJECTIONS)),
        f"none of 12 nodes can take it ({OBJECTIONS_TEXT})",
    ),
    (Reason("quickest", (90, 125, 2)), "takes 1m30s here, 2m5s on gpu"),
    (
        Reason("chosen", (7,)),
        "one of 7 nodes that take it; the search chose it for the whole run",
    ),
    (
        Reason("run-later", (1200, 1)),
        "the run would end 20m later with this step on edge, the next best",
    ),
    (Reason("ends-first", (12, 1)), "ends first here, 12s later on edge"),
    (
        Reason("keeps-room"),
        "elsewhere it would take the room of a step that should be near its users",
    ),
    (
        Reason("found-in-time", (0.5, 2)),
        "found in the time given; gpu alone would end the run 500ms earlier",
    ),
    (
        Reason("equal-end", ("packing", 0, 2)),
        "the run ends no earlier with it on cloud or gpu; this uses fewer nodes",
    ),
    (
        Reason("equal-end", ("", 1)),
        "the run ends no earlier with it on edge; nothing speaks against those nodes",
    ),
    (Reason("no-room", (1,)), "no room on edge when the step was ready"),
    (Reason("no-room", (1, 2)), "no room on edge or gpu when the step was ready"),
    (Reason("started"), "runs there already"),
    (Reason("ended"), "has ended"),
    (Reason("kept"), "keeps the node it was planned on; only steps of other runs move"),
]
PATTERNS = [
    re.compile(re.sub(r"\\\{[0-9]:[a-z]+\\\}", ".*", re.escape(template)))
    for template in REASON_TEXTS.values()
]


@pytest.mark.parametrize(("reason", "sentence"), SENTENCES)
def test_sentences(reason, sentence):
    row = read_planned_row(planned_row(PlannedRow("train", reason=reason)), len(NODES))
    assert row.reason is not None
    assert reason_text(row.reason, NODES) == sentence


def test_every_code_has_a_sentence_and_an_example():
    assert {reason.code for reason, _ in SENTENCES} == set(ReasonCode) == set(REASON_TEXTS)
    assert {code for _, code, *_ in OBJECTIONS} == set(ObjectionCode) == set(OBJECTION_TEXTS)


def assert_said_in_codes(run, cluster):
    found = plan_run(run, cluster, PlanOptions(generations=1, compare=(), threads=1))
    for step in found.steps:
        assert step.why is not None
        assert any(each.fullmatch(step.reason) for each in PATTERNS), step.reason
        row = read_planned_row(
            planned_row(PlannedRow("x", reason=step.why)), len(found.cluster_nodes)
        )
        assert row.reason is not None
        assert reason_text(row.reason, found.cluster_nodes) == step.reason


def test_every_sentence_of_the_sample_can_be_said_in_codes():
    sample = ROOT / "samples" / "06_taxi"
    run = read_run_file(sample / "pipeline.yaml")
    assert_said_in_codes(run, read_cluster_file(sample / "cluster.yaml"))


@settings(max_examples=40)
@given(cases())
def test_every_sentence_of_a_plan_can_be_said_in_codes(case):
    """A new kind of sentence needs a code, or a live plan could not say it."""
    assert_said_in_codes(case.run, case.cluster)


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        (Reason("moonlight"), "moonlight"),
        (Reason("moonlight", (3, "full", (1.5, "x"))), "moonlight (3, full, [1.5, x])"),
        (Reason("run-later", (1200, 99)), "run-later (1200, 99)"),
        (Reason("run-later"), "run-later"),
        (
            Reason("unschedulable", (1, ((1, "short"),))),
            "none of 1 node can take it (1 node: short)",
        ),
        (Reason("unschedulable", (1, (7,))), "unschedulable (1, [7])"),
        (Reason("unschedulable", (1, 7)), "unschedulable (1, 7)"),
        (Reason("equal-end", ("beauty", 1)), "equal-end (beauty, 1)"),
    ],
)
def test_what_another_revision_says_is_shown_as_it_stands(reason, sentence):
    assert reason_text(reason, NODES) == sentence


arguments = st.recursive(
    st.text(max_size=5) | st.integers(-(2**63), 2**63) | st.floats(-1e18, 1e18),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=8,
)


@given(st.sampled_from(ReasonCode), st.lists(arguments, max_size=5).map(tuple))
def test_showing_never_fails(code, given_arguments):
    assert reason_text(Reason(code, given_arguments), NODES)


@pytest.mark.parametrize(
    ("waiting", "text"),
    [
        (
            Waiting("node", 100, None, "0/3 nodes are available"),
            "waits for room on a node since 35s: 0/3 nodes are available",
        ),
        (Waiting("limit", 100), "waits for a node within its limit since 35s"),
        (Waiting("plan", 100, 160), "waits for its turn in the plan since 35s, at most 25s more"),
        (Waiting("quota", 140, 100), "waits for the namespace's quota since 0s, at most 0s more"),
        (Waiting("sunrise", 100), "waits for sunrise since 35s"),
    ],
)
def test_what_a_step_waits_for(waiting, text):
    assert waiting_text(waiting, now_seconds=135) == text
