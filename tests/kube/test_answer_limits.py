"""Answers that come slowly: a server that sends byte after byte holds nobody up for long."""

import time
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from kfp_placement_kube.configuration import Configuration
from kfp_placement_kube.exceptions import GarbledError, UnreachableError
from kfp_placement_kube.transport import Transport, TransportParams
from tests.support.web_server import Answer, sending, web_server

PATH = "/slow"


def body(answer: Answer, **params: Any) -> bytes:
    with web_server({PATH: answer}) as url:
        transport = Transport(
            lambda: Configuration(url, lambda: None), TransportParams("test", **params)
        )
        return transport.read(transport.send("GET", PATH, {}), PATH)


def byte_after_byte(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Length", "1000")
    request.end_headers()
    for _ in range(1000):
        request.wfile.write(b" ")
        time.sleep(0.02)


def in_chunks(request: BaseHTTPRequestHandler) -> None:
    request.protocol_version = "HTTP/1.1"
    request.send_response(200)
    request.send_header("Transfer-Encoding", "chunked")
    request.end_headers()
    request.wfile.write(b"3\r\nabc\r\n70000\r\n" + b"x" * 0x70000 + b"\r\n0\r\n\r\n")


def test_a_body_must_come_in_whole_in_time():
    began = time.monotonic()
    with pytest.raises(UnreachableError, match=r"the answer took longer than 0\.2 s"):
        body(byte_after_byte, max_answer_seconds=0.2)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("limits", [{}, {"max_answer_seconds": 10.0}])
def test_a_body_in_time_is_read_whole(limits):
    assert body(sending(b"a" * 200_000), **limits) == b"a" * 200_000
    assert body(in_chunks, **limits) == b"abc" + b"x" * 0x70000
    assert body(sending(b""), **limits) == b""


@pytest.mark.parametrize("limits", [{}, {"max_answer_seconds": 10.0}])
def test_a_body_may_have_its_limit_and_no_byte_more(limits):
    assert len(body(sending(b"a" * 70_000), max_answer_bytes=70_000, **limits)) == 70_000
    with pytest.raises(GarbledError, match="more than 70000 bytes"):
        body(sending(b"a" * 70_001), max_answer_bytes=70_000, **limits)
