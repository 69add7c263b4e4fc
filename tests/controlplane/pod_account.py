"""Service account inside a pod: a folder and two variables, as the kubelet gives them."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit


@dataclass(frozen=True)
class PodAccount:
    """A service account as a pod sees it.

    Attributes:
        folder: folder of `token`, `ca.crt` and `namespace`; in a pod below `/var/run/secrets`.
        variables: environment variables, which name the API server.
    """

    folder: Path
    variables: Mapping[str, str]


def write_pod_account(
    folder: Path, server: str, authority: Path, token: str, namespace: str = "default"
) -> PodAccount:
    """Write what a pod would find.

    Args:
        folder: folder to write to; it is made.
        server: the API server's address.
        authority: certificate of the authority that the server's certificate is checked by.
        token: the account's.
        namespace: the account's.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "token").write_text(token)
    (folder / "namespace").write_text(namespace)
    shutil.copyfile(authority, folder / "ca.crt")
    address = urlsplit(server)
    variables = {
        "KUBERNETES_SERVICE_HOST": str(address.hostname),
        "KUBERNETES_SERVICE_PORT": str(address.port),
    }
    return PodAccount(folder, variables)
