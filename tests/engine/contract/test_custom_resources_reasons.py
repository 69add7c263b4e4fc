"""Reasons: every one has a row and a sentence, and whatever is read is shown and kept."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement_engine import read_cluster_file, read_run_file
from kfp_placement_engine.contract.rows import PlannedRow, planned_row
from kfp_placement_engine.contract.rows_reading import read_planned_row
from kfp_placement_engine.model.reasons import FIELDS, SENTENCES, Reason, reason, reason_text
from kfp_placement_engine.model.step_state import Waiting, waiting_text
from kfp_placement_engine.plans.planned_step import Alternative
from tests.engine.planning.random_runs import cases
from tests.support.builders import plan_of
from tests.support.checkout import ROOT

NODES = ("cloud", "edge", "gpu")

DATA = Path(__file__).with_name("data")


def rows_of(name):
    """Rows of reasons; the golden file beside this module has their sentences for `NODES`."""
    return json.loads((DATA / f"{name}.json").read_text())


def read_row(written):
    row = read_planned_row(["train", 0, 0, 60, written], len(NODES))
    assert row.reason is not None
    return row.reason


def written(given_reason):
    return json.loads(json.dumps(planned_row(PlannedRow("train", reason=given_reason))[4]))


@pytest.mark.parametrize("row", rows_of("reasons"), ids=json.dumps)
def test_sentences(row, golden):
    row_reason = read_row(row)
    assert row_reason.values is not None
    golden(reason_text(row_reason, NODES))
    assert written(row_reason) == row


@pytest.mark.parametrize("row", rows_of("reasons-of-other-revisions"), ids=json.dumps)
def test_what_another_revision_says_is_shown_as_it_stands_and_kept(row, golden):
    row_reason = read_row(row)
    golden(reason_text(row_reason, NODES))
    assert written(row_reason) == row


def test_every_code_has_a_sentence_and_an_example():
    reasons = [read_row(row) for row in rows_of("reasons")]
    against = [each.value_of("objections") for each in reasons if each.code == "unschedulable"]
    shown = {each.code for each in reasons} | {each.code for some in against for _, each in some}
    assert shown == set(FIELDS) == set(SENTENCES)


@pytest.mark.parametrize("argument", [1.5, -1, "1", [1]])
def test_what_is_no_position_is_kept_as_it_came(argument):
    row = ["run-later", 1200, argument]
    assert read_row(row).values is None
    assert written(read_row(row).with_nodes(lambda node: node + 1)) == row


def test_a_whole_number_with_a_point_is_a_position():
    assert read_row(["run-later", 1200, 1.0]).value_of("node") == 1
    assert reason("run-later", seconds=1200, node=1) == Reason("run-later", (1200, 1))
    with pytest.raises(TypeError, match="typo"):
        reason("ended", typo=3)


def assert_said_in_codes(run, cluster):
    plan = plan_of(run, cluster, generations=1, compare=(), threads=1)
    for step in plan.steps:
        assert step.explanation.reason is not None
        row = read_planned_row(
            planned_row(PlannedRow("x", reason=step.explanation.reason)), len(plan.cluster.nodes)
        )
        assert row.reason is not None
        assert row.reason.values is not None
        assert reason_text(row.reason, plan.cluster.nodes) == step.explanation.sentence
        # A reason without a sentence is shown as its code and arguments.
        assert not step.explanation.sentence.startswith(f"{row.reason.code} (")


def test_every_sentence_of_the_sample_can_be_said_in_codes():
    sample = ROOT / "samples" / "06_taxi"
    run = read_run_file(sample / "pipeline.yaml")
    assert_said_in_codes(run, read_cluster_file(sample / "cluster.yaml"))


@settings(max_examples=40)
@given(cases())
def test_every_sentence_of_a_plan_can_be_said_in_codes(case):
    """A new kind of sentence needs a code, or a live plan could not say it."""
    assert_said_in_codes(case.run, case.cluster)


arguments = st.recursive(
    st.text(max_size=5) | st.integers(-(2**63), 2**63) | st.floats(),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=8,
)


codes = st.sampled_from(sorted({row[0] for row in rows_of("reasons")}))


@given(codes, st.lists(arguments, max_size=5).map(tuple))
def test_showing_never_fails(code, given_arguments):
    given_reason = Reason(code, given_arguments)
    assert reason_text(given_reason, NODES)
    assert given_reason.with_nodes(lambda node: node).code == code


@pytest.mark.parametrize(
    "waiting",
    [
        Waiting("node", 100, None, "0/3 nodes are available"),
        Waiting("limit", 100),
        Waiting("plan", 100, 160),
        Waiting("quota", 140, 100),
        Waiting("sunrise", 100),
    ],
    ids=lambda waiting: waiting.what,
)
def test_what_a_step_waits_for(waiting, golden):
    golden(waiting_text(waiting, now_seconds=135))


BEFORE = ("a", "b", "c")
AFTER = ("c", "x", "a", "b")


def moved(position):
    return AFTER.index(BEFORE[position])


def test_a_reason_says_the_same_with_another_list():
    for code, arguments in (
        ("run-later", (40, 1)),
        ("ends-first", (40, 1)),
        ("found-in-time", (40, 1)),
        ("quickest", (40, 50, 2)),
        ("equal-end", ("completion", 1, 2)),
        ("no-room", (0, 2)),
        ("no-room", (0,)),
        ("latency-missed", (9.8, "HOME", 2, 0.5)),
        ("latency-searched", ("", "HOME", 2, 0.5)),
        ("only-node", (((3, "taint", "key"),),)),
        ("of a newer revision", (1, 2)),
    ):
        given_reason = Reason(code, arguments)
        assert reason_text(given_reason, BEFORE) == reason_text(
            given_reason.with_nodes(moved), AFTER
        )


def test_every_reason_that_names_nodes_says_which_fields_they_are():
    for code, template in SENTENCES.items():
        named = re.findall(r"\{([a-z_]+):(?:node|other)\}", template)
        assert sorted(named) == sorted({"node", "other"} & set(FIELDS[code]))


def test_a_row_keeps_its_node_and_its_alternatives():
    row = PlannedRow("train", 0, 1.0, 2.0, None, (Alternative(1, 3.0, 9.8), Alternative(2, 4.0)))
    moved_row = row.with_nodes(moved)
    assert [moved_row.node, *(each.node for each in moved_row.alternatives)] == [2, 3, 0]
    assert [each.latency_ms for each in moved_row.alternatives] == [9.8, None]
    assert PlannedRow("cached").with_nodes(moved).node is None
