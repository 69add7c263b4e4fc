"""The address of an API server and the account of its client, from whatever source."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Configuration:
    """Address of an API server, and account of its client.

    Attributes:
        server: address of the server, such as `https://10.96.0.1:443`.
        authorization: function that returns the header of that name, such as `Bearer eyJ`, or None
            for no header; called for every request, since tokens are renewed.
        authority_file: certificates that the server's certificate is checked by, PEM; None = the
            system's.
        verifies_server: whether the server's certificate is checked.
        certificate_file: certificate of the client, PEM; None = it has no certificate.
        key_file: key of the client's certificate, PEM.
        server_name: name in the server's certificate; None = the one in its address.
    """

    server: str
    authorization: Callable[[], str | None]
    authority_file: Path | None = None
    verifies_server: bool = True
    certificate_file: Path | None = None
    key_file: Path | None = None
    server_name: str | None = None
