"""Errors of the in-cluster processes.

::

    ControllerError
    ├── SettingsError            an option or variable that cannot be used
    ├── AccessError              a kind is missing, or may not be read
    └── KubernetesError          the API server refused, or did not answer
        ├── NotFoundError        404: no such object, or no such kind
        ├── ConflictError        409: written by somebody else in between, or there already
        ├── ForbiddenError       403
        ├── ExpiredError         410: too old a version to go on from
        ├── SupersededError      a planner of a higher epoch has written
        └── UnreachableError     no answer

Every message says what was wrong, which value, and what to do.
"""


class ControllerError(Exception):
    """Base of all errors raised by the in-cluster processes."""


class SettingsError(ControllerError):
    """An option or variable that cannot be used; the message names it."""


class AccessError(ControllerError):
    """A kind that we need is missing in the cluster, or may not be read."""


class KubernetesError(ControllerError):
    """The API server refused a request.

    Attributes:
        status: of the answer, as in HTTP; 0 = there was none.
        reason: one word, such as `Invalid`; "" = none was given.
        message: in words.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{message} ({status} {reason})" if status else message)
        self.status = status
        self.reason = reason
        self.message = message


class NotFoundError(KubernetesError):
    """There is no such object, or the server serves no such kind."""


class ConflictError(KubernetesError):
    """Somebody else has written in between, or an object of that name is there already."""


class ForbiddenError(KubernetesError):
    """Our account may not do this."""


class ExpiredError(KubernetesError):
    """The server no longer keeps the version that was to be gone on from: list again."""


class SupersededError(KubernetesError):
    """A planner of a higher epoch has written: this one leads no longer."""


class UnreachableError(KubernetesError):
    """The API server did not answer."""
