"""Components end when they are told to, and with whoever started them."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml

from tests.controlplane.api import Api
from tests.controlplane.exceptions import ApiError, ControlPlaneError, ProcessEndedError, WaitError
from tests.controlplane.processes import ManagedProcess
from tests.controlplane.waiting import wait_until
from tests.support.checkout import ROOT
from tests.support.processes import is_alive

SLEEP = ("/bin/sh", "-c", "echo ready; exec sleep 600")
STUBBORN = ("/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")

# Starts a component, says its process id, and waits to be killed.
OWNER = """
import sys, time
from pathlib import Path
from tests.controlplane.processes import ManagedProcess
process = ManagedProcess("child", ["/bin/sleep", "600"], Path(sys.argv[1]))
process.start()
print(process.pid, flush=True)
time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def start(tmp_path):
    """Starts a command and waits until it has written a line."""
    started = []

    def start_and_wait(command) -> ManagedProcess:
        process = ManagedProcess("component", command, tmp_path / "component.log")
        started.append(process)
        process.start()
        wait_until(lambda: "ready" in process.last_lines(), "the component to start")
        return process

    yield start_and_wait
    for process in started:
        process.kill()


@pytest.mark.parametrize(
    ("command", "grace"), [(SLEEP, 30), (STUBBORN, 0.1)], ids=["willing", "stubborn"]
)
def test_stop(start, command, grace):
    process = start(command)
    assert process.running
    process.check()
    process.stop(grace)
    assert not process.running
    assert not is_alive(process.pid)
    process.stop()
    process.kill()


def test_the_whole_group_goes(start, tmp_path):
    child = tmp_path / "child"
    process = start(("/bin/sh", "-c", f"sleep 600 & echo $! >{child}; echo ready; wait"))
    process.kill()
    pid = int(child.read_text())
    wait_until(lambda: not is_alive(pid), "the child to be gone")


def test_it_can_be_started_again(start):
    process = start(SLEEP)
    with pytest.raises(ControlPlaneError, match="runs already"):
        process.start()
    first = process.pid
    process.kill()
    process.start()
    assert process.pid != first
    assert process.running


def test_an_early_end_shows_the_log(start):
    process = start(("/bin/sh", "-c", "echo ready; echo no such flag; exit 3"))
    wait_until(lambda: not process.running, "the component to end")
    with pytest.raises(ProcessEndedError, match=r"ended with 3\n(.*\n)*no such flag"):
        process.check()


def test_a_thread_cannot_start_one(tmp_path):
    """It would end with the thread."""
    refused: list[Exception] = []

    def start_in_thread() -> None:
        try:
            ManagedProcess("component", SLEEP, tmp_path / "log").start()
        except ControlPlaneError as error:
            refused.append(error)

    thread = threading.Thread(target=start_in_thread)
    thread.start()
    thread.join()
    assert "main thread" in str(refused)


@pytest.mark.parametrize("seconds", ["600", "0"], ids=["killed", "ended"])
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
def test_a_component_ends_with_its_owner(tmp_path, seconds):
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, tmp_path / "log", seconds],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        if seconds == "600":
            assert is_alive(pid)
            owner.send_signal(signal.SIGKILL)
    wait_until(lambda: not is_alive(pid), "the component to be gone")


def test_a_wait_says_what_it_waited_for():
    with pytest.raises(WaitError, match=r"waited 0.05 s for rain; last seen: sun"):
        wait_until(lambda: False, "rain", timeout_seconds=0.05, state=lambda: "sun")


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.usefixtures("control_plane_programs")
def test_one_started_by_hand_is_stopped_by_hand():
    command = [sys.executable, "-m", "tests.controlplane", "start", "--nodes", "1"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        lines = iter(starter.stdout.readline, "")
        kubeconfig = next(line.partition("=")[2].strip() for line in lines if "export" in line)
        server = yaml.safe_load(Path(kubeconfig).read_text())["clusters"][0]["cluster"]["server"]
        authority = Path(kubeconfig).with_name("ca.crt")
        with pytest.raises(ApiError, match="Unauthorized"):
            Api(server, authority, "stranger").request("GET", "/version")
        starter.send_signal(signal.SIGINT)
        assert starter.stdout.read().endswith("stopped\n")
    assert starter.returncode == 0
    assert not Path(kubeconfig).parent.exists()
