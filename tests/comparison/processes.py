"""The process `extend` as it runs in a cluster, on stored objects: its answers over HTTP."""

import contextlib
import http.client
import json
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.comparison import questions, stored
from tests.comparison.api_server import ApiServer
from tests.comparison.cases import CaseFolder
from tests.comparison.certificate import write_certificate
from tests.comparison.objects import Address, JsonObject, Store
from tests.comparison.stored import pod, policy, taxi

START_SECONDS = 60.0
PROGRAM = (
    "from tests.comparison.frozen_time import freeze; freeze();"
    " from kfp_placement_controller.main import main; raise SystemExit(main())"
)
COUNTED = ("# HELP ", "# TYPE ", "kfp_placement_answers_total")
"""Lines of the metrics that are the same every time."""

_READY = {"schedulerReady": True, "gatesReady": True}
POLICIES: Mapping[str, JsonObject | None] = {
    "extender": policy({}, **_READY),
    "gates": policy({"actuator": "gates", "headroom": {"cpu": "500m"}}, **_READY),
    "rules": policy(
        {
            "schedulerNames": ["kfp-placement", "another"],
            "latencyRules": {"stepTypes": ["Training"], "tolerance": "40ms"},
        },
        **_READY,
    ),
    "paused": policy({"paused": True}, **_READY),
    "none": None,
}


def collect(cases: CaseFolder) -> None:
    """Every question under several policies, then what is counted and written."""
    certificate, key = write_certificate(Path("certificate"))
    for name, found in POLICIES.items():
        with _extend(_objects(found), certificate, key) as (server, ports):
            for each in questions.of_the_scheduler():
                cases.write(f"{name}/{each.name}", _answer(ports[0], each))
            for each in questions.of_the_api_server():
                cases.write(f"{name}/{each.name}", _answer(ports[2], each, tls=True))
            for path in ("/healthz", "/readyz", "/nothing"):
                probe = questions.Question(path, path, b"")
                cases.write(f"{name}/probe{path}", _answer(ports[1], probe, method="GET"))
            cases.write(f"{name}/policy", _policy(server))
            cases.write(f"{name}/metrics", _metrics(ports[1]))


def _objects(found: JsonObject | None) -> list[JsonObject]:
    """The dump's nodes with two plans on them, and some pods that run."""
    nodes = ["worker-1", "worker-2", "gpu-1"]
    rows = [
        ["fetch", 0, 10, 41.8, ["ends-first", 12, 1], [[1, 12], [2, 30.5]]],
        ["train", 2, 47, 1249, ["run-later", 1200, 1], [[1, 1200], [0, 2400]]],
        ["predict", 1, 1254, 1375, ["latency-best", "HOME-EDGE", 3, 9.8, 42.6], [[0, 0, 42.5]]],
    ]
    objects = [
        stored.namespace("team-a"),
        *stored.dump_objects(),
        taxi(spec={"nodes": nodes, "steps": rows}),
        taxi("other", spec={"nodes": nodes, "steps": [["fetch", 1, 0, 10]]}),
        pod("running", run="third", node="worker-1", phase="Running"),
        pod("waiting", run="third", gates=(stored.MINE,)),
    ]
    return objects if found is None else [*objects, found]


@contextlib.contextmanager
def _extend(
    objects: list[JsonObject], certificate: Path, key: Path
) -> Iterator[tuple[ApiServer, list[int]]]:
    ports = _free_ports(3)
    with ApiServer(Store(objects)) as server:
        Path("extend.json").write_text(server.kubeconfig(), "utf-8")
        command = [
            *(sys.executable, "-P", "-c", PROGRAM, "extend", "--kubeconfig", "extend.json"),
            *("--extender-port", str(ports[0]), "--probe-port", str(ports[1])),
            *("--webhook-port", str(ports[2]), "--identity", "me"),
            *("--webhook-certificate", str(certificate), "--webhook-key", str(key)),
        ]
        with Path("extend.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _wait_ready(process, ports[1])
            yield server, ports
        finally:
            server.closing.set()
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_ready(process: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError):
            if _request("GET", port, "/readyz", b"")[0] == 200:
                return
        time.sleep(0.1)
    raise SystemExit(f"extend is not ready: {Path('extend.log').read_text('utf-8')[-2000:]}")


def _answer(
    port: int, asked: questions.Question, *, tls: bool = False, method: str = "POST"
) -> str:
    status, kind, body = _request(method, port, asked.path, asked.body, tls=tls)
    shown = asked.body.decode("utf-8", "backslashreplace")
    return f"{method} {asked.path}\n{shown}\n--- {status} {kind}\n{body.decode()}\n"


def _request(
    method: str, port: int, path: str, body: bytes, *, tls: bool = False
) -> tuple[int, str, bytes]:
    if tls:
        trusting = ssl.create_default_context()
        trusting.check_hostname = False
        trusting.verify_mode = ssl.CERT_NONE
        connection: Any = http.client.HTTPSConnection("127.0.0.1", port, context=trusting)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body or None, {"Content-Type": "application/json"})
        found = connection.getresponse()
        return found.status, found.getheader("Content-Type", ""), found.read()
    finally:
        connection.close()


def _metrics(port: int) -> str:
    lines = _request("GET", port, "/metrics", b"")[2].decode().splitlines()
    # When a metric was first counted is shown beside it once it has been.
    kept = [line for line in lines if line.startswith(COUNTED) and "_created " not in line]
    return "\n".join(sorted(kept))


def _policy(server: ApiServer) -> str:
    """What the process says in the policy's status; it looks every second."""
    until = time.monotonic() + START_SECONDS / 4
    while time.monotonic() < until and not server.writes:
        time.sleep(0.1)
    found = server.store.get(Address("", "placementpolicies").named("default"))
    for key in ("resourceVersion", "generation"):
        (found or {}).get("metadata", {}).pop(key, None)
    return json.dumps(found, indent=1, sort_keys=True)


def _free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
