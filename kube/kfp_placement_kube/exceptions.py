"""Errors of the way to an API server.

::

    KubeError
    ├── ConfigurationError           nothing usable says where the API server is
    ├── AccessError                  a kind is missing, or may not be used
    └── KubernetesError              the API server refused, or did not answer
        ├── NotFoundError            404: no such object, or no such kind
        ├── ConflictError            409: written by somebody else in between, or there already
        ├── ForbiddenError           403
        ├── ExpiredError             410: too old a version to go on from
        └── UnreachableError         no answer
            ├── UntrustedError       an answer of somebody whose certificate cannot be verified
            └── GarbledError         an answer that no API server gives

Every message says what was wrong, which value, and what to do.
"""


class KubeError(Exception):
    """Base of all errors on the way to an API server."""


class ConfigurationError(KubeError):
    """Nothing usable says where the API server is."""


class AccessError(KubeError):
    """A kind that is needed is missing in the cluster, or may not be used."""


class KubernetesError(KubeError):
    """The API server refused a request.

    Attributes:
        status: of the answer, as in HTTP; 0 = there was none.
        reason: one word, such as `Invalid`; "" = none was given.
        message: in words, with what was asked for.
        why: in the server's words alone, or what has failed without the address.
    """

    def __init__(self, status: int, reason: str, message: str, *, why: str | None = None) -> None:
        super().__init__(f"{message} ({status} {reason})" if status else message)
        self.status = status
        self.reason = reason
        self.message = message
        self.why = message if why is None else why


class NotFoundError(KubernetesError):
    """There is no such object, or the server serves no such kind."""


class ConflictError(KubernetesError):
    """Somebody else has written in between, or an object of that name is there already."""


class ForbiddenError(KubernetesError):
    """The account may not do this."""


class ExpiredError(KubernetesError):
    """The server no longer keeps the version to continue from: list again."""


class UnreachableError(KubernetesError):
    """The API server did not answer."""

    def __init__(self, message: str, *, why: str | None = None) -> None:
        super().__init__(0, "Unreachable", message, why=why)


class UntrustedError(UnreachableError):
    """There is an answer, but the certificate of whoever gave it cannot be verified."""


class GarbledError(UnreachableError):
    """There is an answer, but not one that an API server gives."""
