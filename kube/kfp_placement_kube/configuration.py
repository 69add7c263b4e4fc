"""Where the API server is and who asks, whatever has said so."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Configuration:
    """An API server and an account.

    Attributes:
        server: the server's address, such as `https://10.96.0.1:443`.
        authorization: what a request's header of that name says, such as `Bearer eyJ`; asked for
            every request, since tokens are renewed; None = no such header.
        authority_file: certificates that the server's is checked by, PEM; None = the system's.
        verifies_server: whether the server's certificate is checked.
        certificate_file: the client's own certificate, PEM; None = it has none.
        key_file: the key of that certificate, PEM.
        server_name: the name in the server's certificate; None = as in its address.
    """

    server: str
    authorization: Callable[[], str | None]
    authority_file: Path | None = None
    verifies_server: bool = True
    certificate_file: Path | None = None
    key_file: Path | None = None
    server_name: str | None = None
