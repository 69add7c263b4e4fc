"""What counts as the same, and that a difference cannot hide."""

import pytest

from tests.comparison.cases import CaseFolder, Outcome, file_name
from tests.comparison.comparing import compare
from tests.comparison.masks import masked
from tests.comparison.report import DIFFERENCES, MASKED, report


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('  "planningSeconds": 0.002441,', '  "planningSeconds": <masked>,'),
        ("planningSeconds: 1.0e-05", "planningSeconds: <masked>"),
        ("seed 0, 441 generations in 2.01s", "seed 0, 441 generations in <masked>"),
        ("1 generation in 1.7ms", "1 generation in <masked>"),
        ("1,204 generations in 1m30s", "1,204 generations in <masked>"),
        ("every assignment tried in 2.8ms", "every assignment tried in <masked>"),
        ("every assignment and order tried in 5ms", "every assignment and order tried in <masked>"),
    ],
)
def test_how_long_a_search_took_is_masked(line, shown):
    found = masked(line)
    assert found.text == shown
    assert found.lines == (line,)
    assert sum(found.counts.values()) == 1


@pytest.mark.parametrize(
    "line",
    [
        "makespanSeconds: 12.5",
        '"planningSeconds": null',
        "441 generations",
        "ends 12s later",
        "tried in vain",
        "generations in 2s",
    ],
)
def test_nothing_else_is_masked(line):
    assert masked(line).text == line


def test_a_number_of_generations_is_not_masked():
    assert masked("440 generations in 2s").text != masked("441 generations in 2s").text


def two(tmp_path, base, present):
    for name, cases in (("base", base), ("present", present)):
        (tmp_path / name).mkdir()
        folder = CaseFolder(tmp_path / name)
        for case, text in cases.items():
            folder.write(case, text)
    return compare("plan", tmp_path / "base", tmp_path / "present")


def test_identical_but_for_times(tmp_path):
    found = two(tmp_path, {"a": "planningSeconds: 1.5\n"}, {"a": "planningSeconds: 2.5\n"})
    assert found.is_same
    assert found.masked_lines == [("a.txt", "planningSeconds: 1.5")]
    assert found.masks == {"planningSeconds": 2}


@pytest.mark.parametrize(
    "change", ["text \n", "text", "text\r\n", "text\n\n", "Text\n", "te><xt\n"]
)
def test_any_byte_counts(tmp_path, change):
    found = two(tmp_path, {"a": "text\n"}, {"a": change})
    assert not found.is_same
    assert list(found.different) == ["a.txt"]


def test_cases_that_one_side_lacks_are_differences(tmp_path):
    found = two(tmp_path, {"a": "1", "b": "2"}, {"a": "1", "c": "3"})
    assert not found.is_same
    assert (found.only_base, found.only_present) == (["b.txt"], ["c.txt"])


def test_a_case_of_another_name_is_the_same_once(tmp_path):
    found = two(tmp_path, {"a": "1", "b": "1"}, {"c": "1"})
    assert found.renamed == [("a.txt", "c.txt")]
    assert found.only_base == ["b.txt"]


def test_no_cases_at_all_are_not_the_same(tmp_path):
    assert not two(tmp_path, {}, {}).is_same


def test_the_report_counts_and_keeps_everything(tmp_path):
    text = "1 generation in 5ms\nold\n"
    found = two(tmp_path, {"a": text, "b": "same"}, {"a": text.replace("old", "new"), "b": "same"})
    lines = list(report([found], tmp_path / "report"))
    assert lines[1].split() == ["plan", "2", "1", "0", "1", "0", "0", "1"]
    difference = (tmp_path / "report" / DIFFERENCES).read_text()
    assert "-old\n+new\n" in difference
    assert (tmp_path / "report" / MASKED).read_text() == "plan/a.txt: 1 generation in 5ms\n"


def test_a_command_as_a_case(tmp_path):
    folder = CaseFolder(tmp_path)
    folder.command("x: y/z", "program", ["--arg", "a b"], Outcome(4, "out\n", "", {"file f": "F"}))
    (path,) = tmp_path.rglob("*.txt")
    assert path.relative_to(tmp_path).as_posix() == "x_y/z.txt"
    assert path.read_text() == (
        "$ program --arg 'a b'\nexit code 4\n--- stdout\nout\n\n--- file f\nF\n"
    )


def test_two_cases_of_one_name_are_an_error(tmp_path):
    folder = CaseFolder(tmp_path)
    folder.write("a", "1")
    with pytest.raises(FileExistsError):
        folder.write("a", "2")


def test_names_of_cases_stay_within_their_folder():
    assert file_name("../../etc/passwd") == "etc/passwd"
