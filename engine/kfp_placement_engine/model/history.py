"""Observations of ended steps and runs, from which later ones are predicted."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_engine.units.resources import Resources

MOST_PIPELINES = 200
"""Limit of the pipelines of a namespace with a past; the one that ran longest ago goes first."""

MOST_ARGUMENTS = 4
"""Numeric arguments of a step that are looked at, the first by name."""

MAX_IMAGE_CHARACTERS = 512
"""Longest reference of an image; longer ones count as unknown."""

LARGEST_ARGUMENT = 1e15
"""Largest value that is believed, in either direction."""


@dataclass(frozen=True)
class StepIdentity:
    """Identity of a step: runs with the same one share their past.

    Attributes:
        pipeline: name of the pipeline.
        step: path of the task in it, the same for all iterations of a loop.
        iteration: mark that tells iterations apart, such as a digest of their arguments; "" for a
            step outside loops, None for the step as a whole.
        component: digest of what the step runs (image, command, arguments); "" = unknown.
        image: image of its container; "" = unknown.
    """

    pipeline: str
    step: str
    iteration: str | None = ""
    component: str = ""
    image: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Pipeline and step, whatever the iteration."""
        return self.pipeline, self.step


@dataclass(frozen=True, slots=True)
class PastContainer:
    """Requests and image of a step in an ended run.

    Attributes:
        requests: amounts that it asked for, in canonical units.
        image: reference of its image; "" = unknown.
        is_complete: whether `requests` has every resource; False = only its memory is known.
    """

    requests: Resources
    image: str = ""
    is_complete: bool = True


@dataclass(frozen=True)
class PastStep:
    """Observation of one step of an ended run.

    Attributes:
        identity: identity of the step.
        seconds: run time on the reference node: that on its own node times the declared speed
            of that, without transfers that a plan adds again; None = it did not end well.
        node: name of the node on which it ran; "" = unknown.
        input_bytes: size of its inputs; None = unknown.
        arguments: values of its numeric arguments, in the order of their names.
        peak_bytes: the most memory that it used; None = unknown.
        killed_bytes: memory that it had when it was killed for using more, the largest of all
            its attempts; None = it was not killed for that.
        container: requests and image of the step; None = unknown.
    """

    identity: StepIdentity
    seconds: float | None = None
    node: str = ""
    input_bytes: float | None = None
    arguments: tuple[float, ...] = ()
    peak_bytes: float | None = None
    killed_bytes: float | None = None
    container: PastContainer | None = None

    @property
    def asked_bytes(self) -> int | None:
        """Memory that it asked for; None = nothing, or unknown."""
        return None if self.container is None else self.container.requests.get("memory")

    @property
    def tells_memory(self) -> bool:
        """True if it says how much memory the step used, or how much was too little."""
        return self.peak_bytes is not None or self.killed_bytes is not None


@dataclass(frozen=True)
class LearnedWidth:
    """Likely number of iterations of a loop.

    Attributes:
        width: the median of the last runs.
        runs: number of these runs.
    """

    width: int
    runs: int

    @property
    def planned(self) -> int:
        """Width to plan with, at least 1: a loop that may run must be planned."""
        return max(1, self.width)


@dataclass(frozen=True)
class PastRun:
    """A run that has ended, as far as later ones may learn from it.

    Attributes:
        uid: uid of the run, which no other run has.
        pipeline: name of its pipeline.
        ended_at: time of its end.
        steps: observations of its steps that ran themselves.
        seconds: time from its beginning to the end of its last step, if it ended well; None = it
            did not.
        planned_seconds: makespan of the plan with which it began; None = that plan rested on
            assumed run times, or there was none.
        loops: number of iterations of its loops, by path; of one within loops the median.
    """

    uid: str
    pipeline: str
    ended_at: datetime
    steps: tuple[PastStep, ...] = ()
    seconds: float | None = None
    planned_seconds: float | None = None
    loops: Mapping[str, int] = field(default_factory=dict)

    @property
    def order(self) -> tuple[datetime, str]:
        """Runs are learned from as they ended; those that ended together, always in one order."""
        return self.ended_at, self.uid


def text_digest(text: str) -> str:
    """Return the SHA-256 in hexadecimal: identities are made of these, not of what users wrote."""
    # Texts of others may hold half a surrogate pair, which no encoding takes as it is.
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def is_usable_argument(value: object) -> bool:
    """Return whether a value is a number that a run time may follow; a truth value is not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -LARGEST_ARGUMENT <= value <= LARGEST_ARGUMENT
