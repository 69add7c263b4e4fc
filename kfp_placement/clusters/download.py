"""Download of a Cluster file from a web server, with limits on its time and size."""

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

from kfp_placement._input_file import InputFile
from kfp_placement.clusters.web_addresses import CheckedHandler, Connections, RedirectError
from kfp_placement_engine.exceptions import EngineError, InputError, InputNotFoundError, LimitError
from kfp_placement_engine.views.formatting import shown

_CHARACTERS = 200
"""Length of text by others in a message, in characters."""

MOST_SECONDS = 10.0
"""Time limit of a download, which includes redirects and the lookup of the host."""

MOST_BYTES = 5_000_000
"""Size limit of a file."""

_CHUNK_BYTES = 65_536
_BY_HAND = "download the file and give its path"


def download(url: str) -> InputFile:
    """Fetch a file by http or https; its name is the URL without a query.

    Proxies are those of the environment, as for other programs.

    Args:
        url: URL of the file.

    Raises:
        InputNotFoundError: the server has no such file.
        LimitError: the file is larger than allowed.
        InputError: there is no answer in time, or it cannot be used.
    """
    name, host = _name_and_host(url)
    answers: queue.SimpleQueue[bytes | Exception] = queue.SimpleQueue()
    # In its own thread: the lookup of a host, and bytes that arrive one by one, have no time limit.
    connections = Connections()
    fetching = (url, connections, answers.put)
    threading.Thread(target=_fetch, args=fetching, name="download", daemon=True).start()
    try:
        answer = answers.get(timeout=MOST_SECONDS)
    except queue.Empty:
        connections.end()
        answer = TimeoutError()
    if isinstance(answer, EngineError):
        raise type(answer)(f"{name}: {answer}")
    if isinstance(answer, Exception):
        raise _explained(answer, name, host) from answer
    if answer.lstrip()[:1] == b"<":
        raise InputError(
            f"{name}: is a web page, not a Cluster file; give the address of the file itself"
            " (GitHub and GitLab have it behind 'Raw')"
        )
    return InputFile(name, answer)


def _name_and_host(url: str) -> tuple[str, str]:
    """Return the name of a URL for messages, without an account and a query, and its host.

    Raises:
        InputError: the URL is malformed, or has an account.
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


def _fetch(url: str, connections: Connections, put: Callable[[bytes | Exception], None]) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    request = urllib.request.Request(
        url, headers={"User-Agent": "kfp-placement", "Accept-Encoding": "identity"}
    )
    opener = urllib.request.build_opener(_Redirects, CheckedHandler(connections))
    try:
        with opener.open(request, timeout=MOST_SECONDS) as response:
            promised = response.length or 0
            data = bytearray()
            # Piece by piece as they arrive: `read` would wait for the whole file.
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
    finally:
        connections.end()


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Handler of redirects: follows a few to web servers, and none from https to http."""

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
        """Return the request that follows a redirect; None if it is not followed."""
        parts = urlsplit(newurl)
        if parts.scheme not in ("https", req.type) or "@" in parts.netloc:
            return None
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None:
            # What is for a proxy is for no server, which may be asked without one.
            following.remove_header("Proxy-authorization")
            # The body of a redirect has no limit, and would be read.
            fp.close()
        return following


def _explained(error: Exception, name: str, host: str) -> EngineError:
    """Return the error that explains a failed download to people."""
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
    if isinstance(cause, RedirectError):
        return InputError(
            f"{name}: {host} {cause}; that is not followed, give the address of the file itself"
        )
    why = f"does not answer as a web server: {type(cause).__name__}"
    if isinstance(cause, OSError | str):
        why = f"cannot be reached: {getattr(cause, 'strerror', None) or cause}"
    return InputError(f"{name}: {host} {shown(why, 2 * _CHARACTERS)}")
