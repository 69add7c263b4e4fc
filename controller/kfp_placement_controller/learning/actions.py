"""Questions to Prometheus about the memory of pods, and its answers: plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kfp_placement_engine.model.keys import RunKey


@dataclass(frozen=True)
class MemoryPod:
    """A pod whose memory peak is requested.

    Attributes:
        uid: identifier of the pod.
        name: name of the pod.
        since_start_seconds: time since the step began.
    """

    uid: str
    name: str
    since_start_seconds: float


@dataclass(frozen=True)
class AskMemory:
    """Action that asks Prometheus how much memory pods used; the answer may never come.

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
    """Answer of Prometheus to one question.

    Attributes:
        question: question that is answered.
        peaks: memory peaks in bytes by uid, of the pods that the server knows.
        failure: reason why there is no answer; empty if there is one.
    """

    question: AskMemory
    peaks: Mapping[str, float] = field(default_factory=dict)
    failure: str = ""
