"""Asking components whether they are ready."""

import http.client
import ssl
from collections.abc import Callable, Iterator

from tests.controlplane.api import Api
from tests.controlplane.exceptions import ApiError, ApiUnreachableError
from tests.controlplane.ports import LOOPBACK

Probe = Callable[[], bool]
_TIMEOUT_SECONDS = 5.0
_EVERYTHING_SERVED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_SELECTS_NOTHING = {"labelSelector": "kfp-placement.dev/nobody-has-this"}


def http_ready(port: int, path: str = "/readyz") -> Probe:
    """Return a probe of a component that serves without TLS."""
    return lambda: _answers_ok(
        http.client.HTTPConnection(LOOPBACK, port, timeout=_TIMEOUT_SECONDS), path
    )


def https_ready(port: int, path: str = "/readyz") -> Probe:
    """Return a probe of a component that signs its own certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return lambda: _answers_ok(
        http.client.HTTPSConnection(LOOPBACK, port, context=context, timeout=_TIMEOUT_SECONDS), path
    )


def api_ready(api: Api) -> Probe:
    """Return a probe of the API server, with all that it does after its start."""

    def ready() -> bool:
        try:
            return bool(api.request("GET", "/readyz") == "ok")
        except (ApiError, ApiUnreachableError):
            return False

    return ready


def lists_ready(api: Api) -> Probe:
    """Return a probe of a restarted API server: it answers lists of all kinds that it serves.

    `/readyz` is earlier. Until a kind's cache is filled the server answers 429 "storage is
    (re)initializing"; the cache of a custom resource is filled once somebody asks for it.
    """
    paths = list(_watched_lists(api))

    def ready() -> bool:
        try:
            for path in paths:
                # Lists with a selector come from the cache, and this one is empty.
                api.request("GET", path, query=_SELECTS_NOTHING)
        except (ApiError, ApiUnreachableError):
            return False
        return True

    return ready


def _watched_lists(api: Api) -> Iterator[str]:
    """Paths of the lists of all kinds that can be watched."""
    for root in ("/api", "/apis"):
        for group in api.request("GET", root, accept=_EVERYTHING_SERVED)["items"]:
            start = f"{root}/{group['metadata']['name']}" if root == "/apis" else root
            for version in group["versions"]:
                for resource in version["resources"]:
                    if "watch" in resource["verbs"]:
                        yield f"{start}/{version['version']}/{resource['resource']}"


def _answers_ok(connection: http.client.HTTPConnection, path: str) -> bool:
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
