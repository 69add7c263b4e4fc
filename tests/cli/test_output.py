"""A file is written whole or not at all."""

import os
from pathlib import Path

import pytest

BEFORE = "what was there before"


def contents(folder):
    return {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.is_file()}


@pytest.fixture
def old(tmp_path):
    file = tmp_path / "plan.html"
    file.write_text(BEFORE, encoding="utf-8")
    return file


def test_replaced_whole(plan, planner, old, tmp_path):
    assert plan("--output", old).exit_code == 0
    assert old.read_text("utf-8").endswith("</html>\n")
    assert list(contents(tmp_path)) == ["plan.html"]


def test_untouched_when_planning_fails(plan, planner, old, tmp_path):
    planner.error = RuntimeError("no")
    plan.message(1, "--output", old)
    assert contents(tmp_path) == {"plan.html": BEFORE}


def test_untouched_when_writing_fails(plan, planner, monkeypatch, old, tmp_path):
    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert "No space left on device" in plan.message(1, "--output", old)
    assert contents(tmp_path) == {"plan.html": BEFORE}


def test_untouched_when_interrupted(plan, planner, old, tmp_path):
    planner.error = KeyboardInterrupt()
    assert plan.message(130, "--output", old).strip() == "Interrupted."
    assert contents(tmp_path) == {"plan.html": BEFORE}


def test_a_link_stays_a_link(plan, planner, old, tmp_path):
    link = tmp_path / "link.html"
    link.symlink_to(old)
    plan("--output", link)
    assert link.is_symlink()
    assert old.read_text("utf-8").startswith("<!doctype html>")


def test_no_folder_to_write_in(plan, planner, tmp_path, golden):
    stderr = plan.message(3, "--output", "nowhere/plan.html")
    golden(stderr.replace(str(tmp_path), "FOLDER"))
    assert not planner.calls


def test_a_folder_instead_of_a_file(plan, planner, tmp_path, golden):
    stderr = plan.message(1, "--output", tmp_path)
    golden(stderr.replace(str(tmp_path), "FOLDER"))


def test_a_folder_without_rights(plan, planner, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everything")
    tmp_path.chmod(0o500)
    assert "cannot be written to" in plan.message(1, "--output", "plan.html")


@pytest.mark.parametrize("command", ["plan", "history", "check", "demo"])
def test_a_dash_is_no_file_to_write(run, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stderr = run.message(2, command, *([] if command == "demo" else ["x.yaml"]), "--output", "-")
    assert "'-' names no file to write; name one, or /dev/stdout" in stderr
    assert not Path("-").exists()


def test_devices_are_written_to(plan, planner, monkeypatch):
    # Others than root may write to devices, though not to their folder.
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert plan("--output", "/dev/null").exit_code == 0
    assert not Path("/dev/null").is_file()
