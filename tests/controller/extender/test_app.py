"""The HTTP side: routes, readiness, certificates, and one bad request beside others."""

import asyncio
import gc
import gzip
import io
import json
import os
import ssl
import tracemalloc
from contextlib import asynccontextmanager

import aiohttp
import pytest

from kfp_placement_controller.exceptions import SettingsError
from kfp_placement_controller.extender import bodies
from kfp_placement_controller.extender.answers import Answers
from kfp_placement_controller.extender.app import (
    listening,
    scheduler_listener,
    webhook_listener,
)
from kfp_placement_controller.extender.bodies import MAX_BODY_BYTES, MAX_HELD_BYTES_PER_ADDRESS
from kfp_placement_controller.extender.certificates import CertificateFiles
from kfp_placement_controller.extender.knowledge import Knowledge
from kfp_placement_controller.sources import DEFAULT_SOURCES
from tests.controller.extender.cluster import Cluster, pod_object
from tests.controlplane.certificates import CertificateAuthority
from tests.controlplane.ports import LOOPBACK
from tests.support.defects import fail
from tests.support.scraping import own_metric

QUESTION = {"Pod": pod_object(), "Nodes": None, "NodeNames": ["a", "b"]}


def a_cluster():
    cluster = Cluster("a", "b")
    cluster.plan(["train", 0])
    return cluster


@asynccontextmanager
async def serving(listener, trusted=None):
    """A client of one listener; gives a function that posts or gets."""
    async with listening(listener) as port, aiohttp.ClientSession() as session:
        scheme = "https" if listener.tls else "http"

        async def ask(path, body=None, method=None, **headers):
            async with session.request(
                method or ("GET" if body is None else "POST"),
                f"{scheme}://{LOOPBACK}:{port}{path}",
                data=io.BytesIO(body) if isinstance(body, bytes) else body,
                ssl=trusted if trusted is not None else True,
                headers=headers,
            ) as response:
                return response.status, await response.read()

        yield ask


def scheduler(is_synced=lambda: True, port=0):
    cluster = a_cluster()
    return scheduler_listener(Answers(lambda: cluster.knowledge, lambda *_: None), is_synced, port)


def head_of(length: int) -> bytes:
    head = f"POST /scheduler/filter HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"
    return head.encode()


def refused(limit: str) -> float:
    return own_metric("http_refused_total", port="scheduler", limit=limit)


def test_the_scheduler_s_questions_are_answered():
    async def check():
        async with serving(scheduler()) as ask:
            status, body = await ask("/scheduler/filter", json.dumps(QUESTION))
            assert (status, json.loads(body)["NodeNames"]) == (200, ["a"])
            status, body = await ask("/scheduler/prioritize", json.dumps(QUESTION))
            assert (status, json.loads(body)[0]) == (200, {"Host": "a", "Score": 10})
            assert (await ask("/scheduler/filter", method="GET"))[0] == 405
            assert (await ask("/scheduler/bind", b"{}"))[0] == 404

    asyncio.run(check())


def test_a_question_that_is_held_back_is_answered_from_what_has_become_of_the_room():
    async def check():
        cluster = a_cluster()
        cluster.seen_to_bind("other")
        cluster.pod(name="theirs", cpu="8", scheduler="other")
        answers = Answers(lambda: cluster.knowledge, lambda *_: None, clock=lambda: cluster.now)
        question = {**QUESTION, "Pod": pod_object(cpu="1"), "NodeNames": ["a"]}
        async with serving(scheduler_listener(answers, lambda: True, 0)) as ask:
            asked = asyncio.create_task(ask("/scheduler/filter", json.dumps(question)))
            await asyncio.sleep(0)
            # Meanwhile others are answered, and theirs is placed.
            assert (await ask("/scheduler/prioritize", json.dumps(QUESTION)))[0] == 200
            cluster.pod(name="theirs", cpu="8", scheduler="other", node="a")
            status, body = await asked
            assert status == 200
            assert list(json.loads(body)["FailedAndUnresolvableNodes"]) == ["a"]

    asyncio.run(check())


def test_until_everything_is_known_the_answer_is_503():
    async def check():
        async with serving(scheduler(lambda: False)) as ask:
            assert (await ask("/scheduler/filter", json.dumps(QUESTION)))[0] == 503

    asyncio.run(check())


def test_bad_requests_do_not_harm_others():
    async def check():
        async with serving(scheduler()) as ask:
            bad = [b"", b"{", b"\x00" * 1000, b"[" * 100_000, b" " * (MAX_BODY_BYTES + 1)]
            good = json.dumps(QUESTION)
            questions = [each for one in bad for each in (one, good)]
            replies = await asyncio.gather(*(ask("/scheduler/filter", each) for each in questions))
            assert [status for status, _ in replies[::2]] == [400, 400, 400, 400, 413]
            assert all(json.loads(body)["NodeNames"] == ["a"] for _, body in replies[1::2])

    asyncio.run(check())


def test_a_body_of_unknown_length_is_refused():
    async def pieces():
        yield json.dumps(QUESTION).encode()

    async def check():
        async with serving(scheduler()) as ask:
            assert (await ask("/scheduler/filter", pieces()))[0] == 411

    before = refused("no-length")
    asyncio.run(check())
    assert refused("no-length") == before + 1


def test_a_body_that_is_packed_is_not_unpacked():
    packed = gzip.compress(json.dumps(QUESTION).encode() + b" " * MAX_BODY_BYTES)

    async def check():
        async with serving(scheduler()) as ask:
            reply = await ask("/scheduler/filter", packed, **{"Content-Encoding": "gzip"})
            assert reply[0] == 400

    asyncio.run(check())


def test_a_body_that_does_not_come_in_is_given_up(monkeypatch):
    monkeypatch.setattr(bodies, "MAX_BODY_SECONDS", 0.2)

    async def check():
        async with listening(scheduler()) as port:
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            writer.write(head_of(9) + b"{")
            assert (await reader.readline()).split()[1] == b"408"
            writer.close()

    before = refused("body-time")
    asyncio.run(check())
    assert refused("body-time") == before + 1


def test_nothing_of_bodies_that_do_not_come_in_is_kept_until_garbage_is_collected(monkeypatch):
    monkeypatch.setattr(bodies, "MAX_BODY_SECONDS", 0.2)
    length = 2**20

    async def check():
        async with listening(scheduler()) as port:
            for _ in range(20):
                reader, writer = await asyncio.open_connection(LOOPBACK, port)
                writer.write(head_of(length) + b" " * (length - 1))
                assert (await reader.readline()).split()[1] == b"408"
                writer.close()
            return tracemalloc.get_traced_memory()[0]

    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        assert asyncio.run(check()) < 5 * length
    finally:
        tracemalloc.stop()
        gc.enable()


def test_heads_that_are_not_http_are_counted_and_not_logged(caplog):
    async def check():
        async with listening(scheduler()) as port:
            for head in (
                b"GET / HTTP/1.1\r\n\r\n",
                b"?\r\n\r\n",
                b"GET / HTTP/1.1\r\n" + 40 * b"A: b\r\n",
            ):
                reader, writer = await asyncio.open_connection(LOOPBACK, port)
                writer.write(head)
                assert (await reader.readline()).split()[1] == b"400"
                writer.close()

    before = refused("head")
    asyncio.run(check())
    assert refused("head") == before + 3
    assert caplog.text == ""


def test_who_sends_much_at_a_time_is_refused_and_others_are_not():
    async def check():
        own = own_metric("http_refused_total", port="webhook", limit="held-bytes-of-address")
        answers = Answers(lambda: Knowledge(DEFAULT_SOURCES), lambda *_: None)
        half = MAX_HELD_BYTES_PER_ADDRESS // 2
        head = f"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: {half}\r\n\r\n".encode()
        async with listening(webhook_listener(answers, lambda: True, 0, None)) as port:

            async def begin(address):
                reader, writer = await asyncio.open_connection(
                    LOOPBACK, port, local_addr=(address, 0)
                )
                writer.write(head)
                return reader, writer

            held = [await begin("127.0.0.2") for _ in range(2)]
            await asyncio.sleep(0.1)
            for address, status in (("127.0.0.2", b"429"), ("127.0.0.3", b"400")):
                reader, writer = await begin(address)
                writer.write(b"x" * half)
                assert (await reader.readline()).split()[1] == status
                writer.close()
            for _, writer in held:
                writer.close()
        metric = own_metric("http_refused_total", port="webhook", limit="held-bytes-of-address")
        assert metric == own + 1

    asyncio.run(check())


def test_a_defect_of_ours_keeps_all_nodes_and_is_counted(caplog):
    def count() -> float:
        return own_metric("answers_total", verb="filter", outcome="defect")

    async def check():
        cluster = a_cluster()
        answers = Answers(lambda: cluster.knowledge, fail)
        async with serving(scheduler_listener(answers, lambda: True, 0)) as ask:
            status, body = await ask("/scheduler/filter", json.dumps(QUESTION))
            assert (status, json.loads(body)["NodeNames"]) == (200, ["a", "b"])
        pod = {"uid": "1", "namespace": "team-a", "operation": "CREATE", "object": pod_object()}
        unknown = Answers(fail, lambda *_: None)
        async with serving(webhook_listener(unknown, lambda: True, 0, None)) as ask:
            status, body = await ask("/mutate", json.dumps({"request": pod}))
            assert (status, json.loads(body)["response"]) == (200, {"uid": "1", "allowed": True})

    before = count()
    asyncio.run(check())
    assert count() == before + 1
    assert "ZeroDivisionError" in caplog.text


def test_a_port_that_is_taken_is_named():
    async def check():
        async with listening(scheduler()) as port:
            with pytest.raises(SettingsError, match=f"cannot listen on {LOOPBACK}:{port}"):
                scheduler(port=port)

    asyncio.run(check())


def test_the_webhook_uses_renewed_certificates(tmp_path):
    first, second = (tmp_path / name for name in ("first", "second"))
    first.mkdir()
    second.mkdir()
    old, new = CertificateAuthority(first), CertificateAuthority(second)
    pair = old.server("webhook")
    files = CertificateFiles(pair.certificate, pair.key)
    review = json.dumps({"request": {"uid": "u", "namespace": "team-a", "object": {}}})

    async def ask(authority):
        trusted = ssl.create_default_context(cafile=authority.certificate)
        answers = Answers(lambda: Knowledge(DEFAULT_SOURCES), lambda *_: None)
        listener = webhook_listener(answers, lambda: True, 0, files.context)
        async with serving(listener, trusted) as post:
            asked = [await post(path, review) for path in ("/mutate", "/mutate-pipelines")]
        assert asked[0] == asked[1]
        return asked[0]

    def renew(certificate: bytes, key: bytes):
        for path, content in ((pair.certificate, certificate), (pair.key, key)):
            fresh = path.with_suffix(".new")
            fresh.write_bytes(content)
            os.replace(fresh, path)

    status, body = asyncio.run(ask(old))
    assert (status, json.loads(body)["response"]) == (200, {"uid": "u", "allowed": True})
    renew(b"no certificate", b"no key")
    files.check()
    assert asyncio.run(ask(old))[0] == 200
    renewed = new.server("webhook")
    renew(renewed.certificate.read_bytes(), renewed.key.read_bytes())
    files.check()
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        asyncio.run(ask(old))
    assert asyncio.run(ask(new))[0] == 200


def test_files_that_are_no_certificate_are_named(tmp_path):
    with pytest.raises(SettingsError, match=r"missing\.crt"):
        CertificateFiles(tmp_path / "missing.crt", tmp_path / "missing.key")
