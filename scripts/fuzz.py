"""Runs the property-based tests with new examples, round after round; `make fuzz` is this script.

    FUZZ_TIME=1h .venv/bin/python scripts/fuzz.py [what pytest takes, to choose among the tests]

FUZZ_TIME: for how long rounds are begun (default: 5m); the last one is finished.
WORKERS: how many processes for the tests (default: 2).

A test that fails is left out of the rounds that follow: what fails it has been printed, with the
decorator that reproduces it. Ends with 0 if nothing was found, 1 if something was, 2 if the tests
could not be run, and 130 if it was stopped before anything was found.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / ".venv/bin/python"

SOME_FAILED, BROKEN, STOPPED = 1, 2, 130
# What pytest ends with; all else means that the tests could not be run.
PASSED, FAILED, INTERRUPTED, NONE_CHOSEN = 0, 1, 2, 5

SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0}
DURATION = re.compile(r"(?:\d+(?:\.\d+)?[hms])+", re.ASCII)
# Ending the test processes takes a moment; then they are no longer asked.
PATIENCE_SECONDS = 20.0


class FuzzError(Exception):
    """The tests cannot be run."""


def duration_seconds(text: str) -> float:
    """Read a duration such as `90s`, `5m` or `1h30m`.

    Raises:
        FuzzError: it is not such a duration.
    """
    if not DURATION.fullmatch(text):
        raise FuzzError(f"FUZZ_TIME={text!r} is not a duration; write for example 90s, 5m or 1h30m")
    return sum(
        float(number) * SECONDS[unit] for number, unit in re.findall(r"([\d.]+)([hms])", text)
    )


@dataclass
class Fuzz:
    """Rounds of the same tests.

    Attributes:
        arguments: pytest's, to choose among the tests.
        workers: number of processes.
        rounds: number of rounds that are over.
        failures: the tests that failed.
    """

    arguments: list[str]
    workers: str
    rounds: int = 0
    failures: list[str] = field(default_factory=list)

    def run(self, seconds: float) -> int:
        """Begin rounds for this long; returns the exit status."""
        begin = time.monotonic()
        status = PASSED
        try:
            while status in (PASSED, FAILED) and (not self.rounds or not _is_over(begin, seconds)):
                status = self._round()
                self.rounds += status in (PASSED, FAILED)
        except KeyboardInterrupt:
            status = INTERRUPTED
        spent = time.monotonic() - begin
        if status == NONE_CHOSEN and not self.failures:
            raise FuzzError("no property-based test was chosen")
        # Once every test has failed none is left.
        if status not in (PASSED, FAILED, INTERRUPTED, NONE_CHOSEN):
            raise FuzzError(f"pytest ended with {status}")
        print(f"fuzz: rounds: {self.rounds}, seconds: {spent:.0f}, failed: {len(self.failures)}")
        for name in self.failures:
            print(f"fuzz: found: {name}")
        if self.failures:
            return SOME_FAILED
        return STOPPED if status == INTERRUPTED else PASSED

    def _round(self) -> int:
        """Run all tests once, but those that have failed."""
        seed = random.SystemRandom().getrandbits(32)
        print(f"fuzz: round {self.rounds + 1}, --hypothesis-seed={seed}", flush=True)
        # A cache of its own: what failed here must not be what `pytest --last-failed` runs.
        with tempfile.TemporaryDirectory() as cache:
            command = [str(PYTHON), "-m", "pytest", "-q", "-n", self.workers, *self.arguments]
            command += ["-m", "hypothesis and not cluster", "--hypothesis-profile=fuzz"]
            command += [f"--hypothesis-seed={seed}", "-o", f"cache_dir={cache}"]
            command += [f"--deselect={name}" for name in self.failures]
            status = _run(command)
            failed = Path(cache) / "v/cache/lastfailed"
            if failed.exists():
                self.failures += json.loads(failed.read_text(encoding="utf-8"))
        return status


def _is_over(begin: float, seconds: float) -> bool:
    return time.monotonic() >= begin + seconds


def _run(command: list[str]) -> int:
    """Run pytest apart from the terminal's signals, and end it in order when asked to."""
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            # A second Ctrl-C changes nothing: this takes a moment at most.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            process.send_signal(signal.SIGINT)
            try:
                process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            return INTERRUPTED


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    """Look for examples that fail a test; returns the exit status."""
    # In the background, shells ignore Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    try:
        seconds = duration_seconds(os.environ.get("FUZZ_TIME") or "5m")
        return Fuzz(sys.argv[1:], os.environ.get("WORKERS") or "2").run(seconds)
    except FuzzError as error:
        print(f"fuzz: {error}", file=sys.stderr)
        return BROKEN


if __name__ == "__main__":
    sys.exit(main())
