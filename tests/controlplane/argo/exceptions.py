"""Errors of the execution of a Workflow.

ArgoError
├── TemplateError        the step becomes an Error with this message
│   └── UnresolvedError  an output that is not there yet: try again later
├── TransientError       the cluster refused for now: the step stays Pending with this message
└── ParallelismReached   no further step now
Refusal                  an API server's answer that is no success
"""


class ArgoError(Exception):
    """Base of all that stops the execution of a step."""


class TemplateError(ArgoError):
    """A step that cannot be executed."""


class UnresolvedError(TemplateError):
    """A reference to an output that nobody has written yet."""


class TransientError(ArgoError):
    """Temporary failure: the same request may work later, as with a full quota."""


class ParallelismReached(ArgoError):  # noqa: N818
    """Limit of parallel steps is reached."""


class Refusal(Exception):  # noqa: N818
    """An API server's refusal.

    Attributes:
        status: HTTP status.
        reason: `Forbidden`, `AlreadyExists`, `Invalid`, `NotFound` or another of Kubernetes' words.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason

    @property
    def is_transient(self) -> bool:
        """Return whether Argo tries again instead of failing the step."""
        text = str(self)
        quota = self.reason == "Forbidden" and "exceeded quota" in text
        conflict = self.reason == "Conflict" and "resourcequota" in text
        return quota or conflict or self.status in (429, 503, 504)
