"""Folders of killed owners are removed, those of living ones are not."""

import os
import tempfile
import time

import pytest

from tests.controlplane.folders import new_folder


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def age(folder, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(folder, (then, then))


@pytest.mark.parametrize(
    ("released", "seconds", "stays"),
    [(True, 3_600, False), (True, 0, True), (False, 3_600, True)],
    ids=["left behind", "just made", "in use"],
)
def test_the_next_one_removes(released, seconds, stays):
    folder, release = new_folder()
    if released:
        release()
    (folder / "data").write_text("data")
    age(folder, seconds)
    _, release_next = new_folder()
    assert folder.exists() == stays
    release_next()
    release()


def test_others_are_left_alone(temporary):
    (temporary / "something").mkdir()
    age(temporary / "something", 3_600)
    _, release = new_folder()
    assert (temporary / "something").exists()
    release()
