"""Nodes in rows keep their meaning when the plan's list of nodes is rewritten."""

import re

from kfp_placement_engine.contract.rows import PlannedRow
from kfp_placement_engine.model.reasons import FIELDS, SENTENCES, Reason, reason_text
from kfp_placement_engine.plans.planned_step import Alternative

OLD = ("a", "b", "c")
NEW = ("c", "x", "a", "b")


def moved(position: int) -> int:
    return NEW.index(OLD[position])


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
        reason = Reason(code, arguments)
        assert reason_text(reason, OLD) == reason_text(reason.with_nodes(moved), NEW)


def test_every_reason_that_names_nodes_says_which_fields_they_are():
    for code, template in SENTENCES.items():
        named = re.findall(r"\{([a-z_]+):(?:node|other)\}", template)
        assert sorted(named) == sorted({"node", "other"} & set(FIELDS[code]))


def test_a_row_keeps_its_node_and_its_alternatives():
    row = PlannedRow("train", 0, 1.0, 2.0, None, (Alternative(1, 3.0, 9.8), Alternative(2, 4.0)))
    found = row.with_nodes(moved)
    assert [found.node, *(each.node for each in found.alternatives)] == [2, 3, 0]
    assert [each.latency_ms for each in found.alternatives] == [9.8, None]
    assert PlannedRow("cached").with_nodes(moved).node is None
