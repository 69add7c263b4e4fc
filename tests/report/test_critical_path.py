"""What limits a run, in few rows that people read."""

import pytest

from kfp_placement.report.critical_path import (
    MOST_ROWS,
    limit_rows,
    limits_lines,
    scarcest,
    shares_by_kind,
)
from kfp_placement_engine.model.limits import CriticalPiece, PieceKind, ResourceUse
from tests.support.plans import a_plan, a_step

KINDS = (
    CriticalPiece("root", PieceKind.DRIVER, 0, 5, "n1"),
    CriticalPiece("fetch", PieceKind.DRIVER, 5, 10, "n1"),
    CriticalPiece("fetch", PieceKind.IMAGE, 10, 20, "n1", "tool:1"),
    CriticalPiece("fetch", PieceKind.DATA, 20, 30, "n1"),
    CriticalPiece("fetch", PieceKind.RUNNING, 30, 90, "n1"),
    CriticalPiece("fetch", PieceKind.DATA, 90, 100, "n1"),
    CriticalPiece("each[2]", PieceKind.LOOP_LIMIT, 100, 130, None, "each"),
    CriticalPiece("train", PieceKind.NODE_FULL, 130, 150, "n2", "team/other/fit"),
    CriticalPiece("train", PieceKind.NODE_FULL, 150, 160, "n2"),
    CriticalPiece("train", PieceKind.HELD_BACK, 160, 170, "n2", "urgent"),
    CriticalPiece("train", PieceKind.HELD_BACK, 170, 180, "n2"),
    CriticalPiece("train", PieceKind.VOLUME, 180, 190, "n2", "disk"),
    CriticalPiece("train", PieceKind.RUNNING, 190, 250, "n2"),
)


def a_limited_plan(pieces=KINDS, **changes):
    """A plan with this critical path."""
    return a_plan(critical_path=tuple(pieces), **changes)


def test_every_kind_is_a_sentence(golden):
    """Pieces that say the same are one row, drivers too; a run that had begun has a past."""
    past = CriticalPiece("", PieceKind.PAST, -50, 0)
    use = (
        ResourceUse(-50, 0, "", 0.0),
        ResourceUse(0, 200, "cpu", 0.5),
        ResourceUse(200, 250, "cpu", 1),
    )
    golden(limits_lines(a_limited_plan((past, *KINDS), binding_resources=use)))


def test_rows_last_as_long_as_the_run_however_many_there_are():
    """Many pieces are as many rows as asked for, the longest, in order of time."""
    pieces = [
        CriticalPiece(f"s{number}", PieceKind.RUNNING, number**2, (number + 1) ** 2, "n1")
        for number in range(40)
    ]
    rows = limit_rows(a_limited_plan(pieces))
    assert len(rows) == MOST_ROWS
    assert sum(row.seconds for row in rows) == 1600
    assert sum(row.share for row in rows) == pytest.approx(1.0)
    assert [row.step for row in rows] == [*(f"s{number}" for number in range(29, 40)), ""]
    assert rows[-1].text == "29 shorter pieces"
    assert rows[-1].kind is None


def test_what_would_print_as_nothing_is_summed_up():
    """Pieces of less than 0.5% say nothing one by one; a single one stays."""
    path = [
        CriticalPiece("a", PieceKind.DATA, 0, 1, "n1"),
        CriticalPiece("a", PieceKind.RUNNING, 1, 999, "n1"),
        CriticalPiece("b", PieceKind.DATA, 999, 1000, "n1"),
    ]
    assert [row.text for row in limit_rows(a_limited_plan(path))] == [
        "a runs on n1",
        "2 shorter pieces",
    ]
    assert [row.step for row in limit_rows(a_limited_plan(path[:2]))] == ["a", "a"]


def test_kinds_are_ranked():
    """The kind of which there is most first."""
    shares = shares_by_kind(a_limited_plan())
    assert shares[0][0] == "running"
    assert shares[0][1] == pytest.approx(120 / 250)
    assert sum(share for _, share in shares) == pytest.approx(1.0)


def test_the_scarcest_resource_is_so_for_the_longest():
    """Its shares are those of the time in which it is the scarcest."""
    use = (
        ResourceUse(0, 10, "memory", 0.9),
        ResourceUse(10, 30, "cpu", 0.25),
        ResourceUse(30, 40, "", 0.0),
        ResourceUse(40, 50, "cpu", 0.55),
    )
    assert (
        scarcest(a_plan(binding_resources=use))
        == "cpu: 35% of the free room on average, 55% at most"
    )
    assert scarcest(a_plan()) == ""


def test_narrow_terminals_wrap_the_sentences():
    """No line is wider than the terminal, and none is cut."""
    lines = limits_lines(a_limited_plan(), columns=44)
    assert max(map(len, lines)) <= 60  # the heading is wrapped by nobody
    assert all(len(line) <= 44 for line in lines[1:])
    assert "team/other/fit" in " ".join(lines)


def test_no_path_no_lines():
    """A run that does not end, or that nobody asked for."""
    assert limits_lines(a_plan()) == []
    assert limit_rows(a_plan()) == ()


def test_hostile_names_are_made_visible():
    """They reach a terminal."""
    path = [CriticalPiece("a\x1b[31m" * 9999, PieceKind.IMAGE, 0, 10, "n\n1", "b\u202e")]
    text = "\n".join(limits_lines(a_limited_plan(path)))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert len(text) < 500


def test_steps_are_told_by_the_names_that_authors_gave():
    """As in the table; images and loops keep theirs, and programs read the step's own name."""
    steps = (
        a_step("train-4", display_name="xgboost"),
        a_step("train-5", display_name="lasso"),
        a_step("fit", display_name="tool"),
    )
    pieces = (
        CriticalPiece("train-4", PieceKind.IMAGE, 0, 20, "n1", "fit"),
        CriticalPiece("train-4", PieceKind.NODE_FULL, 20, 50, "n1", "train-5"),
        CriticalPiece("train-4", PieceKind.RUNNING, 50, 90, "n1"),
    )
    rows = limit_rows(a_limited_plan(pieces, steps=steps))
    assert [row.text for row in rows] == [
        "xgboost waits for image fit on n1",
        "xgboost waits for room on n1 until lasso ends",
        "xgboost runs on n1",
    ]
    assert {row.step for row in rows} == {"train-4"}
