"""Tables of results."""

import pytest

from benchmarks.tables import Table, as_markdown, as_text, machine, percent

TABLE = Table("Makespans", ["run", "by", "s"], [["a", "us", "1,000"], ["long", "b", "2"]], words=2)


def test_for_a_terminal_words_stand_left_and_figures_right():
    assert TABLE.lines() == [
        "Makespans",
        "  run   by      s",
        "  a     us  1,000",
        "  long  b       2",
    ]


def test_as_markdown():
    assert as_markdown("Title", [["One line."], TABLE]).splitlines() == [
        "# Title",
        "",
        "One line.",
        "",
        "**Makespans**",
        "",
        "| run | by | s |",
        "| :--- | :--- | ---: |",
        "| a | us | 1,000 |",
        "| long | b | 2 |",
    ]


def test_parts_are_apart():
    assert as_text([["One."], ["Two."]]) == ["One.", "", "Two."]


@pytest.mark.parametrize(
    ("ratio", "digits", "text"),
    [(0.0123, 1, "1.2"), (-1e-9, 2, "0.00"), (-0.02, 1, "-2.0"), (1.5, 0, "150")],
)
def test_percent(ratio, digits, text):
    assert percent(ratio, digits) == text


def test_the_machine_has_no_name():
    assert machine().split()[1] in ("core", "cores")
