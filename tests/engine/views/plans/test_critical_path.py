"""What limits a run, in few rows that people read."""

from kfp_placement_engine.plans.limits import CriticalPiece, PieceKind, ResourceUse
from kfp_placement_engine.render.text import table_lines
from kfp_placement_engine.views.plans.critical_path import limits_table
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


def limits(pieces=KINDS, **changes):
    """What is said of a plan with this critical path."""
    table = limits_table(a_plan(critical_path=tuple(pieces), **changes))
    assert table is not None
    return table


def texts(table):
    return [row.cells[-1] for row in table.rows]


def test_every_kind_is_a_sentence(golden):
    """Pieces that say the same are one row, drivers too; a run that had begun has a past."""
    past = CriticalPiece("", PieceKind.PAST, -50, 0, None)
    use = (
        ResourceUse(-50, 0, "", 0.0),
        ResourceUse(0, 200, "cpu", 0.5),
        ResourceUse(200, 250, "cpu", 1),
    )
    golden(table_lines(limits((past, *KINDS), binding_resources=use)))


def test_rows_last_as_long_as_the_run_however_many_there_are():
    """Many pieces are as many rows as asked for, the longest, in order of time."""
    pieces = [
        CriticalPiece(f"s{number}", PieceKind.RUNNING, number**2, (number + 1) ** 2, "n1")
        for number in range(40)
    ]
    table = limits(pieces)
    longest = [f"s{number} runs on n1" for number in range(29, 40)]
    assert texts(table) == [*longest, "29 shorter pieces"]
    assert table.rows[-1].cells[:2] == ["14m1s", "53%"]


def test_what_would_print_as_nothing_is_summed_up():
    """Pieces of less than 0.5% say nothing one by one; a single one stays."""
    path = [
        CriticalPiece("a", PieceKind.DATA, 0, 1, "n1"),
        CriticalPiece("a", PieceKind.RUNNING, 1, 999, "n1"),
        CriticalPiece("b", PieceKind.DATA, 999, 1000, "n1"),
    ]
    assert texts(limits(path)) == ["a runs on n1", "2 shorter pieces"]
    assert len(texts(limits(path[:2]))) == 2


def test_the_scarcest_resource_is_so_for_the_longest():
    """Its shares are those of the time in which it is the scarcest."""
    use = (
        ResourceUse(0, 10, "memory", 0.9),
        ResourceUse(10, 30, "cpu", 0.25),
        ResourceUse(30, 40, "", 0.0),
        ResourceUse(40, 50, "cpu", 0.55),
    )
    assert limits(binding_resources=use).notes[1:] == [
        "scarcest resource: cpu: 35% of the free room on average, 55% at most"
    ]
    assert len(limits().notes) == 1


def test_no_path_no_table():
    """A run that does not end, or that nobody asked for."""
    assert limits_table(a_plan()) is None


def test_hostile_names_are_made_visible():
    """They reach a terminal."""
    path = [CriticalPiece("a\x1b[31m" * 9999, PieceKind.IMAGE, 0, 10, "n\n1", "b\u202e")]
    text = "".join(table_lines(limits(path)))
    assert text.isprintable()
    assert len(text) < 500


def test_steps_are_told_by_the_names_that_authors_gave():
    """As in the table; images and loops keep theirs."""
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
    assert texts(limits(pieces, steps=steps)) == [
        "xgboost waits for image fit on n1",
        "xgboost waits for room on n1 until lasso ends",
        "xgboost runs on n1",
    ]
