"""Errors of the way to an API server.

::

    KubeError
    ├── ConfigurationError           address or account is missing, or cannot be used
    ├── AccessError                  a kind is missing, or may not be used
    └── KubernetesError              the API server refused, or did not answer
        ├── NotFoundError            404: no such object, or no such kind
        ├── WriteConflictError       409: written by somebody else in between, or there already
        ├── ForbiddenError           403
        ├── ExpiredError             410: too old a version to go on from
        └── UnreachableError         no answer
            ├── UntrustedError       an answer of somebody whose certificate cannot be verified
            └── GarbledError         an answer that no API server gives

Every message says what was wrong, and with which value.
"""


class KubeError(Exception):
    """Base of all errors on the way to an API server."""


class ConfigurationError(KubeError):
    """The address of the API server or the account is missing or cannot be used."""


class AccessError(KubeError):
    """A kind that is needed is missing in the cluster, or may not be used."""


class KubernetesError(KubeError):
    """The API server refused a request, or did not answer.

    Attributes:
        status: HTTP status of the answer; 0 = there was no answer that counts.
        reason: one word, such as `Invalid`; "" = the server gave none.
        message: text for people, with the address of the request.
        why: message without the address: the server's own words, or the cause of a failure.
    """

    def __init__(self, status: int, reason: str, message: str, *, why: str | None = None) -> None:
        super().__init__(f"{message} ({status} {reason})" if status else message)
        self.status = status
        self.reason = reason
        self.message = message
        self.why = message if why is None else why


class NotFoundError(KubernetesError):
    """The object does not exist, or the server does not serve the kind."""


class WriteConflictError(KubernetesError):
    """The object was written by somebody else in between, or exists already."""


class ForbiddenError(KubernetesError):
    """The account may not do this."""


class ExpiredError(KubernetesError):
    """The server no longer keeps the version to continue from: list again."""


class UnreachableError(KubernetesError):
    """The API server did not answer."""

    def __init__(self, message: str, *, why: str | None = None) -> None:
        super().__init__(0, "Unreachable", message, why=why)


class UntrustedError(UnreachableError):
    """The certificate of whoever answered cannot be verified."""


class GarbledError(UnreachableError):
    """The answer is not one that an API server gives."""
