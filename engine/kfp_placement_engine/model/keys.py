"""What tells runs and claims of a cluster apart: namespace and name.

Both compare and hash as the plain pair does.
"""

from typing import NamedTuple


class RunKey(NamedTuple):
    """A run in a cluster.

    Attributes:
        namespace: where its pods are.
        name: of the object that it is there.
    """

    namespace: str
    name: str


class ClaimKey(NamedTuple):
    """A volume claim in a cluster.

    Attributes:
        namespace: where it is.
        name: of the claim.
    """

    namespace: str
    name: str


class QueueKey(NamedTuple):
    """A RunQueue in a cluster.

    Attributes:
        namespace: of the runs that it admits.
        name: of the object.
    """

    namespace: str
    name: str
