"""Errors of live clusters; the command line shows their message and ends with their exit code.

::

    PlacementError
    └── ClusterError                 a live cluster that does not do what is asked
        ├── ClusterMissingError      no kubeconfig, no such context, kind, run or step
        ├── ClusterAmbiguousError    several runs may be meant
        ├── ClusterUnreachableError  no answer
        ├── ClusterForbiddenError    we have no right to, or the server does not know us
        ├── ClusterConflictError     somebody else has written in between
        └── ClusterExpiredError      too old to be watched from
"""

import contextlib
from collections.abc import Iterator

from kfp_placement.exceptions import PlacementError


class ClusterError(PlacementError):
    """Failure of a request to a live cluster; the message is the server's, with a remedy."""


class ClusterMissingError(ClusterError):
    """Missing kubeconfig or context, or a name that nothing in the cluster has."""


class ClusterAmbiguousError(ClusterError):
    """Ambiguous name: it may mean several runs or pipelines, which the message names."""


class ClusterUnreachableError(ClusterError):
    """Silence of the API server."""


class ClusterForbiddenError(ClusterError):
    """Refusal: we have no right to do that, or the API server does not know us."""


class ClusterConflictError(ClusterError):
    """Conflict: somebody else changed the object since it was read, or has created it."""


class ClusterExpiredError(ClusterError):
    """Expiry: the server no longer has the version to watch from, so objects are listed again."""


@contextlib.contextmanager
def allowed_by(role: str) -> Iterator[None]:
    """Add to a refusal the name of the ClusterRole that allows what is tried in the block.

    Args:
        role: name of the ClusterRole.

    Raises:
        ClusterForbiddenError: the cluster refuses what is tried.
    """
    try:
        yield
    except ClusterForbiddenError as error:
        raise ClusterForbiddenError(f"{error}; the ClusterRole {role} allows it") from error
