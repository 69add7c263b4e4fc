"""A file from a web server, which may be slow, huge, or something else altogether."""

import http.client
import queue
import re
import threading
import time
import urllib.request
from collections.abc import Callable
from http import HTTPStatus
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from typing_extensions import override

from kfp_placement._package import Package
from kfp_placement_engine.exceptions import (
    EngineError,
    InputError,
    InputNotFoundError,
    LimitError,
)
from kfp_placement_engine.views.formatting import shown

_CHARACTERS = 200
"""Longest part of a message that others have written."""

MOST_SECONDS = 10.0
"""How long a stranger's server may take, redirects and looking up the host included."""

MOST_BYTES = 5_000_000
"""Largest file that is fetched."""

_CHUNK_BYTES = 65_536
_BY_HAND = "download the file and give its path"


def download(url: str) -> Package:
    """Fetch a file by http or https; its name is where it came from, without a query.

    Proxies are those of the environment, as for other programs.

    Args:
        url: where it is.

    Raises:
        InputNotFoundError: the server has no such file.
        LimitError: it is larger than allowed.
        InputError: there is no answer in time, or none that can be used.
    """
    name, host = _name_and_host(url)
    answers: queue.SimpleQueue[bytes | Exception] = queue.SimpleQueue()
    # In a thread of its own: looking up a host, or bytes that come one by one, know no limit.
    threading.Thread(target=_fetch, args=(url, answers.put), name="download", daemon=True).start()
    try:
        answer = answers.get(timeout=MOST_SECONDS)
    except queue.Empty:
        answer = TimeoutError()
    if isinstance(answer, EngineError):
        raise type(answer)(f"{name}: {answer}")
    if isinstance(answer, Exception):
        raise _told(answer, name, host) from answer
    if answer.lstrip()[:1] == b"<":
        raise InputError(
            f"{name}: is a web page, not a Cluster file; give the address of the file itself"
            " (GitHub and GitLab have it behind 'Raw')"
        )
    return Package(name, answer)


def _name_and_host(url: str) -> tuple[str, str]:
    """What messages call a URL, without an account and a query; and its host.

    Raises:
        InputError: it is not a URL that can be asked.
    """
    name = shown(re.sub("//[^/]*@", "//", re.split("[?#]", url)[0]), _CHARACTERS)
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise InputError(f"{name}: is not a URL: {error}") from error
    if "@" in parts.netloc:
        raise InputError(
            f"{name}: holds a user name or a password, which is not supported; {_BY_HAND}"
        )
    if not host or not url.isascii() or not url.isprintable() or " " in url:
        raise InputError(f"{name}: is not a URL")
    return name, shown(host, _CHARACTERS)


def _fetch(url: str, put: Callable[[bytes | Exception], None]) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    request = urllib.request.Request(
        url, headers={"User-Agent": "kfp-placement", "Accept-Encoding": "identity"}
    )
    opener = urllib.request.build_opener(_Redirects)
    try:
        with opener.open(request, timeout=MOST_SECONDS) as response:
            promised = response.length or 0
            data = bytearray()
            # One piece at a time as they arrive: `read` would wait for the whole.
            while max(promised, len(data)) <= MOST_BYTES:
                piece = response.read1(_CHUNK_BYTES)
                if not piece:
                    break
                data += piece
                if time.monotonic() > deadline:
                    raise TimeoutError
        if max(promised, len(data)) > MOST_BYTES:
            raise LimitError(
                f"is larger than {MOST_BYTES / 1e6:g} MB, the most that is fetched;"
                " download it and make a smaller file with `kfp-placement cluster`"
            )
        if len(data) < promised:
            raise InputError(
                f"the connection was closed after {len(data)} of {promised} bytes; try again, or"
                f" {_BY_HAND}"
            )
        put(bytes(data))
    except (EngineError, OSError, http.client.HTTPException, ValueError) as error:
        put(error)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to web servers, a few of them, and never from https to http."""

    max_repeats = max_redirections = 3

    @override
    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """The request that follows; None = it may not be sent."""
        if urlsplit(newurl).scheme not in ("https", req.type):
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _told(error: Exception, name: str, host: str) -> EngineError:
    """What a refusal, silence, or an answer that is not HTTP means to people."""
    cause: Any = error.reason if type(error) is URLError else error
    if isinstance(cause, TimeoutError):
        return InputError(f"{name}: {host} has not sent it within {MOST_SECONDS:g} s; {_BY_HAND}")
    if isinstance(cause, HTTPError):
        cause.close()
        status = f"{cause.code} {shown(str(cause.reason), _CHARACTERS)}".strip()
        if cause.code in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            return InputNotFoundError(f"{name}: {host} has no such file ({status})")
        if cause.code < HTTPStatus.BAD_REQUEST:
            return InputError(
                f"{name}: {host} redirects it more than {_Redirects.max_redirections} times, or to"
                " what is not followed; give the address of the file itself"
            )
        return InputError(f"{name}: {host} answers {status}; {_BY_HAND}")
    why = f"does not answer as a web server: {type(cause).__name__}"
    if isinstance(cause, OSError | str):
        why = f"cannot be reached: {getattr(cause, 'strerror', None) or cause}"
    return InputError(f"{name}: {host} {shown(why, 2 * _CHARACTERS)}")
