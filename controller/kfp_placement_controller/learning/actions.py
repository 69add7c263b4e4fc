"""Questions to Prometheus about the memory of pods, and its answers: plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kfp_placement_engine.model.keys import RunKey


@dataclass(frozen=True)
class MemoryPod:
    """A pod whose memory is asked for.

    Attributes:
        uid: identifier of the pod.
        name: name of the pod.
        since_start_seconds: time since its step began.
    """

    uid: str
    name: str
    since_start_seconds: float


@dataclass(frozen=True)
class AskMemory:
    """Ask Prometheus how much memory pods used; the answer comes later, or never.

    Attributes:
        url: address of the server.
        run: the run that has ended; its namespace is that of the pods.
        pods: pods of the run that succeeded.
    """

    url: str
    run: RunKey
    pods: tuple[MemoryPod, ...]


@dataclass(frozen=True)
class MemoryAnswer:
    """The answer to a question.

    Attributes:
        question: question that is answered.
        peaks: bytes by uid of the pod, of those that the server knows.
        failure: reason that there is no answer; empty if there is one.
    """

    question: AskMemory
    peaks: Mapping[str, float] = field(default_factory=dict)
    failure: str = ""
