"""A cluster by URL: what servers may do to us, each in one clear sentence."""

import socket
import threading

import pytest

from kfp_placement import RunError, preview
from kfp_placement._input_file import InputFile
from kfp_placement.clusters.download import download
from kfp_placement.clusters.reading import is_url
from kfp_placement_engine.exceptions import InputError, InputNotFoundError, LimitError
from tests.controlplane.certificates import CertificateAuthority
from tests.support.samples import SAMPLES
from tests.support.web_server import sending, web_server

CLUSTER = (SAMPLES / "06_taxi" / "cluster.yaml").read_bytes()


@pytest.fixture
def quick(monkeypatch):
    """Less is put up with of a server than usual."""
    monkeypatch.setattr("kfp_placement.clusters.download.MOST_SECONDS", 0.3)
    monkeypatch.setattr("kfp_placement.clusters.download.MOST_BYTES", 2000)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)


over = threading.Event()
"""Set when a test ends, for servers that go on without end."""


def dripping(request, beginning=b"HTTP/1.0 200 OK\r\n\r\n"):
    """What comes a byte at a time and never ends."""
    request.wfile.write(beginning)
    while not over.wait(0.02):
        request.wfile.write(b"#")


def dripping_headers(request):
    dripping(request, b"HTTP/1.0 200 OK\r\nX-Slow: ")


def silent(_request):
    over.wait(5)


def endless(request):
    request.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n")
    while not over.is_set():
        request.wfile.write(b"#" * 1000)


def garbled(request):
    request.wfile.write(b"220 mail.example ESMTP\r\n")


@pytest.fixture
def host():
    over.clear()
    answers = {
        "/cluster.yaml": sending(CLUSTER),
        "/dripping": dripping,
        "/dripping-headers": dripping_headers,
        "/silent": silent,
        "/endless": endless,
        "/huge": sending(b"", Content_Length="6000000"),
        "/garbled": garbled,
        "/cut-off": sending(CLUSTER[:97], Content_Length="142"),
        "/page": sending(b"<!doctype html>\n<p>Sign in</p>", Content_Type="text/html"),
        "/binary": sending(b"\x1f\x8b\x08\x00"),
        "/other": sending(b'{"hello": 1}'),
        "/forbidden": sending(b"", status=403, reason="Forbidden\x1b[2J"),
        "/broken": sending(b"", status=500),
        "/moved": sending(b"", status=302, Location="/cluster.yaml"),
        "/loop": sending(b"", status=302, Location="/loop"),
        "/to-a-file": sending(b"", status=302, Location="file:///etc/passwd"),
        "/to-ftp": sending(b"", status=302, Location="ftp://127.0.0.1/cluster.yaml"),
    }
    with web_server(answers) as address:
        yield address
        over.set()


@pytest.mark.parametrize("path", ["/cluster.yaml", "/moved", "/cluster.yaml?token=secret#part"])
def test_a_cluster_may_come_from_a_web_server(host, path):
    assert download(host + path) == InputFile((host + path).partition("?")[0], CLUSTER)


def test_a_preview_takes_a_url(host):
    plan = preview(SAMPLES / "06_taxi" / "pipeline.yaml", f"{host}/cluster.yaml", budget=0.05)
    assert plan.plan.cluster.source == f"{host}/cluster.yaml"


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/missing", InputNotFoundError),
        ("/forbidden", InputError),
        ("/broken", InputError),
        ("/page", InputError),
        ("/garbled", InputError),
        ("/loop", InputError),
        ("/to-a-file", InputError),
        ("/to-ftp", InputError),
        ("/dripping", InputError),
        ("/dripping-headers", InputError),
        ("/silent", InputError),
        ("/cut-off", InputError),
        ("/endless", LimitError),
        ("/huge", LimitError),
    ],
)
def test_what_is_no_file_is_one_clear_sentence(host, quick, golden, path, error):
    with pytest.raises(error) as caught:
        download(host + path)
    golden(str(caught.value).replace(host, "http://HOST"))


def test_a_server_that_goes_on_keeps_no_thread_busy(host, quick):
    with pytest.raises(InputError, match="has not sent it within"):
        download(f"{host}/dripping")
    for thread in threading.enumerate():
        if thread.name == "download":
            thread.join(5)
            assert not thread.is_alive()


@pytest.mark.parametrize("path", ["/binary", "/other"])
def test_what_is_no_cluster_names_the_url(host, golden, path):
    with pytest.raises(RunError) as caught:
        preview(SAMPLES / "06_taxi" / "pipeline.yaml", host + path)
    golden(str(caught.value).replace(host, "http://HOST"))


@pytest.mark.parametrize(
    "url",
    [
        "https://user:secret@example.com/cluster.yaml",
        "https:///cluster.yaml",
        "https://example.com:port/",
        "https://user:secret@example.com:port/",
        "https://exa mple.com/",
        "http://[::1/",
        "https://example.com/\u202egpj.yaml",
    ],
)
def test_what_is_no_url_is_told_before_anything_is_asked(golden, url):
    assert is_url(url)
    with pytest.raises(InputError) as caught:
        download(url)
    assert "secret" not in str(caught.value)
    golden(str(caught.value))


def test_a_certificate_that_nobody_vouches_for_is_named(tmp_path):
    pair = CertificateAuthority(tmp_path).server("stranger")
    with (
        web_server({"/cluster.yaml": sending(CLUSTER)}, pair) as address,
        pytest.raises(InputError, match="certificate verify failed"),
    ):
        download(f"{address}/cluster.yaml")


def test_a_host_that_does_not_listen_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=r"127\.0\.0\.1 cannot be reached: Connection refused"):
            download(f"http://127.0.0.1:{port}/cluster.yaml")
