"""Attacks over HTTP: on the ports of the scheduler's pod, and by servers that we ask.

No control plane is needed: the processes are the shipped ones, and the API server is one in memory.
"""

import contextlib
import gzip
import itertools
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from kfp_placement.clusters.download import download
from kfp_placement_controller.actuators.prometheus import Prometheus
from kfp_placement_controller.connection import transport_to, transport_to_kfp
from kfp_placement_controller.extender.bodies import MAX_BODY_BYTES
from kfp_placement_controller.learning.actions import AskMemory, MemoryPod
from kfp_placement_controller.settings import PlanSettings
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from tests.controlplane.health import http_ready
from tests.controlplane.ports import LOOPBACK
from tests.controlplane.waiting import wait_until
from tests.support.http_attacks import CONTENTS, connected, goes_on, head, status_of
from tests.support.shipped_pod import ShippedPod, shipped_pod, slow_milliseconds
from tests.support.web_server import sending, web_server

# They need none, but as long, and an idle machine.
pytestmark = pytest.mark.cluster

MOST_MEGABYTES = 400
"""Memory of the webhook in all attacks; its container may have 512 MiB, 537 MB."""

MOST_RATIO = 2.0
"""How much slower an answer to the scheduler may be than that of a pod that nobody attacks."""

TRIES = 4
"""Number of tries: on a busy machine one of both pods can get less CPU time for seconds; what an
attack holds up is held up each time."""

REVIEW = json.dumps({"request": {"uid": "u", "namespace": "team", "object": {}}}).encode()


@pytest.fixture(scope="module")
def pods(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ShippedPod, ShippedPod]]:
    """A pod that is attacked, and one that is not."""
    with (
        shipped_pod(tmp_path_factory.mktemp("attacked")) as attacked,
        shipped_pod(tmp_path_factory.mktemp("spared")) as spared,
    ):
        yield attacked, spared


@pytest.fixture
def pod(pods: tuple[ShippedPod, ShippedPod]) -> Iterator[ShippedPod]:
    """The pod that is attacked; it admits others as before, and nothing has ended."""
    yield pods[0]
    assert pods[0].admit.poll() is None
    assert pods[0].megabytes("VmHWM") < MOST_MEGABYTES
    for port in (pods[0].probes, pods[0].admit_probes):
        wait_until(http_ready(port, "/healthz"), "the processes to be healthy")
    assert admitted(pods[0].webhook) == "200"


def admitted(port: int, source: str = "127.0.0.99") -> str:
    """Status of the answer to an honest question, from an address of its own."""
    with connected(port, source) as connection:
        connection.sendall(head("/mutate", len(REVIEW)) + REVIEW)
        return status_of(connection)


@contextlib.contextmanager
def attack(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """An attack by a process of its own, which a test may end early."""
    line = (sys.executable, "-m", "tests.support.http_attacks", *map(str, arguments))
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as attacking:
        try:
            yield attacking
        finally:
            attacking.kill()


def ratio(pods: tuple[ShippedPod, ShippedPod], rounds: int = 5) -> float:
    """How much slower the attacked pod answers its scheduler; the median of some rounds.

    Both are asked in turn, since the attack takes CPU time of this machine too.
    """
    pairs = [[slow_milliseconds(each.extender, 0.4) for each in pods] for _ in range(rounds)]
    return sorted(attacked / spared for attacked, spared in pairs)[rounds // 2]


@pytest.mark.parametrize(
    ("port", "path", "length"),
    [("webhook", "/mutate", 30), ("webhook", "/mutate", 1_000_000), ("probes", "/metrics", 0)],
)
def test_a_flood_holds_up_no_answer_to_the_scheduler(pods, pod, port, path, length):
    before = pod.log.stat().st_size
    with attack("flood", getattr(pod, port), path, 120.0, length, 16):
        time.sleep(1)
        ratios: list[float] = []
        while not ratios or (ratios[-1] > MOST_RATIO and len(ratios) < TRIES):
            ratios.append(ratio(pods))
        assert ratios[-1] <= MOST_RATIO, ratios
        if port == "webhook":
            assert admitted(pod.webhook) == "200"
    assert pod.log.stat().st_size - before < 10_000


def test_withheld_bodies_take_little_memory_and_end_soon(pod):
    refused = pod.refused("webhook")
    with attack("withhold", pod.webhook, "/mutate", 300, MAX_BODY_BYTES, 12) as attacking:
        outcomes = json.loads(attacking.communicate(timeout=60)[0])
    assert sum(outcomes.values()) == 300
    assert "200" not in outcomes
    assert pod.refused("webhook") > refused


@pytest.mark.parametrize("what", CONTENTS)
def test_what_is_sent_again_and_again_takes_little_memory(pod, what):
    """Also what is left of connections that have ended; nothing of it is logged."""
    before = pod.log.stat().st_size
    with attack("repeat", pod.webhook, what, 2.0, 64) as attacking:
        assert json.loads(attacking.communicate(timeout=90)[0])
    assert pod.megabytes("VmHWM") < MOST_MEGABYTES
    assert pod.log.stat().st_size - before < 10_000


def test_heads_and_handshakes_that_do_not_end_are_cut_off(pod):
    """From one address, and so slowly that each byte comes before any pause is too long."""
    begun = time.monotonic()
    with contextlib.ExitStack() as closing:
        silent = [
            closing.enter_context(connected(pod.webhook, "127.0.0.2", tls=False)) for _ in range(10)
        ]
        slow = [closing.enter_context(connected(pod.webhook, "127.0.0.3")) for _ in range(10)]
        probing = closing.enter_context(connected(pod.probes, "127.0.0.3", tls=False))
        for each in (*slow, probing):
            each.sendall(b"GET /mutate HTTP/1.1\r\nHost: x\r\nSlow: ")
        open_ones = [*slow, probing]
        while open_ones and time.monotonic() - begun < 30:
            open_ones = [each for each in open_ones if drips(each)]
            time.sleep(0.5)
        assert open_ones == []
        for each in silent:
            each.settimeout(20)
            with contextlib.suppress(ConnectionResetError):
                assert each.recv(1) == b""
    assert time.monotonic() - begun < 30


def drips(connection: socket.socket) -> bool:
    """Send one byte more; returns whether anybody is still there."""
    try:
        connection.sendall(b"x")
    except OSError:
        return False
    return goes_on(connection)


def test_connections_that_stay_open_leave_room_for_others(pod):
    with (
        attack("hold", pod.webhook, "/mutate", 100) as many,
        attack("hold", pod.probes, "/metrics", 100) as others,
    ):
        for each, most in ((many, 48), (others, 4)):
            assert each.stdout is not None
            assert 0 < json.loads(each.stdout.readline())["held"] <= most
        assert admitted(pod.webhook) == "200"
        assert http_ready(pod.probes)()


def test_many_addresses_that_fill_a_port_crowd_out_nobody(pod):
    """Neither the probes of the kubelet, nor questions of the API server."""
    before = pod.refused("probes")
    with (
        attack("crowd", pod.probes, "/healthz", 12.0, 20, 4),
        attack("crowd", pod.webhook, "/mutate", 12.0, 10, 40),
    ):
        time.sleep(2)
        for _ in range(20):
            assert http_ready(pod.probes, "/healthz")()
            assert admitted(pod.webhook) == "200"
            time.sleep(0.2)
    assert pod.refused("probes") > before


@pytest.mark.parametrize(
    ("body", "more", "status"),
    [
        (b"", f"Content-Length: {MAX_BODY_BYTES + 1}\r\n", "413"),
        (b"", "Content-Length: 99999999999999999999\r\n", "400"),
        (b"1\r\n{\r\n", "Transfer-Encoding: chunked\r\n", "411"),
        (b"", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "400"),
        (gzip.compress(b" " * 2**24), "Content-Encoding: gzip\r\nContent-Length: {}\r\n", "400"),
        (b"[" * 1_000_000, "Content-Length: {}\r\n", "400"),
        (b'{"a":' * 200_000, "Content-Length: {}\r\n", "400"),
        (b'{"request": 1}', "Content-Length: {}\r\n", "400"),
        (b'{"request": {"uid": "u", "object": [[]]}}', "Content-Length: {}\r\n", "400"),
        (b"", f"X: {'x' * 20_000}\r\nContent-Length: 0\r\n", "400"),
        (b"", "X: x\r\n" * 200 + "Content-Length: 0\r\n", "400"),
    ],
    ids=itertools.count(),
)
def test_a_question_that_is_malformed_is_refused_at_once(pod, body, more, status):
    before = pod.megabytes()
    with connected(pod.webhook, "127.0.0.5") as connection:
        question = f"POST /mutate HTTP/1.1\r\nHost: x\r\n{more.replace('{}', str(len(body)))}\r\n"
        began = time.monotonic()
        connection.sendall(question.encode() + body)
        assert status_of(connection) == status
        # Sooner than what waits for something that does not come.
        assert time.monotonic() - began < 5
    assert pod.megabytes() - before < 100


def test_the_port_of_the_scheduler_is_open_to_its_own_pod_alone(pod):
    """Every address of this machine is tried but that one."""
    with attack("reach", pod.extender, "-") as attacking:
        reached = json.loads(attacking.communicate(timeout=60)[0])
    assert reached[LOOPBACK] == 1
    assert sum(reached.values()) == 1


def test_a_download_is_led_to_no_address_of_another_network():
    """Also not to an account in a URL, to a file, in a circle, or by a body without an end."""
    asked: list[str] = []
    over = threading.Event()

    def endless(request):
        request.wfile.write(b"HTTP/1.0 302 Moved\r\nLocation: /cluster\r\n\r\n")
        while not over.is_set():
            request.wfile.write(b"#" * 2**16)

    def hello(request):
        asked.append(request.path)
        sending(b"hello")(request)

    def to(place):
        return sending(b"", status=302, Location=place)

    answers = {
        "/metadata": to("http://169.254.169.254/latest/meta-data/"),
        "/mapped": to("http://[::ffff:169.254.169.254]/"),
        "/private": to("http://10.0.0.1/"),
        "/account": to("http://user:secret@127.0.0.1/"),
        "/file": to("file:///etc/passwd"),
        "/circle": to("/circle"),
        "/endless": endless,
        "/cluster": hello,
    }
    with web_server(answers) as address:
        for path in ("metadata", "mapped", "private", "account", "file", "circle"):
            began = time.monotonic()
            with pytest.raises(InputError) as caught:
                download(f"{address}/{path}")
            assert "secret" not in str(caught.value)
            assert time.monotonic() - began < 3
        assert download(f"{address}/endless").data == b"hello"
        over.set()
    assert asked == ["/cluster"]


def test_a_server_that_we_ask_leads_the_planner_and_its_token_nowhere(tmp_path):
    """A Prometheus, and KFP's API, which gets a token."""
    elsewhere: list[str] = []
    (tmp_path / "token").write_text("secret")

    def note(request):
        elsewhere.append(request.headers.get("Authorization", ""))
        sending(b"{}")(request)

    with web_server({"/stolen": note}) as thief:
        redirect = sending(b"", status=307, Location=f"{thief}/stolen")
        with web_server({"/api/v1/query": redirect, "/runs": redirect}) as server:
            pods = (MemoryPod("uid", "pod", 10.0),)
            question = AskMemory(server, RunKey("ns", "run"), pods)
            assert "307" in Prometheus(transport_to, {"main"}).answer(question).failure
            settings = PlanSettings(kfp_api_address=server, kfp_api_token=tmp_path / "token")
            assert transport_to_kfp(settings).send("GET", "/runs", {}).status == 307
    assert elsewhere == []
