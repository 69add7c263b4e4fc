"""How findings are shown."""

from kfp_placement import CheckReport, Finding
from kfp_placement.check.findings import Severity

REPORT = CheckReport(
    "taxi",
    (
        Finding(Severity.ERROR, "unschedulable", "needs 9 CPU", "train"),
        Finding(Severity.WARNING, "unmarked", "is not marked", "load"),
        Finding(Severity.WARNING, "unmarked", "is not marked", "drop"),
        Finding(Severity.NOTE, "backend-version", "needs 2.14"),
    ),
)


def test_print_shows_one_line_each():
    assert str(REPORT).splitlines() == [
        "taxi: 1 error, 2 warnings, 1 note",
        "  error: train: needs 9 CPU [unschedulable]",
        "  warning: load: is not marked [unmarked]",
        "  warning: drop: is not marked [unmarked]",
        "  note: needs 2.14 [backend-version]",
    ]


def test_repr_is_one_plain_line():
    assert repr(REPORT) == "<CheckReport taxi: 1 error, 2 warnings, 1 note>"


def test_a_report_is_a_collection_that_is_never_false():
    empty = CheckReport("taxi", ())
    assert len(REPORT) == 4
    assert len(REPORT.of("unmarked")) == 2
    assert list(empty) == []
    assert empty
    assert empty.ok
    assert not REPORT.ok


def test_notes_alone_are_fine():
    assert CheckReport("taxi", REPORT.findings[3:]).ok


def test_html_escapes_what_strangers_wrote():
    script = "<script>alert(1)</script>"
    report = CheckReport(script, (Finding(Severity.ERROR, "x", script, script),))
    page = report._repr_html_()
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 3


def test_control_characters_do_not_reach_the_terminal():
    report = CheckReport("a\x1b[31m", (Finding(Severity.ERROR, "x", "\x1b]0;b\x07", "c\nd"),))
    assert "\x1b" not in str(report) + repr(report) + report._repr_html_()
    assert "c\\nd" in str(report)


def test_html_has_a_size_cap():
    many = tuple(Finding(Severity.NOTE, "x", "m" * 5000, f"s{i}") for i in range(1000))
    page = CheckReport("taxi", many)._repr_html_()
    assert page.count("<tr>") == 201
    assert "800 more" in page
    assert len(page) < 200_000


def test_findings_fit_a_terminal_and_their_levels_are_coloured():
    words = "the type Trainning is not known; did you mean Training? " * 3
    report = CheckReport(
        "run", (Finding(Severity.WARNING, "unknown-type", words.strip(), "train"),)
    )
    lines = report.lines(60, colour=True)
    assert lines[1].startswith("  \x1b[33mwarning\x1b[0m: train: ")
    assert max(map(len, lines)) <= 60 + len("\x1b[33m\x1b[0m")
    assert " ".join(" ".join(report.lines(60)).split()) == " ".join(str(report).split())
