"""Errors of live clusters; the command line shows their message and ends with their exit code.

::

    PlacementError
    └── ClusterError                 a live cluster that does not do what is asked
        ├── ClusterMissingError      no kubeconfig, no such context, kind, run or step
        ├── ClusterAmbiguousError    several runs may be meant
        ├── ClusterUnreachableError  no answer
        ├── ClusterForbiddenError    we may not, or the server does not know us
        ├── ClusterConflictError     somebody else has written in between
        └── ClusterExpiredError      too old to be watched from
"""

import contextlib
from collections.abc import Iterator

from kfp_placement.exceptions import PlacementError


class ClusterError(PlacementError):
    """A live cluster that does not do what is asked; the message is the server's, and a remedy."""


class ClusterMissingError(ClusterError):
    """No kubeconfig, no such context, or nothing of that name in the cluster."""


class ClusterAmbiguousError(ClusterError):
    """Several runs may be meant; the message names them."""


class ClusterUnreachableError(ClusterError):
    """The API server gives no answer."""


class ClusterForbiddenError(ClusterError):
    """We may not do that, or the API server does not know us."""


class ClusterConflictError(ClusterError):
    """Somebody else has written in between, or it is there already."""


class ClusterExpiredError(ClusterError):
    """The version to go on from is gone; list again."""


@contextlib.contextmanager
def allowed_by(role: str) -> Iterator[None]:
    """Name the ClusterRole that allows what is tried, if it is refused.

    Args:
        role: name of the ClusterRole.

    Raises:
        ClusterForbiddenError: it is refused.
    """
    try:
        yield
    except ClusterForbiddenError as error:
        raise ClusterForbiddenError(f"{error}; the ClusterRole {role} allows it") from error
