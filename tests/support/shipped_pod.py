"""The processes of the scheduler's pod as they are shipped, on an API server in memory."""

import contextlib
import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.controller.extender.cluster import pod_object
from tests.controlplane.certificates import CertificateAuthority
from tests.controlplane.health import http_ready
from tests.controlplane.ports import LOOPBACK, free_ports
from tests.controlplane.waiting import wait_until
from tests.support.manifests import DEPLOY, shipped_variables
from tests.support.processes import end_process
from tests.support.scraping import scrape
from tests.support.small_api_server import SmallApiServer

QUESTION = json.dumps(
    {"Pod": pod_object(), "Nodes": None, "NodeNames": [f"node-{number}" for number in range(100)]}
)

_DEPLOYMENT = DEPLOY / "features/webhook/admit.yaml"


@dataclass(frozen=True)
class ShippedPod:
    """`extend` and `admit` at work.

    Attributes:
        extender, probes: ports of `extend`.
        webhook, admit_probes: ports of `admit`.
        admit: the process `admit`.
        log: what `admit` has said.
    """

    extender: int
    probes: int
    webhook: int
    admit_probes: int
    admit: subprocess.Popen[bytes]
    log: Path

    def refused(self, port_name: str) -> float:
        """Return how often a port has refused something."""
        probes = self.admit_probes if port_name == "webhook" else self.probes
        return scrape(probes).total("http_refused_total", port=port_name)

    def megabytes(self, field: str = "VmRSS") -> float:
        """Return memory of `admit`: now, or with `VmHWM` the most so far."""
        status = Path(f"/proc/{self.admit.pid}/status").read_text()
        (line,) = (each for each in status.splitlines() if each.startswith(field))
        return int(line.split()[1]) / 1000


@contextlib.contextmanager
def shipped_pod(folder: Path) -> Iterator[ShippedPod]:
    """Run both processes; the folder takes certificates and logs."""
    pair = CertificateAuthority(folder).server("webhook")
    extender, probes, webhook, admit_probes = free_ports(4)
    with SmallApiServer() as api, contextlib.ExitStack() as running:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(api.kubeconfig())

        def start(process: str, *options: object) -> subprocess.Popen[bytes]:
            line = (sys.executable, "-m", "kfp_placement_controller.main", process)
            log = running.enter_context((folder / f"{process}.log").open("wb"))
            shipped = shipped_variables(yaml.safe_load_all(_DEPLOYMENT.read_text()), process)
            started = subprocess.Popen(
                (*line, "--kubeconfig", str(kubeconfig), *map(str, options)),
                stderr=log,
                env=os.environ | shipped,
            )
            running.callback(end_process, started)
            return started

        start("extend", "--extender-port", extender, "--probe-port", probes)
        files = ("--webhook-certificate", pair.certificate, "--webhook-key", pair.key)
        admit = start("admit", "--webhook-port", webhook, "--probe-port", admit_probes, *files)
        for port in (probes, admit_probes):
            wait_until(http_ready(port), "the processes to be ready")
        yield ShippedPod(extender, probes, webhook, admit_probes, admit, folder / "admit.log")


def slow_milliseconds(port: int, seconds: float) -> float:
    """Ask for a node for some time, and return how long 9 of 10 answers take at most."""
    taken, until = [], time.monotonic() + seconds
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=30)
    with contextlib.closing(connection):
        while (began := time.monotonic()) < until:
            connection.request("POST", "/scheduler/filter", QUESTION)
            connection.getresponse().read()
            taken.append(1000 * (time.monotonic() - began))
            time.sleep(0.002)
    return sorted(taken)[len(taken) * 9 // 10]
