"""`scripts/run_tests.sh`: what it runs, what fails it. Python is a script that notes its calls."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.controlplane.waiting import wait_until
from tests.support.checkout import ROOT
from tests.support.processes import is_alive

SCRIPT = ROOT / "scripts/run_tests.sh"

# Ends as the test wants for calls that hold the wanted word. A build lasts until it is ended, and
# the tests that are judged do not go on before it has begun.
FAKE_PYTHON = """#!/bin/sh
echo "$*" >>calls
case "$*" in
    *"controlplane build"*)
        echo "building a program" >&2
        echo "$$" >begun
        exec tail -f /dev/null ;;
    *"--cov "*) cat begun >builder ;;
esac
case "$*" in *"{word}"*) exit {code} ;; esac
"""


ON_CONTROL_PLANE = "-n 3 --dist loadfile --no-loadscope-reorder --cluster -m cluster"


@dataclass
class Checkout:
    """A folder with the script and the fake Python."""

    folder: Path

    def run(self, *arguments: str, word: str = "nothing", code: int = 0) -> int:
        """Run the script; calls of Python that hold the word end with the code."""
        python = self.folder / ".venv/bin/python"
        python.parent.mkdir(parents=True)
        python.write_text(FAKE_PYTHON.format(word=word, code=code))
        python.chmod(0o755)
        os.mkfifo(self.folder / "begun")
        command = [str(self.folder / "scripts/run_tests.sh"), *arguments]
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode

    def calls(self) -> list[str]:
        """The arguments of every call of Python but the build's, which comes at any time."""
        lines = (self.folder / "calls").read_text().splitlines()
        return [line for line in lines if "build" not in line]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    monkeypatch.setenv("COVERAGE", "yes")
    monkeypatch.setenv("CLUSTER", "yes")
    monkeypatch.delenv("WORKERS", raising=False)
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    return Checkout(tmp_path)


def test_all_tests_are_run_without_coverage_where_it_costs_much(checkout, monkeypatch):
    monkeypatch.setenv("COVERAGE", "no")
    assert checkout.run() == 0
    unit, cluster = checkout.calls()
    assert unit == "-m pytest -ra -n 2 --dist worksteal -m not cluster"
    assert cluster == f"-m pytest -ra {ON_CONTROL_PLANE}"


def test_the_tests_on_a_control_plane_are_skipped_unless_asked_for(checkout, monkeypatch):
    monkeypatch.setenv("COVERAGE", "no")
    monkeypatch.delenv("CLUSTER")
    assert checkout.run() == 0
    assert checkout.calls() == ["-m pytest -ra -n 2 --dist worksteal"]
    assert not (checkout.folder / "builder").exists()


def test_all_tests_are_run_and_the_coverage_judged(checkout):
    assert checkout.run() == 0
    unit, coverage, cluster = checkout.calls()
    assert unit == "-m pytest -ra -n 2 --dist worksteal -m not cluster --cov --cov-report="
    assert coverage.startswith("-m coverage report --fail-under 100")
    assert cluster == f"-m pytest -ra {ON_CONTROL_PLANE}"


def test_the_build_runs_meanwhile_and_ends_with_the_tests(checkout):
    assert checkout.run() == 0
    builder = int((checkout.folder / "builder").read_text())
    wait_until(lambda: not is_alive(builder), "the build to have ended")


def test_chosen_tests_are_run_without_a_build_and_a_judgement(checkout):
    assert checkout.run("-k", "two words") == 0
    unit, cluster = checkout.calls()
    assert unit == "-m pytest -ra -n 2 --dist worksteal -m not cluster -k two words"
    assert cluster == f"-m pytest -ra -k two words {ON_CONTROL_PLANE}"
    assert not (checkout.folder / "builder").exists()


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("not cluster", 1),
        ("coverage report", 1),
        ("loadfile", 1),
        ("not cluster", 2),
        ("loadfile", 2),
    ],
)
def test_every_part_is_run_once_and_any_can_fail_the_whole(checkout, word, code):
    assert checkout.run(word=word, code=code) == 1
    assert len(checkout.calls()) == 3


@pytest.mark.parametrize("word", ["not cluster", "--cluster"])
def test_no_test_chosen_is_no_failure(checkout, word):
    assert checkout.run("-k", "something", word=word, code=5) == 0
