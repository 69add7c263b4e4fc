"""Limits on the bodies of requests to one port: size, time, and what is held at a time."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from aiohttp import web

from kfp_placement_controller.metrics import HTTP_REFUSED

MAX_BODY_BYTES = 13 * 2**18
"""Largest question, 3.25 MiB: a pod is at most 1.5 MiB, the names of 5,000 nodes are at most
1.3 MB, and a Workflow that is tried again comes twice, with at most 1.5 MiB each. What is read of
it takes up to 45 times as much."""

MAX_HELD_BYTES = 8 * MAX_BODY_BYTES
"""Largest sum of the bodies that are received or answered at a time."""

MAX_HELD_BYTES_PER_ADDRESS = 2 * MAX_BODY_BYTES
"""Largest sum of the bodies of one address at a time: hundreds of usual pods."""

MAX_BODY_SECONDS = 2.0
"""Time for a body to come in: the API server does not wait longer for the whole answer."""

ResultT = TypeVar("ResultT")


@dataclass
class Bodies:
    """The bodies that are held at one port.

    Attributes:
        port_name: name of the port in the metric of refusals.
        per_address: limit of the bytes of one address.
    """

    port_name: str
    per_address: int = MAX_HELD_BYTES_PER_ADDRESS
    _held: Counter[str] = field(default_factory=Counter)
    _held_together: int = 0

    async def received(
        self, request: web.Request, use: Callable[[bytes], Awaitable[ResultT]]
    ) -> ResultT:
        """Receive the body of a request, hold it while it is used, and return the result.

        What is over a limit is refused by the size that its head states, before it is received.

        Raises:
            HTTPException: the body is over a limit.
        """
        size, address = request.content_length, request.remote or ""
        if size is None or "Transfer-Encoding" in request.headers:
            raise self._refused("no-length", web.HTTPLengthRequired())
        if size > MAX_BODY_BYTES:
            too_large = web.HTTPRequestEntityTooLarge(MAX_BODY_BYTES, size)
            raise self._refused("body-size", too_large)
        if self._held[address] + size > self.per_address:
            raise self._refused("held-bytes-of-address", web.HTTPTooManyRequests())
        if self._held_together + size > MAX_HELD_BYTES:
            raise self._refused("held-bytes", web.HTTPTooManyRequests())
        self._held[address] += size
        self._held_together += size
        try:
            return await use(await self._in_time(request))
        finally:
            self._held_together -= size
            self._held[address] -= size
            if not self._held[address]:
                del self._held[address]

    async def _in_time(self, request: web.Request) -> bytes:
        if request.content.is_eof():
            return request.content.read_nowait()
        # An exception keeps its frames until the garbage is collected: with `request.read` they
        # would keep what has come in, and the bodies of a minute would be held at a time.
        pieces: list[bytes] = []
        try:
            async with asyncio.timeout(MAX_BODY_SECONDS):
                async for piece in request.content.iter_any():
                    pieces.append(piece)
            return b"".join(pieces)
        except TimeoutError:
            raise self._refused("body-time", web.HTTPRequestTimeout()) from None
        except ConnectionError:
            # Nobody is there any more; without this, aiohttp logs a traceback.
            raise self._refused("cut-off", web.HTTPBadRequest()) from None
        finally:
            pieces.clear()

    def _refused(self, limit: str, error: web.HTTPException) -> web.HTTPException:
        HTTP_REFUSED.labels(self.port_name, limit).inc()
        return error
