"""Answers of an API server -> plain objects, within limits; nothing of the Kubernetes client."""

import json
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import urllib3

from kfp_placement.live.exceptions import ClusterUnreachableError

MAX_ANSWER_BYTES = 128 * 2**20
"""Largest answer that is read: far more than a page of pods."""

MAX_LINE_BYTES = 16 * 2**20
"""Longest line of a watch; etcd keeps no object above 1.5 MB."""


@dataclass(frozen=True)
class Answers:
    """Reads what one server answers.

    Attributes:
        server: its address.
        source: where that comes from, for messages.
    """

    server: str
    source: str

    def body(self, response: urllib3.BaseHTTPResponse) -> bytes:
        """The whole answer.

        Raises:
            ClusterUnreachableError: it broke off, or is too large.
        """
        try:
            text: bytes = response.read(MAX_ANSWER_BYTES + 1)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self.none(error) from error
        finally:
            response.release_conn()
        if len(text) > MAX_ANSWER_BYTES:
            raise self.garbled(f"more than {MAX_ANSWER_BYTES} bytes")
        return text

    def lines(self, response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
        """The lines of an answer that goes on.

        Raises:
            ClusterUnreachableError: it broke off, or a line is too long.
        """
        rest = b""
        try:
            for chunk in response.stream(None):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from filter(None, lines)
                if len(rest) > MAX_LINE_BYTES:
                    raise self.garbled(f"a line of more than {MAX_LINE_BYTES} bytes")
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self.none(error) from error

    def parsed(self, text: bytes) -> dict[str, Any]:
        """The object in it.

        Raises:
            ClusterUnreachableError: there is none.
        """
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.garbled("no JSON") from error
        if not isinstance(parsed, dict):
            raise self.garbled("no object")
        return parsed

    def garbled(self, what: str) -> ClusterUnreachableError:
        """The error for what no API server answers."""
        return ClusterUnreachableError(f"{self.server} does not answer as an API server: {what}")

    def none(self, error: Exception) -> ClusterUnreachableError:
        """The error for no answer, or none that can be trusted."""
        if _is_untrusted(error):
            return ClusterUnreachableError(
                f"{self.server} ({self.source}) answers, but its certificate cannot be verified:"
                f" {_without_address(error):.300}; does certificate-authority in the kubeconfig"
                " belong to it?"
            )
        return ClusterUnreachableError(
            f"no answer from {self.server} ({self.source}): {_without_address(error):.300}; is it"
            " up, and can it be reached from here?"
        )


def _is_untrusted(error: BaseException | None) -> bool:
    """Whether a certificate is what it fails for: urllib3 wraps the reason, once or twice."""
    while error is not None:
        wrapped = [each for each in error.args if isinstance(each, ssl.SSLCertVerificationError)]
        if wrapped or isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _without_address(error: Exception) -> str:
    """What went wrong, without the class and the address that urllib3 puts before it."""
    return re.sub(r"^HTTPS?Connection(Pool)?\([^)]*\): ", "", str(error))
