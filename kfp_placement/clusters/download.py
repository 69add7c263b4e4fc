"""A file from a web server, which may be slow, huge, or something else altogether."""

import http.client
import queue
import re
import ssl
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import IO, Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, urlsplit

from kfp_placement.report.visible import shown
from kfp_placement_engine.exceptions import InputError, InputNotFoundError, LimitError

_NAME_CHARACTERS = 200
_REASON_CHARACTERS = 200
_CHUNK_BYTES = 64 * 2**10
_MEGABYTE = 10**6


@dataclass(frozen=True)
class DownloadLimits:
    """How much of a stranger's server is put up with.

    Attributes:
        seconds: for all of it, redirects and looking up the host included.
        max_bytes: largest file.
        redirects: followed in a row.
    """

    seconds: float = 10.0
    max_bytes: int = 5 * _MEGABYTE
    redirects: int = 3


class Download(NamedTuple):
    """A file.

    Attributes:
        name: where it came from, for people: without a query, which may hold a secret; and from
            which host where it was redirected to another one.
        data: its content.
    """

    name: str
    data: bytes


def download(url: str, limits: DownloadLimits | None = None) -> Download:
    """Fetch a file by http or https.

    Proxies are those of the environment, as for other programs.

    Args:
        url: where it is.
        limits: on time and size.

    Raises:
        InputNotFoundError: the server has no such file.
        LimitError: it is larger than allowed.
        InputError: there is no answer in time, or none that can be used.
    """
    place = _Place.of(url, limits or DownloadLimits())
    answers: queue.SimpleQueue[Download | Exception] = queue.SimpleQueue()
    # In a thread of its own: looking up a host, or headers that come byte by byte, know no limit.
    threading.Thread(
        target=_answer, args=(url, place, answers.put), name="download", daemon=True
    ).start()
    try:
        answer = answers.get(timeout=place.limits.seconds)
    except queue.Empty:
        raise place.too_slow() from None
    if isinstance(answer, Exception):
        raise answer
    if answer.data.lstrip()[:1] == b"<":
        raise InputError(
            f"{answer.name}: is a web page, not a Cluster file; give the address of the file itself"
            " (GitHub and GitLab have it behind 'Raw')"
        )
    return answer


@dataclass(frozen=True)
class _Place:
    """Where a file is, in words for messages, and how much is fetched from there."""

    name: str
    host: str
    limits: DownloadLimits

    @classmethod
    def of(cls, url: str, limits: DownloadLimits) -> "_Place":
        """The place that a URL names.

        Raises:
            InputError: it is not a URL that can be asked.
        """
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError as error:
            raise InputError(f"{_without_account(url)}: is not a URL: {error}") from error
        if parts.username is not None or parts.password is not None:
            raise InputError(
                f"{_name(parts)}: holds a user name or a password, which is not supported; download"
                " the file and give its path"
            )
        if not host or not url.isascii() or not url.isprintable() or " " in url:
            raise InputError(f"{_without_account(url)}: is not a URL")
        return cls(_name(parts), shown(host, _NAME_CHARACTERS), limits)

    def name_from(self, url: str) -> str:
        """What to call what that URL gave in the end."""
        host = urlsplit(url).hostname or ""
        return self.name if host == self.host else f"{self.name} (from {shown(host, 100)})"

    def too_slow(self) -> InputError:
        return InputError(
            f"{self.name}: {self.host} has not sent it within {self.limits.seconds:g} s; download"
            " the file and give its path"
        )

    def cut_off(self, received_bytes: int, promised_bytes: int) -> InputError:
        return InputError(
            f"{self.name}: {self.host} closed the connection after {received_bytes} of"
            f" {promised_bytes} bytes; try again, or download the file and give its path"
        )

    def too_large(self) -> LimitError:
        return LimitError(
            f"{self.name}: is larger than {self.limits.max_bytes / _MEGABYTE:g} MB, the most that"
            " is fetched; download it and make a smaller file with `kfp-placement cluster`"
        )


def _without_account(url: str) -> str:
    return shown(re.sub("//[^/]*@", "//", url), _NAME_CHARACTERS)


def _name(parts: SplitResult) -> str:
    host = parts.netloc.rpartition("@")[2]
    return shown(f"{parts.scheme.lower()}://{host}{parts.path}", _NAME_CHARACTERS)


def _answer(url: str, place: _Place, put: Callable[[Download | Exception], None]) -> None:
    try:
        put(_fetched(url, place))
    except (InputError, InputNotFoundError) as error:
        put(error)
    except HTTPError as error:
        with error:
            put(_refusal(error, place))
    except (OSError, http.client.HTTPException, ValueError) as error:
        put(_no_answer(error, place))


def _fetched(url: str, place: _Place) -> Download:
    limits = place.limits
    deadline = time.monotonic() + limits.seconds
    request = urllib.request.Request(
        url, headers={"User-Agent": "kfp-placement", "Accept-Encoding": "identity"}
    )
    opener = urllib.request.build_opener(_Redirects(place))
    with opener.open(request, timeout=limits.seconds) as response:
        length = response.headers.get("Content-Length", "")
        promised = int(length[:20]) if length.isascii() and length.isdigit() else 0
        if promised > limits.max_bytes:
            raise place.too_large()
        data = bytearray()
        # One piece at a time as they arrive: `read` would wait for the whole.
        while piece := response.read1(_CHUNK_BYTES):
            data += piece
            if len(data) > limits.max_bytes:
                raise place.too_large()
            if time.monotonic() > deadline:
                raise place.too_slow()
        # `read1` takes a connection that closes early for the end.
        if len(data) < promised:
            raise place.cut_off(len(data), promised)
        return Download(place.name_from(response.url), bytes(data))


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to web servers, a few of them, and never from https to http."""

    def __init__(self, place: _Place) -> None:
        self._place = place
        self._followed = 0

    # `typing.override` is there from Python 3.12 on.
    def redirect_request(  # type: ignore[explicit-override]
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """The request that follows, if it may be sent."""
        # Nobody else closes what was redirected, if this raises.
        fp.close()
        self._followed += 1
        limits = self._place.limits
        if self._followed > limits.redirects:
            raise InputError(
                f"{self._place.name}: is redirected more than {limits.redirects} times; give"
                " the address of the file itself"
            )
        scheme = urlsplit(newurl).scheme
        if scheme not in ("http", "https") or (req.type == "https" and scheme == "http"):
            raise InputError(
                f"{self._place.name}: is redirected to {_Place.of(newurl, limits).name}, which is"
                f" not followed from {req.type}"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _refusal(error: HTTPError, place: _Place) -> InputError | InputNotFoundError:
    """What a status means to people."""
    host = shown(urlsplit(error.url or "").hostname or place.host, _NAME_CHARACTERS)
    status = f"{error.code} {shown(str(error.reason), _REASON_CHARACTERS)}".strip()
    if error.code in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
        return InputNotFoundError(f"{place.name}: {host} has no such file ({status})")
    if error.code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return InputError(
            f"{place.name}: {host} does not let everybody read it ({status}); download the file"
            " and give its path"
        )
    if HTTPStatus.MULTIPLE_CHOICES <= error.code < HTTPStatus.BAD_REQUEST:
        return InputError(f"{place.name}: {host} redirects it to what is not a web server")
    return InputError(f"{place.name}: {host} answers {status}")


def _no_answer(error: Exception, place: _Place) -> InputError:
    """What it means to people that there is no answer, or one that is not HTTP."""
    cause: Any = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, TimeoutError):
        return place.too_slow()
    if isinstance(cause, ssl.SSLCertVerificationError):
        why = f"the certificate of {place.host} cannot be verified: {cause.verify_message}"
    elif isinstance(cause, http.client.HTTPException | ValueError):
        why = f"{place.host} does not answer as a web server: {type(cause).__name__}"
    else:
        why = f"{place.host} cannot be reached: {getattr(cause, 'strerror', None) or cause}"
    return InputError(f"{place.name}: {shown(why, 2 * _REASON_CHARACTERS)}")
