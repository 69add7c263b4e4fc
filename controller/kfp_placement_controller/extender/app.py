"""The HTTP side of `extend` and `admit`: routes, limits, readiness and ports.

`extend` answers the scheduler on the loopback address, `admit` the API server by HTTPS. They are
processes of their own: everybody can reach the webhook, and what is done to it must not hold up the
scheduler.
"""

import asyncio
import logging
import signal
import ssl
import time
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from typing_extensions import override

from kfp_placement_controller.extender.answers import Answer, Answers, Verb, defect_answer
from kfp_placement_controller.extender.bodies import MAX_HELD_BYTES, Bodies
from kfp_placement_controller.listening import (
    LOOPBACK,
    ConnectionLimits,
    LimitedSocket,
    open_port,
)
from kfp_placement_controller.metrics import HTTP_REFUSED

_LOG = logging.getLogger(__name__)

SCHEDULER_LIMITS = ConnectionLimits("scheduler", most=64, most_per_address=64, new_per_second=1000)
"""Limits at the scheduler's port, where all have one address."""

WEBHOOK_LIMITS = ConnectionLimits(
    "webhook", most=192, most_per_address=48, new_per_second=200, collected_after=64
)
"""Limits at the webhook's port. An API server keeps up to 25 connections open for the next pods.

What is left of a connection with TLS takes up to 0.6 MB, and much of it only the garbage collector
frees.
"""

HTTP_SETTINGS: Mapping[str, Any] = {
    # Time in which the rest of a refused body is read, so that its sender sees the answer.
    "lingering_time": 0.5,
    # Fields of a head: an API server sends ten, and tokens have up to 4 kB.
    "max_headers": 32,
    "max_field_size": 2**12,
    # Bytes of a body that are taken before it is known whether it is refused.
    "read_bufsize": 2**16,
    # A body of a few bytes could become one of gigabytes.
    "auto_decompress": False,
}
"""Settings of aiohttp's server."""

TLS_SETTINGS: Mapping[str, Any] = {"ssl_handshake_timeout": 5.0, "ssl_shutdown_timeout": 1.0}
"""Settings of asyncio's server for HTTPS."""

_ACCEPTED_AT_ONCE = 16
"""Number of connections that are accepted before open ones come next."""

# A connection has three buffers of this size; with asyncio's own, all of them took 150 MB.
SSLProtocol.max_size = 2**16

Answering = Callable[..., Answer]
"""Function that answers, or asks for a pause and is called again with the seconds of pauses."""

Routes = Mapping[str, tuple[Verb, Answering]]
"""Kind of question, and the function that answers it, by path."""


@dataclass(frozen=True)
class Listener:
    """An application with the port at which it listens.

    Attributes:
        application: application that answers.
        socket: socket that listens.
        idle_seconds: time until a connection is closed that brings no head of a request.
        tls: certificate for HTTPS; None = plain HTTP.
    """

    application: web.Application
    socket: LimitedSocket
    idle_seconds: float
    tls: ssl.SSLContext | None = None


def scheduler_listener(answers: Answers, is_synced: Callable[[], bool], port: int) -> Listener:
    """Return what kube-scheduler asks, which is in the same pod: nobody else is let in.

    Until everything is known, the answer is 503.

    Raises:
        SettingsError: the port cannot be opened.
    """
    routes: Routes = {
        "/scheduler/filter": ("filter", answers.filter),
        "/scheduler/prioritize": ("prioritize", answers.prioritize),
    }
    bodies = Bodies("scheduler", per_address=MAX_HELD_BYTES)
    application = _application(routes, is_synced, bodies)
    # kube-scheduler closes connections that it does not use after 90 s, and should be the first.
    return Listener(application, open_port(LOOPBACK, port, SCHEDULER_LIMITS), idle_seconds=120.0)


def webhook_listener(
    answers: Answers, is_synced: Callable[[], bool], port: int, tls: ssl.SSLContext | None
) -> Listener:
    """Return what the API server asks; until everything is known, the answer is 503.

    Raises:
        SettingsError: the port cannot be opened.
    """
    routes: Routes = {
        "/mutate": ("mutate", answers.mutate),
        "/mutate-pipelines": ("mutate", partial(answers.mutate, all_pipelines=True)),
        "/hold": ("hold", answers.hold),
    }
    application = _application(routes, is_synced, Bodies("webhook"))
    return Listener(application, open_port(None, port, WEBHOOK_LIMITS), idle_seconds=10.0, tls=tls)


def _application(routes: Routes, is_synced: Callable[[], bool], bodies: Bodies) -> web.Application:
    """Return an application that answers questions, but none before everything is known."""
    application = web.Application()

    async def handle(verb: Verb, answer: Answering, request: web.Request) -> web.Response:
        if not is_synced():
            return web.Response(text="not synced yet", status=HTTPStatus.SERVICE_UNAVAILABLE)
        answered = await bodies.received(request, partial(_answered, verb, answer))
        return web.Response(
            body=answered.body, status=answered.status, content_type="application/json"
        )

    for path, (verb, answer) in routes.items():
        application.router.add_post(path, partial(handle, verb, answer))
    return application


async def _answered(verb: Verb, answer: Answering, body: bytes) -> Answer:
    """Return the answer to a question, after the pauses that it asks for."""
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
    return answered


class _RequestLog(logging.LoggerAdapter[logging.Logger]):
    """A log that counts heads which are not HTTP, since anybody may send as many as they want.

    Their tracebacks would also keep what they have sent until the garbage is collected.
    """

    def __init__(self, port_name: str) -> None:
        super().__init__(_LOG)
        self._port_name = port_name

    @override
    def log(self, level: int, msg: object, *args: object, **more: Any) -> None:
        error = more.get("exc_info")
        if isinstance(error, HttpProcessingError):
            error.__traceback__ = None
            HTTP_REFUSED.labels(self._port_name, "head").inc()
        else:
            super().log(level, msg, *args, **more)


@asynccontextmanager
async def listening(listener: Listener) -> AsyncIterator[int]:
    """Serve as long as the context lasts, and yield the port."""
    runner = web.AppRunner(
        listener.application,
        access_log=None,
        logger=_RequestLog(listener.socket.limits.port_name),
        shutdown_timeout=2.0,
        keepalive_timeout=listener.idle_seconds,
        **HTTP_SETTINGS,
    )
    async with AsyncExitStack() as ending:
        ending.push_async_callback(runner.cleanup)
        await runner.setup()
        server = await asyncio.get_running_loop().create_server(
            cast("Any", runner.server),
            sock=listener.socket,
            backlog=_ACCEPTED_AT_ONCE,
            ssl=listener.tls,
            **(TLS_SETTINGS if listener.tls else {}),
        )
        ending.callback(server.close)
        yield listener.socket.port


async def serve_until_signal(listener: Listener) -> None:
    """Serve until SIGTERM or SIGINT."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    async with listening(listener) as port:
        _LOG.info("listening on port %d", port)
        await stopping.wait()
