"""Errors of live clusters; the command line shows their message and ends with their exit code.

::

    PlacementError
    └── ClusterError                 a request to a live cluster has failed
        ├── ClusterMissingError      no kubeconfig, no such context, kind, run or step
        ├── ClusterAmbiguousError    the name may mean several runs or pipelines
        ├── ClusterUnreachableError  no answer
        ├── ClusterForbiddenError    we have no right to do this, or the server does not know us
        ├── ClusterConflictError     somebody else has written the object
        └── ClusterExpiredError      the version to watch from is too old
"""

import contextlib
from collections.abc import Iterator

from kfp_placement.exceptions import PlacementError


class ClusterError(PlacementError):
    """Failure of a request to a live cluster; the message is the server's, with a remedy."""


class ClusterMissingError(ClusterError):
    """Missing kubeconfig or context, or a name that nothing in the cluster has."""


class ClusterAmbiguousError(ClusterError):
    """Ambiguous name: it may mean several runs or pipelines; the message lists them."""


class ClusterUnreachableError(ClusterError):
    """Missing answer of the API server."""


class ClusterForbiddenError(ClusterError):
    """Refusal: we have no right to do that, or the API server does not know us."""


class ClusterConflictError(ClusterError):
    """Conflict: somebody else changed the object since it was read, or has created it."""


class ClusterExpiredError(ClusterError):
    """Expiry: the server no longer has the version to watch from, so objects are listed again."""


@contextlib.contextmanager
def allowed_by(role: str) -> Iterator[None]:
    """Name a ClusterRole in the error if the cluster refuses a request of the `with` block.

    Args:
        role: name of the ClusterRole that allows these requests.

    Raises:
        ClusterForbiddenError: the cluster refuses a request.
    """
    try:
        yield
    except ClusterForbiddenError as error:
        raise ClusterForbiddenError(f"{error}; the ClusterRole {role} allows it") from error
