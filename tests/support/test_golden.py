"""The fixture `golden`, and that no golden file holds texts of tests that are gone."""

import ast

import pytest

from tests.support import golden as texts
from tests.support.checkout import ROOT
from tests.support.golden import Golden, file_of, forget_others

FILES = sorted(ROOT.glob("tests/**/golden/test_*.yaml"))


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A test module that keeps two texts of two tests; CI is not set."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("REGENERATE", raising=False)
    path = tmp_path / "test_it.py"
    record(monkeypatch, path, "test_a[x]", {"text": "one\ntwo\n", "stderr": "three"})
    record(monkeypatch, path, "test_b", {"text": "four"})
    return path


def record(monkeypatch, module, test, parts):
    """Run the test with REGENERATE=1."""
    with monkeypatch.context() as recording:
        recording.setenv("REGENERATE", "1")
        check(module, test, parts)
    texts.expected_texts.cache_clear()


def check(module, test, parts):
    """Compare texts as a test does with the fixture."""
    compared = Golden(module, test)
    for part, text in parts.items():
        compared(text, part)
    compared.finish()


def test_what_is_kept_is_a_block_to_read(module):
    assert file_of(module).read_text() == (
        "# The texts that the tests of test_it.py expect; `make regenerate` writes them again.\n"
        "test_a[x]:\n  text: |\n    one\n    two\n  stderr: |-\n    three\n"
        "test_b:\n  text: |-\n    four\n"
    )


@pytest.mark.parametrize(
    "text", ["", " ", "\n", "  a\n", "a \nb", "a\n\n\n", "\x1b[2Ja\tb", "\r\n", "é…\n- #\n", "~"]
)
def test_any_text_is_kept_as_it_is(module, monkeypatch, text):
    record(monkeypatch, module, "test_c", {"text": text})
    check(module, "test_c", {"text": text})


def test_the_same_text_passes(module):
    check(module, "test_a[x]", {"text": ["one", "two", ""], "stderr": "three"})


def test_a_missing_text_fails_and_says_what_records_it(module):
    with pytest.raises(pytest.fail.Exception, match="'text' is kept for test_c: `REGENERATE=1 "):
        check(module, "test_c", {"text": "one"})


@pytest.mark.parametrize("parts", ["one\nthree\n", "one\ntwo"])
def test_another_text_fails(module, parts):
    with pytest.raises(pytest.fail.Exception, match="not the text that is kept"):
        Golden(module, "test_a[x]")(parts)


def test_a_text_that_is_no_longer_given_fails(module):
    with pytest.raises(pytest.fail.Exception, match="stderr"):
        check(module, "test_a[x]", {"text": "one\ntwo\n"})


def test_one_name_for_two_texts_fails(module):
    compared = Golden(module, "test_b")
    compared("four")
    compared("four")
    with pytest.raises(pytest.fail.Exception, match="two texts"):
        compared("five")


@pytest.mark.parametrize("folder", texts.HERE_ALONE, ids=["checkout", "temporary"])
def test_a_text_of_one_machine_fails(module, monkeypatch, folder):
    with pytest.raises(pytest.fail.Exception, match="folder of this machine"):
        record(monkeypatch, module, "test_b", {"text": f"wrote {folder}/plan.html"})


def test_recording_replaces_the_texts_of_a_test_and_no_other(module, monkeypatch):
    record(monkeypatch, module, "test_a[x]", {"text": "five"})
    assert texts.expected_texts(file_of(module)) == {
        "test_a[x]": {"text": "five"},
        "test_b": {"text": "four"},
    }


def test_nothing_is_recorded_in_ci(module, monkeypatch):
    before = file_of(module).read_text()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception):
        record(monkeypatch, module, "test_b", {"text": "five"})
    assert file_of(module).read_text() == before


def test_tests_that_are_gone_are_forgotten(module):
    forget_others(module, {"test_b"})
    assert texts.expected_texts(file_of(module)) == {"test_b": {"text": "four"}}
    forget_others(module, set())
    assert not file_of(module).exists()


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_text_is_of_a_test_that_is_there(file):
    module = file.parents[1] / f"{file.stem}.py"
    there = {
        node.name
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    named = {test.partition("[")[0].rpartition("::")[2] for test in texts.expected_texts(file)}
    assert named <= there, "`make regenerate` drops the others"
