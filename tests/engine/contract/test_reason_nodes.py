"""Nodes in rows keep their meaning when the plan's list of nodes is rewritten."""

from kfp_placement_engine.contract.reason_nodes import renumbered_reason, renumbered_row
from kfp_placement_engine.contract.rows import Alternative, PlannedRow, Reason
from kfp_placement_engine.contract.texts import reason_text

OLD = ("a", "b", "c")
NEW = ("c", "x", "a", "b")


def moved(position: int) -> int:
    return NEW.index(OLD[position])


def test_a_reason_says_the_same_with_another_list():
    for reason in (
        Reason("run-later", (40, 1)),
        Reason("equal-end", ("completion", 1, 2)),
        Reason("no-room", (0, 2)),
        Reason("no-room", (0,)),
        Reason("latency-missed", (9.8, "HOME", 2, 0.5)),
        Reason("only-node", (((3, "taint", "key"),),)),
        Reason("of a newer revision", (1, 2)),
    ):
        assert reason_text(reason, OLD) == reason_text(renumbered_reason(reason, moved), NEW)


def test_a_row_keeps_its_node_and_its_alternatives():
    row = PlannedRow("train", 0, 1.0, 2.0, None, (Alternative(1, 3.0, 9.8), Alternative(2, 4.0)))
    found = renumbered_row(row, moved)
    assert [found.node, *(each.node for each in found.alternatives)] == [2, 3, 0]
    assert [each.latency_ms for each in found.alternatives] == [9.8, None]
    assert renumbered_row(PlannedRow("cached"), moved).node is None
