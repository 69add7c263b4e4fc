"""Turns: the planner's time is shared between namespaces, and the smallest one goes first.

Work is counted in steps of runs. A tick does a slice of it, so that whoever comes next is not kept
waiting by the runs of others. A namespace counts as small if little was done for it lately and
little is asked for; so a team with one run is served at once beside one with thousands of steps,
and the latter is served as soon as the others have had as much.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from kfp_placement_controller.sources.source import ObservedRun
from kfp_placement_engine.model.keys import RunKey

T = TypeVar("T")

SLICE_STEPS = 1_000
"""Steps of the work of one kind in a tick, some 0.1 s; one larger run takes a tick of its own."""

RUN_STEPS = 20
"""Work that any run makes, however small it is, in steps."""

_HALF_LIFE_SECONDS = 60.0
"""Time in which half of what was done for a namespace is forgotten."""


class Work(NamedTuple, Generic[T]):
    """Work that is asked for.

    Attributes:
        namespace: namespace that asks.
        steps: amount of the work, in steps.
        on: object of the work.
    """

    namespace: str
    steps: float
    on: T


class Run(Protocol):
    """A run, as far as turns depend on it."""

    @property
    def key(self) -> RunKey:
        """Namespace and name."""
        ...

    @property
    def steps(self) -> int:
        """Number of its steps, as far as it is known."""
        ...


RunT = TypeVar("RunT", bound=Run)

_BYTES_PER_STEP = 200
"""Size of a step in a run's object, to estimate what reading takes before it is known."""


def work_of(run: RunT) -> Work[RunT]:
    """Return the work on all steps of a run."""
    return Work(run.key.namespace, RUN_STEPS + run.steps, run)


def steps_to_read(steps: int, observed: ObservedRun) -> int:
    """Return the work of reading a run, by its size if the number of steps is not known."""
    return RUN_STEPS + (steps or observed.content.size // _BYTES_PER_STEP)


@dataclass
class Turns:
    """Account of what was done for each namespace lately, and the order of work that follows."""

    _done: dict[str, float] = field(default_factory=dict)
    _counted_at: float | None = None
    _did_large: bool = False

    def begin(self, monotonic_seconds: float) -> None:
        """Begin a tick; of what was done in earlier ones, a part is forgotten."""
        self._did_large = False
        if self._counted_at is not None and self._done:
            left = 0.5 ** ((monotonic_seconds - self._counted_at) / _HALF_LIFE_SECONDS)
            self._done = {
                name: steps * left for name, steps in self._done.items() if steps * left > 1
            }
        self._counted_at = monotonic_seconds

    def count(self, namespace: str, steps: float) -> None:
        """Count work that was done for a namespace."""
        self._done[namespace] = self._done.get(namespace, 0.0) + steps

    def order(self, work: Iterable[Work[T]]) -> Sequence[Work[T]]:
        """Return work in the order of the turns; that of one namespace stays in its own order."""
        listed = list(work)
        size: dict[str, float] = {}
        for each in listed:
            before = size.get(each.namespace, self._done.get(each.namespace, 0.0))
            size[each.namespace] = before + each.steps
        if len(size) > 1:
            listed.sort(key=lambda each: size[each.namespace])
        return listed

    def take(
        self, work: Iterable[Work[T]], most: int | None = None, *, may_be_large: bool = True
    ) -> list[T]:
        """Return what to work on now, and count it: a slice, or one piece that is larger.

        There is one such piece in a tick.

        Args:
            work: all that is asked for.
            most: largest number of pieces; None = any.
            may_be_large: whether a piece may be larger than a slice.
        """
        taken: list[T] = []
        left: float = SLICE_STEPS
        for each in self.order(work)[:most]:
            if each.steps > left:
                if taken or self._did_large or not may_be_large:
                    break
                self._did_large = True
            left -= each.steps
            self.count(each.namespace, each.steps)
            taken.append(each.on)
        return taken
