"""`scripts/fuzz.py`: how long it looks, what it prints, how it ends."""

import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import fuzz
import pytest

from tests.controlplane.waiting import wait_until
from tests.support.checkout import ROOT
from tests.support.processes import is_alive

# Notes its calls; fails a test, or lasts until it is interrupted, in the wanted round.
FAKE_PYTHON = """#!/bin/sh
echo "$*" >>calls
for argument; do case "$argument" in cache_dir=*) cache="${{argument#cache_dir=}}" ;; esac; done
[ "$(wc -l <calls)" -eq {round} ] || exit 0
case {code} in
    1) mkdir -p "$cache/v/cache"
       echo '{{"tests/test_one.py::test_it": true}}' >"$cache/v/cache/lastfailed" ;;
    2) tail -f /dev/null & trap "kill $!; exit 2" INT
       echo "$$" >pid.new && mv pid.new pid
       wait ;;
esac
exit {code}
"""


@dataclass
class Checkout:
    """A folder with the script and a Python."""

    folder: Path

    @property
    def python(self) -> Path:
        python = self.folder / ".venv/bin/python"
        python.parent.mkdir(parents=True, exist_ok=True)
        return python

    def fake(self, *, code: int = 0, in_round: int = 1) -> None:
        self.python.write_text(FAKE_PYTHON.format(code=code, round=in_round))
        self.python.chmod(0o755)

    def start(self, *arguments: str, time: str = "0s") -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(self.folder / "scripts/fuzz.py"), *arguments],
            env={**os.environ, "FUZZ_TIME": time},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, time: str = "0s") -> tuple[int, str, str]:
        process = self.start(*arguments, time=time)
        out, errors = process.communicate(timeout=120)
        return process.returncode, out, errors

    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    monkeypatch.delenv("WORKERS", raising=False)
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/fuzz.py", tmp_path / "scripts")
    return Checkout(tmp_path)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("5m", 300), ("1h30m", 5400), ("0.5m", 30), ("0s", 0)]
)
def test_durations(text, seconds):
    assert fuzz.duration_seconds(text) == seconds


@pytest.mark.parametrize("text", ["5", "soon", "-1m", "1 h", "5m ", "1.m", "\u0661m", "1d"])
def test_what_is_no_duration_is_refused(checkout, text):
    checkout.fake()
    code, out, errors = checkout.run(time=text)
    assert (code, out) == (2, "")
    assert errors == (
        f"fuzz: FUZZ_TIME={text!r} is not a duration; write for example 90s, 5m or 1h30m\n"
    )
    assert not (checkout.folder / "calls").exists()


def test_a_round_is_run_however_short_the_time(checkout):
    checkout.fake()
    code, out, _ = checkout.run("tests/engine", "-k", "two words")
    assert code == 0
    (call,) = checkout.calls()
    assert call.startswith("-m pytest -q -n 2 tests/engine -k two words -m hypothesis and not")
    assert "--hypothesis-profile=fuzz" in call
    assert "fuzz: rounds: 1, seconds: 0, failed: 0" in out


def test_every_round_has_another_seed_and_a_test_that_failed_is_left_out(checkout):
    checkout.fake(code=1)
    code, out, _ = checkout.run(time="1s")
    first, second, *others = checkout.calls()
    assert code == 1
    assert "--deselect" not in first
    assert all("--deselect=tests/test_one.py::test_it" in call for call in (second, *others))
    seeds = [line.split("=")[1] for line in out.splitlines() if "--hypothesis-seed=" in line]
    assert len(set(seeds)) == len(seeds) == 2 + len(others)
    assert f"--hypothesis-seed={seeds[0]} " in first
    assert out.splitlines()[-1] == "fuzz: found: tests/test_one.py::test_it"


@pytest.mark.parametrize(
    ("code", "message"), [(5, "no property-based test was chosen"), (4, "pytest ended with 4")]
)
def test_tests_that_cannot_be_run_fail_it(checkout, code, message):
    checkout.fake(code=code)
    status, _, errors = checkout.run()
    assert (status, errors) == (2, f"fuzz: {message}\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_tests_in_order(checkout, number):
    checkout.fake(code=2, in_round=2)
    process = checkout.start(time="1h")
    wait_until((checkout.folder / "pid").exists, "the second round")
    pid = int((checkout.folder / "pid").read_text())
    process.send_signal(number)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "")
    assert "fuzz: rounds: 1," in out
    assert not is_alive(pid)


def test_what_is_found_can_be_reproduced(checkout):
    """With the real pytest and the profiles of our own tests."""
    checkout.python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    checkout.python.chmod(0o755)
    tests = checkout.folder / "tests"
    tests.mkdir()
    (checkout.folder / "pytest.ini").write_text("[pytest]\nmarkers = cluster: none\n")
    (checkout.folder / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.support.drawing import register_profiles\nregister_profiles()\n"
        "del sys.path[0]\n"
    )
    made_up = tests / "test_made_up.py"
    made_up.write_text(
        "from hypothesis import given, reproduce_failure, strategies as st\n"
        "@given(st.integers())\n"
        "def test_small(number):\n    assert number < 1000\n"
        "@given(st.integers())\n"
        "def test_integers(number):\n    assert number == int(number)\n"
        "def test_other():\n    raise AssertionError\n"
    )
    code, out, _ = checkout.run()
    assert code == 1
    assert "number=1000" in out
    decorator = re.search(r"@reproduce_failure\(.*\)", out)
    assert decorator is not None
    assert "1 failed, 1 passed" in out
    assert out.splitlines()[-1] == "fuzz: found: tests/test_made_up.py::test_small"
    # As `make test` draws.
    made_up.write_text(made_up.read_text().replace("@given", f"{decorator[0]}\n@given", 1))
    command = [checkout.python, "-m", "pytest", "-k", "test_small"]
    again = subprocess.run(command, cwd=checkout.folder, capture_output=True, text=True)
    assert again.returncode == 1
    assert "number=1000" in again.stdout
