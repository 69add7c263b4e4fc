"""`make demo-cluster` and `make demo-queue` as a user runs them: to the end, and with Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest

from tests.controller.end_to_end.taxi_runs import STEPS
from tests.controlplane.waiting import wait_until
from tests.support.checkout import ROOT

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="/proc tells who is left"),
]

MARK = "KFP_PLACEMENT_TEST_OF_DEMO"
"""Variable that all processes of a demo inherit."""

PLACED = re.compile(r"^ +[0-9.]+ s  (\S+) +to (\S+), as planned, by kfp-placement$")
RUN_MESSAGE = re.compile(r"^ +[0-9.]+ s  (\S+) +(\S.*)$")
"""News of a run: its name, and what has happened."""
TIMEOUT_SECONDS = 300.0


class Demo:
    """The command at work in a process group of its own, as a shell starts it.

    Attributes:
        lines: what it has printed.
    """

    def __init__(self, temporary: Path, module: str, *options: str) -> None:
        self.lines: list[str] = []
        self._mark = uuid.uuid4().hex
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"tests.controller.{module}", *options],
            cwd=ROOT,
            env={**os.environ, MARK: self._mark, "TMPDIR": str(temporary)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def wait(self) -> int:
        """Wait for its end; returns the exit code."""
        code = self._process.wait(TIMEOUT_SECONDS)
        self._reader.join(TIMEOUT_SECONDS)
        return code

    def wait_for(self, text: str) -> None:
        """Wait until it has printed a line with this."""

        def is_printed() -> bool:
            assert self._process.poll() is None, self.lines
            return any(text in line for line in self.lines)

        wait_until(is_printed, repr(text), TIMEOUT_SECONDS, lambda: self.lines)

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.killpg(self._process.pid, signal.SIGINT)

    def processes(self) -> list[int]:
        """It and all that it has started and that are not gone."""
        wanted = f"{MARK}={self._mark}".encode()
        everybody = map(int, filter(str.isdigit, os.listdir("/proc")))
        return [pid for pid in everybody if wanted in environment(pid)]

    def end(self) -> None:
        """Kill what is left."""
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        self._process.wait(TIMEOUT_SECONDS)
        self._reader.join(TIMEOUT_SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.lines.extend(line.rstrip("\n") for line in self._process.stdout)


def environment(pid: int) -> list[bytes]:
    """The variables of a process; none = it is gone, or another user's."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []


@pytest.fixture
def start(control_plane_programs, tmp_path):
    """Starts a demo: a module's name, and options."""
    demos: list[Demo] = []

    def started(module: str, *options: str) -> Demo:
        demos.append(Demo(tmp_path, module, *options))
        return demos[-1]

    yield started
    for demo in demos:
        demo.end()


def test_it_tells_what_is_placed_where_and_why_and_ends(start, tmp_path):
    demo = start("demo_cluster", "taxi", "--shorter", "400")
    assert demo.wait() == 0, demo.lines
    placed = {match[1]: match[2] for match in map(PLACED.match, demo.lines) if match}
    assert set(placed) == STEPS, demo.lines
    assert placed["predict"] == "home-edge-node"
    assert any(
        re.match(r" +predict +home-edge-node +.*lowest round trip to HOME-EDGE", line)
        for line in demo.lines
    ), demo.lines
    assert re.search(r"the run has succeeded; planned were [0-9.]+ s$", demo.lines[-1])
    assert is_clean(demo, tmp_path)


def test_the_lead_case_is_shown_by_the_default_scheduler_and_with_gates(start, tmp_path):
    demo = start("demo_cluster")
    assert demo.wait() == 0, demo.lines
    assert sum(line.endswith("the run has succeeded") for line in demo.lines) == 2
    match = re.fullmatch(r"Gates end ([0-9.]+)% earlier than .*", demo.lines[-1])
    # 24% on a machine with nothing else to do.
    assert match is not None, demo.lines
    assert float(match[1]) > 5, demo.lines
    default, gates = (
        next(index for index, line in enumerate(demo.lines) if line.startswith(title))
        for title in ("The default scheduler: ", "Gates, by the plan: ")
    )
    late, early = (drawn_at(demo.lines[index:], "xgboost") for index in (default, gates))
    assert early < late
    assert is_clean(demo, tmp_path)


def drawn_at(lines: list[str], step: str) -> int:
    """The column at which a step's bar begins, in the next time line."""
    return next(line.index(step) for line in lines if f"{step}-" in line)


def test_three_runs_use_one_gpu_in_turn_and_commands_can_be_tried_then(start, tmp_path):
    demo = start("demo_queue", "--keep")
    demo.wait_for("The cluster stays until Ctrl-C.")
    messages = [match.groups() for match in map(RUN_MESSAGE.match, demo.lines) if match]
    lacks = "lacks 1 nvidia.com/gpu of the quota"
    for name in ("trial", "urgent"):
        texts = [text for run, text in messages if run == name]
        assert any(lacks in text for text in texts), demo.lines
    order = [run for run, text in messages if text == "train runs on the GPU"]
    assert order == ["daily", "urgent", "trial"]
    table = demo.lines[next(at for at, line in enumerate(demo.lines) if line.startswith("RUN ")) :]
    assert [row.split()[-1] for row in table[1:4]] == ["0", "0", "0"]
    assert "urgent was submitted after trial and began before it." in demo.lines
    tried = [line for line in demo.lines if line.startswith(("export", "kfp-placement queue"))]
    done = subprocess.run(
        ["bash", "-ce", "\n".join(tried)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    assert {row[1] for row in rows} >= {"trial-2", "urgent-2"}
    demo.interrupt()
    # It checks itself that what it told was so.
    assert demo.wait() == 0, demo.lines
    assert is_clean(demo, tmp_path)


@pytest.mark.parametrize("moment", ["Starting etcd", "plan 1"], ids=["at-the-start", "planned"])
def test_after_an_interrupt_nothing_is_left(start, tmp_path, moment):
    demo = start("demo_cluster", "taxi")
    demo.wait_for(moment)
    demo.interrupt()
    assert demo.wait() == 130, demo.lines
    assert not any("Traceback" in line for line in demo.lines), demo.lines
    assert is_clean(demo, tmp_path)


def is_clean(demo: Demo, temporary: Path) -> bool:
    """Whether neither processes nor files are left."""
    assert demo.processes() == []
    assert list(temporary.iterdir()) == []
    return True
