"""Keys of runs, volume claims and queues of a cluster: namespace and name.

A key compares and hashes as the plain pair does.
"""

from typing import NamedTuple


class RunKey(NamedTuple):
    """Key of a run in a cluster.

    Attributes:
        namespace: namespace of the run's pods.
        name: name of the object that represents the run.
    """

    namespace: str
    name: str


class ClaimKey(NamedTuple):
    """Key of a volume claim in a cluster.

    Attributes:
        namespace: namespace of the claim.
        name: name of the claim.
    """

    namespace: str
    name: str


class QueueKey(NamedTuple):
    """Key of a RunQueue in a cluster.

    Attributes:
        namespace: namespace of the runs that it admits.
        name: name of the RunQueue.
    """

    namespace: str
    name: str
