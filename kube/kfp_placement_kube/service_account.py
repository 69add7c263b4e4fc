"""A pod's own account: a folder that the kubelet keeps up to date, and two variables.

https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
"""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from kfp_placement_kube.configuration import Configuration
from kfp_placement_kube.exceptions import ConfigurationError

SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Folder of a pod's account."""

_TOKEN_SECONDS = 60.0
"""Time for which a token is used until it is read again."""

_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


def is_in_pod(folder: Path = SERVICE_ACCOUNT_FOLDER) -> bool:
    """Return whether this process runs in a pod with a service account."""
    return bool(os.environ.get(_HOST)) and (folder / "namespace").is_file()


def service_account_namespace(folder: Path = SERVICE_ACCOUNT_FOLDER) -> str:
    """Return the namespace of our own pod; "" = the file is empty.

    Raises:
        ConfigurationError: we are not in a pod with a service account.
    """
    return _read(folder / "namespace")


def load_service_account(
    folder: Path = SERVICE_ACCOUNT_FOLDER,
    variables: Mapping[str, str] = os.environ,
    clock: Callable[[], float] = time.monotonic,
) -> Configuration:
    """Return the configuration of a pod's service account; its token is read again every minute.

    Args:
        folder: folder with `token` and `ca.crt`.
        variables: environment variables, two of which name the API server.
        clock: function that returns the time in seconds, which never goes back.

    Raises:
        ConfigurationError: we are not in a pod with a service account.
    """
    host, port = variables.get(_HOST), variables.get(_PORT)
    if not host or not port:
        raise ConfigurationError(f"{_HOST} and {_PORT} are not set, as they are in a pod")
    authority = folder / "ca.crt"
    if not _read(authority):
        raise ConfigurationError(f"{authority} is empty")
    # An IPv6 address in a URL.
    address = f"[{host}]" if ":" in host else host
    return Configuration(f"https://{address}:{port}", _Token(folder / "token", clock), authority)


def bearer(file: Path) -> str:
    """Return the header `Authorization` with the token in a file, as it is there now.

    Raises:
        ConfigurationError: the file cannot be read, is empty, or holds no token.
    """
    token = _read(file)
    if not token:
        raise ConfigurationError(f"{file} is empty")
    # An error about a header that cannot be sent would repeat the token.
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise ConfigurationError(f"{file} holds no token: it has spaces or unprintable characters")
    return f"Bearer {token}"


class _Token:
    """Token of an account; the kubelet replaces it when a fifth of its life is left."""

    def __init__(self, file: Path, clock: Callable[[], float]) -> None:
        self._file = file
        self._clock = clock
        self._token = _read(file)
        self._read_at = clock()
        if not self._token:
            raise ConfigurationError(f"{file} is empty")

    def __call__(self) -> str:
        monotonic_seconds = self._clock()
        if monotonic_seconds - self._read_at >= _TOKEN_SECONDS:
            self._read_at = monotonic_seconds
            # The last token may be good for some minutes; the server refuses it when it is not.
            with suppress(ConfigurationError):
                self._token = _read(self._file) or self._token
        return f"Bearer {self._token}"


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(f"{file}: {error}") from error
