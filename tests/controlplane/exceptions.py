"""Errors of a control plane.

ControlPlaneError
├── ControlPlaneUnavailableError   this machine cannot have one
├── BuildError                     Go could not build a component
├── ProcessEndedError              a component ended by itself
├── WaitError                      a condition did not become true in time
├── ApiError                       the API server refused a request
└── ApiUnreachableError            it did not answer
"""


class ControlPlaneError(Exception):
    """Base of all errors of the control plane."""


class ControlPlaneUnavailableError(ControlPlaneError):
    """Control plane is not built, and this machine cannot build it; the message says what to do."""


class BuildError(ControlPlaneError):
    """Go could not build a component; the message ends with what Go wrote."""


class ProcessEndedError(ControlPlaneError):
    """A component ended by itself; the message ends with its log."""


class WaitError(ControlPlaneError):
    """A condition did not become true in time."""


class ApiError(ControlPlaneError):
    """The API server answered with an error.

    Attributes:
        status: the HTTP status.
        reason: Kubernetes' one-word reason, such as `AlreadyExists`.
        message: explanation of the server.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


class ApiUnreachableError(ControlPlaneError):
    """The API server did not answer: it is down, starting, or being stopped."""
