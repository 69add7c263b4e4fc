"""Asking components whether they are ready."""

import http.client
import ssl
from collections.abc import Callable

from tests.controlplane.api import Api
from tests.controlplane.exceptions import ApiError, ApiUnreachableError
from tests.controlplane.ports import LOOPBACK

Probe = Callable[[], bool]
_TIMEOUT_SECONDS = 5.0


def http_ready(port: int, path: str = "/readyz") -> Probe:
    """Of a component that serves in the clear."""
    return lambda: _answers_ok(
        http.client.HTTPConnection(LOOPBACK, port, timeout=_TIMEOUT_SECONDS), path
    )


def https_ready(port: int, path: str = "/readyz") -> Probe:
    """Of a component that makes its own certificate, which nothing vouches for."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return lambda: _answers_ok(
        http.client.HTTPSConnection(LOOPBACK, port, context=context, timeout=_TIMEOUT_SECONDS), path
    )


def api_ready(api: Api) -> Probe:
    """Of the API server, with all that it does after its start."""

    def ready() -> bool:
        try:
            return bool(api.request("GET", "/readyz") == "ok")
        except (ApiError, ApiUnreachableError):
            return False

    return ready


def _answers_ok(connection: http.client.HTTPConnection, path: str) -> bool:
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
