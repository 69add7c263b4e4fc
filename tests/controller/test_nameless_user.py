"""The processes as their image runs them: a user without a name, no environment, nothing to write.

The image has no user 65532, so nothing can look up a name or a home of it.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kfp_placement_controller.kinds import RUN_QUEUES
from kfp_placement_controller.main import PROCESSES
from tests.controlplane.certificates import CertificateAuthority
from tests.controlplane.health import http_ready
from tests.controlplane.ports import LOOPBACK, free_ports
from tests.controlplane.waiting import wait_until
from tests.support.checkout import ROOT
from tests.support.processes import end_process
from tests.support.scraping import scrape
from tests.support.small_api_server import SmallApiServer

USER = 65532

START_SECONDS = 240.0
"""Limit of the time until a process works, on a busy machine; it takes 2 s on an idle one."""

# In mounts of its own: everything is read-only, and then the rights to change that are given up.
AS_IN_THE_IMAGE = (
    "unshare",
    "--mount",
    "sh",
    "-c",
    'mount -o remount,bind,ro / && exec setpriv --reuid "$0" --regid "$0" --clear-groups "$@"',
    str(USER),
)

# It is made after the queue process has listed all queues.
LATER_QUEUE = {
    "apiVersion": RUN_QUEUES.api_version,
    "kind": "RunQueue",
    "metadata": {
        "name": "default",
        "namespace": "later",
        "uid": "q",
        "generation": 1,
        "resourceVersion": "9",
    },
    "spec": {"quota": {"runs": 2}},
}


def _why_not() -> str:
    """Why the processes cannot be run so here; "" = they can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "only root may become another user"
    if not (shutil.which("unshare") and shutil.which("setpriv")):
        return "unshare and setpriv of util-linux are not installed"
    tried = [*AS_IN_THE_IMAGE, sys.executable, "-c", "import kfp_placement_controller.main"]
    done = subprocess.run(tried, env={}, cwd=ROOT, capture_output=True, text=True, check=False)
    return f"user {USER} cannot run this Python: {done.stderr[-200:]}" if done.returncode else ""


@pytest.fixture(scope="module", autouse=True)
def _can_be_tried():
    if why := _why_not():
        pytest.skip(why)


@pytest.fixture
def server():
    with SmallApiServer({RUN_QUEUES.path(): [("ADDED", LATER_QUEUE)]}) as serving:
        yield serving


@pytest.fixture
def kubeconfig(server):
    """In a folder that everybody may read, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "kubeconfig"
        path.write_text(server.kubeconfig())
        yield path


def command(process: str, kubeconfig: Path, *options: str) -> list[str]:
    program = (sys.executable, "-m", "kfp_placement_controller.main", process)
    return [*AS_IN_THE_IMAGE, *program, "--kubeconfig", str(kubeconfig), *options]


@contextlib.contextmanager
def started(process: str, kubeconfig: Path, *options: str) -> Iterator[None]:
    """At work meanwhile; what it has said is shown if the test fails."""
    line = command(process, kubeconfig, *options)
    running = subprocess.Popen(line, env={}, cwd="/")
    try:
        yield
        assert running.poll() is None
    finally:
        end_process(running)


def is_leading(port: int) -> bool:
    return http_ready(port)() and scrape(port).total("leading") == 1


def test_the_extender_is_ready(server, kubeconfig):
    port, probes = map(str, free_ports(2))
    with started("extend", kubeconfig, "--extender-port", port, "--probe-port", probes):
        wait_until(http_ready(int(probes)), "the extender to be ready", START_SECONDS)
        assert http_ready(int(probes), "/healthz")()


def test_the_webhook_is_ready(server, kubeconfig):
    pair = CertificateAuthority(kubeconfig.parent).server("webhook")
    pair.key.chmod(0o644)
    files = ("--webhook-certificate", str(pair.certificate), "--webhook-key", str(pair.key))
    port, probes = map(str, free_ports(2))
    ports = ("--webhook-port", port, "--probe-port", probes)
    with started("admit", kubeconfig, *files, *ports):
        wait_until(http_ready(int(probes)), "the webhook to be ready", START_SECONDS)


@pytest.mark.parametrize("process", ["plan", "queue"])
def test_a_process_leads_and_a_queue_follows_the_queues(process, server, kubeconfig):
    (port,) = free_ports(1)
    with started(process, kubeconfig, "--port", str(port), "--address", LOOPBACK):
        wait_until(lambda: is_leading(port), f"{process} to lead", START_SECONDS)
        if process == "queue":
            status = "namespaces/later/runqueues/default/status"
            wait_until(
                lambda: any(status in each for each in server.writes), "its status", START_SECONDS
            )
        assert http_ready(port, "/healthz")()


def test_release_ends_well(server, kubeconfig):
    line = command("release", kubeconfig)
    done = subprocess.run(line, env={}, cwd="/", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "0 gates taken off, 0 failed" in done.stdout


def test_no_process_is_left_out():
    assert set(PROCESSES) == {"plan", "extend", "admit", "queue", "release"}
