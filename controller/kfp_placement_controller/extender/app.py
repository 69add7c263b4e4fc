"""The HTTP side of the extender: routes, limits, readiness and ports.

Three listeners: the scheduler's questions (loopback), probes and metrics, and the webhook (TLS).
"""

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from kfp_placement_controller.exceptions import SettingsError
from kfp_placement_controller.extender.answers import Answer, Answers, Verb, defect_answer
from kfp_placement_controller.settings import ExtendSettings
from kfp_placement_controller.warning_log import WarningLog

_LOG = logging.getLogger(__name__)

MAX_BODY_BYTES = 4 * 2**20
"""Largest question: a pod is at most 1.5 MB, the names of 5,000 nodes are at most 1.3 MB, and a
Workflow that is tried again comes twice, with at most 1.5 MB each."""

LOOPBACK = "127.0.0.1"
"""Address for the scheduler, which runs in the same pod: nobody else is let in."""

CERTIFICATE_CHECK_SECONDS = 10.0
"""Pause between two looks at the webhook's certificate files; kubelets replace them in place."""

Answering = Callable[..., Answer]
"""Function that answers, or asks for a pause and is called again with the seconds of pauses."""

Routes = Mapping[str, tuple[Verb, Answering]]
"""Kind of question, and the function that answers it, by path."""


@dataclass(frozen=True)
class Listener:
    """An application with the address and port at which it listens.

    Attributes:
        application: application that answers.
        address: address of this machine; None = all of them.
        port: port; 0 = any that is free.
        tls: certificate for HTTPS; None = plain HTTP.
    """

    application: web.Application
    address: str | None
    port: int
    tls: ssl.SSLContext | None = None


def scheduler_application(answers: Answers, is_synced: Callable[[], bool]) -> web.Application:
    """Return the routes that kube-scheduler calls; they answer 503 until everything is known."""
    routes: Routes = {
        "/scheduler/filter": ("filter", answers.filter),
        "/scheduler/prioritize": ("prioritize", answers.prioritize),
    }
    return _application(routes, is_synced)


def webhook_application(answers: Answers, is_synced: Callable[[], bool]) -> web.Application:
    """Return the routes that the API server calls; they answer 503 until everything is known."""
    routes: Routes = {
        "/mutate": ("mutate", answers.mutate),
        "/mutate-pipelines": ("mutate", partial(answers.mutate, all_pipelines=True)),
        "/hold": ("hold", answers.hold),
    }
    return _application(routes, is_synced)


def probe_application(is_synced: Callable[[], bool], stuck: Callable[[], str]) -> web.Application:
    """Return the routes of kubelet and Prometheus.

    Args:
        is_synced: function that returns whether every watch has listed its objects.
        stuck: function that returns the problem that only a restart repairs; "" = none.
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


def _application(routes: Routes, is_synced: Callable[[], bool]) -> web.Application:
    """Return an application that answers questions, but none before everything is known."""
    application = web.Application(client_max_size=MAX_BODY_BYTES)

    async def handle(verb: Verb, answer: Answering, request: web.Request) -> web.Response:
        body = await request.read()
        if not is_synced():
            return _not_synced()
        begun = time.monotonic()
        try:
            answered = answer(body)
            while answered.pause_seconds:
                await asyncio.sleep(answered.pause_seconds)
                answered = answer(body, time.monotonic() - begun)
        except Exception:
            # Anybody may have written the pod: a defect in our code must not keep pods from nodes.
            _LOG.exception("%s: defect", verb)
            answered = defect_answer(verb, body)
        return web.Response(
            body=answered.body, status=answered.status, content_type="application/json"
        )

    for path, (verb, answer) in routes.items():
        application.router.add_post(path, partial(handle, verb, answer))
    return application


def _not_synced() -> web.Response:
    return web.Response(text="not synced yet", status=HTTPStatus.SERVICE_UNAVAILABLE)


@asynccontextmanager
async def listening(*listeners: Listener) -> AsyncIterator[list[int]]:
    """Serve as long as the context lasts, and yield the ports in order.

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
        """Read both files.

        Raises:
            SettingsError: the certificate cannot be used.
        """
        self._files = (certificate, key)
        self._warnings = WarningLog(__name__)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            self._load()
        except OSError as error:
            raise SettingsError(f"the webhook's certificate {certificate}: {error}") from error

    def check(self) -> None:
        """Read the files again; bad ones leave the old in use."""
        try:
            self._load()
        except OSError as error:
            self._warnings.warn(
                f"the webhook's certificate {self._files[0]} is not renewed: {error}"
            )

    async def keep_checking(self, every_seconds: float = CERTIFICATE_CHECK_SECONDS) -> None:
        """Check repeatedly, until cancelled."""
        while True:
            await asyncio.sleep(every_seconds)
            self.check()

    def _load(self) -> None:
        # On trial first: a key that does not fit would leave the one in use without any.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*self._files)
        self.context.load_cert_chain(*self._files)


@asynccontextmanager
async def serving(
    settings: ExtendSettings,
    certificates: CertificateFiles | None,
    answers: Answers,
    is_synced: Callable[[], bool],
    stuck: Callable[[], str],
) -> AsyncIterator[list[int]]:
    """Serve the scheduler and probes, and admission if there is a certificate; yield the ports.

    Args:
        settings: settings of the process.
        certificates: certificate of the webhook; None = admission is not served.
        answers: answers to the scheduler and to admission.
        is_synced: function that returns whether every watch has listed its objects.
        stuck: function that returns the problem that only a restart repairs; "" = none.

    Raises:
        SettingsError: a port cannot be opened.
    """
    listeners = [
        Listener(scheduler_application(answers, is_synced), LOOPBACK, settings.extender_port),
        Listener(probe_application(is_synced, stuck), None, settings.probe_port),
    ]
    if certificates is not None:
        hook = webhook_application(answers, is_synced)
        listeners.append(Listener(hook, None, settings.webhook_port, certificates.context))
    async with listening(*listeners) as ports:
        if certificates is None:
            yield ports
            return
        checking = asyncio.create_task(certificates.keep_checking())
        try:
            yield ports
        finally:
            checking.cancel()


def certificates_of(settings: ExtendSettings) -> CertificateFiles | None:
    """Return the webhook's certificate, or None where the settings name none and need none.

    Raises:
        SettingsError: the certificate cannot be used, or is missing.
    """
    certificate, key = settings.webhook_certificate, settings.webhook_key
    if certificate is None and key is None:
        if settings.queues:
            raise SettingsError(
                "--queues holds runs by the webhook, which needs --webhook-certificate and"
                " --webhook-key"
            )
        return None
    if certificate is None or key is None:
        raise SettingsError(
            "the webhook needs both --webhook-certificate and --webhook-key, or neither"
        )
    return CertificateFiles(certificate, key)
