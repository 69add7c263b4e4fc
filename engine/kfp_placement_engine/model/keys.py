"""Keys of runs and claims of a cluster: namespace and name.

Both compare and hash as the plain pair does.
"""

from typing import NamedTuple


class RunKey(NamedTuple):
    """A run in a cluster.

    Attributes:
        namespace: namespace of its pods.
        name: name of the object that represents the run.
    """

    namespace: str
    name: str


class ClaimKey(NamedTuple):
    """A volume claim in a cluster.

    Attributes:
        namespace: namespace of the claim.
        name: name of the claim.
    """

    namespace: str
    name: str


class QueueKey(NamedTuple):
    """A RunQueue in a cluster.

    Attributes:
        namespace: namespace of the runs that it admits.
        name: name of the object.
    """

    namespace: str
    name: str
