"""The HTTP side of the extender: routes, limits, readiness. aiohttp stays in here.

Three listeners: the scheduler's questions (loopback), probes and metrics, and the webhook (TLS).
"""

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from kfp_placement_controller.exceptions import SettingsError
from kfp_placement_controller.extender.answers import Answer, Answers

_LOG = logging.getLogger(__name__)

MAX_BODY_BYTES = 4 * 2**20
"""Largest question: a pod is at most 1.5 MB, the names of 5,000 nodes are at most 1.3 MB, and a
Workflow that is tried again comes twice, with at most 1.5 MB each."""

CERTIFICATE_CHECK_SECONDS = 10.0
"""How often the webhook's certificate files are looked at; kubelets replace them in place."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Listener:
    """Where an application listens.

    Attributes:
        application: what answers there.
        address: of this machine; None = all.
        port: 0 = one that is free.
        tls: for HTTPS.
    """

    application: web.Application
    address: str | None
    port: int
    tls: ssl.SSLContext | None = None


def scheduler_application(answers: Answers, is_synced: Callable[[], bool]) -> web.Application:
    """The routes that kube-scheduler calls; 503 until everything is known."""
    application = web.Application(client_max_size=MAX_BODY_BYTES)

    async def settled(body: bytes) -> Answer:
        begun = time.monotonic()
        answered = answers.filter(body)
        while answered.pause_seconds:
            await asyncio.sleep(answered.pause_seconds)
            answered = answers.filter(body, time.monotonic() - begun)
        return answered

    async def points(body: bytes) -> Answer:
        return answers.prioritize(body)

    application.router.add_post("/scheduler/filter", _answering(settled, is_synced))
    application.router.add_post("/scheduler/prioritize", _answering(points, is_synced))
    return application


def webhook_application(answers: Answers, is_synced: Callable[[], bool]) -> web.Application:
    """What the API server asks about pods and about runs; 503 until everything is known."""
    application = web.Application(client_max_size=MAX_BODY_BYTES)

    async def mutated(body: bytes) -> Answer:
        return answers.mutate(body)

    async def mutated_of_all(body: bytes) -> Answer:
        return answers.mutate(body, all_pipelines=True)

    async def held(body: bytes) -> Answer:
        return answers.hold(body)

    application.router.add_post("/mutate", _answering(mutated, is_synced))
    application.router.add_post("/mutate-pipelines", _answering(mutated_of_all, is_synced))
    application.router.add_post("/hold", _answering(held, is_synced))
    return application


def probe_application(is_synced: Callable[[], bool], stuck: Callable[[], str]) -> web.Application:
    """The routes of kubelet and Prometheus.

    Args:
        is_synced: everything is known.
        stuck: what is broken and only a restart fixes; "" = nothing.
    """

    async def healthy(_: web.Request) -> web.Response:
        problem = stuck()
        status = HTTPStatus.INTERNAL_SERVER_ERROR if problem else HTTPStatus.OK
        return web.Response(text=problem or "ok", status=status)

    async def ready(_: web.Request) -> web.Response:
        return web.Response(text="ok") if is_synced() else _not_synced()

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    application = web.Application(client_max_size=1024)
    application.router.add_get("/healthz", healthy)
    application.router.add_get("/readyz", ready)
    application.router.add_get("/metrics", metrics)
    return application


def _answering(
    answer: Callable[[bytes], Awaitable[Answer]], is_synced: Callable[[], bool]
) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        body = await request.read()
        if not is_synced():
            return _not_synced()
        answered = await answer(body)
        return web.Response(
            body=answered.body, status=answered.status, content_type="application/json"
        )

    return handle


def _not_synced() -> web.Response:
    return web.Response(text="not synced yet", status=HTTPStatus.SERVICE_UNAVAILABLE)


@asynccontextmanager
async def listening(*listeners: Listener) -> AsyncIterator[list[int]]:
    """Serve as long as the context lasts; gives the ports, in order.

    Raises:
        SettingsError: a port cannot be opened.
    """
    runners: list[web.AppRunner] = []
    ports: list[int] = []
    try:
        for each in listeners:
            runner = web.AppRunner(each.application, access_log=None, shutdown_timeout=2.0)
            await runner.setup()
            runners.append(runner)
            site = web.TCPSite(runner, each.address, each.port, ssl_context=each.tls)
            try:
                await site.start()
            except OSError as error:
                raise SettingsError(
                    f"cannot listen on {each.address or ''}:{each.port}: {error.strerror}"
                ) from error
            ports.append(runner.addresses[0][1])
        yield ports
    finally:
        for runner in runners:
            await runner.cleanup()


class CertificateFiles:
    """The webhook's certificate and key; new files are used for the next connection."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read them.

        Raises:
            SettingsError: they cannot be used.
        """
        self._files = (certificate, key)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            self._seen = self._versions()
            self._load()
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(f"the webhook's certificate {certificate}: {error}") from error

    def check(self) -> None:
        """Read the files again if they have changed; bad ones leave the old in use."""
        try:
            versions = self._versions()
            if versions != self._seen:
                self._load()
                self._seen = versions
        except (OSError, ssl.SSLError) as error:
            _LOG.warning("the webhook's certificate %s is not renewed: %s", self._files[0], error)

    async def keep_checking(self, every_seconds: float = CERTIFICATE_CHECK_SECONDS) -> None:
        """Check repeatedly, until cancelled."""
        while True:
            await asyncio.sleep(every_seconds)
            self.check()

    def _load(self) -> None:
        # On trial first: a key that does not fit would leave the one in use without any.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*self._files)
        self.context.load_cert_chain(*self._files)

    def _versions(self) -> list[tuple[int, int]]:
        stats = [file.stat() for file in self._files]
        return [(each.st_mtime_ns, each.st_ino) for each in stats]
