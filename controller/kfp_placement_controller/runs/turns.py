"""Turns: the planner's time is shared between namespaces, and the smallest one goes first.

Work is counted in steps of runs, and in the time that it took where that is longer: some runs of
few steps take as long as thousands of others. A tick does a slice of it, so that whoever comes next
is not kept waiting by the runs of others. A namespace counts as small if little was done for it
lately and little is asked for; so a team with one run is served at once beside one with thousands
of steps, and the latter is served as soon as the others have had as much.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from kfp_placement_controller.sources.source import ObservedRun
from kfp_placement_engine.model.keys import RunKey

T = TypeVar("T")

SLICE_STEPS = 1_000
"""Steps of the work of one kind in a tick, some 0.1 s; a larger piece has a tick of its own."""

RUN_STEPS = 20
"""Work that any run makes, however small it is, in steps."""

_STEPS_PER_SECOND = 10_000
"""Steps of ordinary runs that are read, planned or written in a second."""

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

_READ_BYTES_PER_STEP = 200
"""Size of a step in a run's object, to estimate what reading takes before it is known."""


def work_of(run: RunT) -> Work[RunT]:
    """Return the work on all steps of a run."""
    return Work(run.key.namespace, RUN_STEPS + run.steps, run)


def steps_to_read(steps: int, observed: ObservedRun) -> int:
    """Return the work of reading a run, by its size if the number of steps is not known."""
    return RUN_STEPS + (steps or observed.content.size // _READ_BYTES_PER_STEP)


@dataclass
class _Account:
    """Account of what was done for a namespace lately, in steps.

    Attributes:
        done: all work, at least by the time that it took.
        asked: work that was asked for in turn, by its steps.
        taken: work that was asked for in turn, at least by the time that it took.
    """

    done: float = 0.0
    asked: float = 0.0
    taken: float = 0.0

    @property
    def price(self) -> float:
        """Ratio of the time that its work takes to that of ordinary runs of as many steps."""
        return max(1.0, self.taken / self.asked) if self.asked else 1.0


@dataclass
class Turns:
    """Accounts of the namespaces, and the order of work that follows.

    Attributes:
        clock: function that returns the CPU time of the thread; without it, steps alone count.
    """

    clock: Callable[[], float] = lambda: 0.0
    _accounts: dict[str, _Account] = field(default_factory=dict)
    _counted_at: float | None = None
    _is_begun: bool = False
    """True if something was asked for in turn, and done, in this tick."""
    _large: _Account | None = None
    """Account of who had a large piece in this tick; None = nobody had."""
    _rests: bool = False
    """True if somebody had one in the tick before."""

    def begin(self, monotonic_seconds: float) -> None:
        """Begin a tick; of what was done in earlier ones, a part is forgotten."""
        before = monotonic_seconds if self._counted_at is None else self._counted_at
        left = 0.5 ** ((monotonic_seconds - before) / _HALF_LIFE_SECONDS)
        self._accounts = {
            name: _Account(each.done * left, each.asked * left, each.taken * left)
            for name, each in self._accounts.items()
            if each.done * left > 1
        }
        self._counted_at = monotonic_seconds
        self._is_begun, self._large, self._rests = False, None, self._large is not None

    def order(self, work: Iterable[Work[T]]) -> Sequence[Work[T]]:
        """Return work in the order of the turns; that of one namespace stays in its own order."""
        listed = list(work)
        size: dict[str, float] = {}
        for each in listed:
            before = size.get(each.namespace, self._account(each.namespace).done)
            size[each.namespace] = before + self.cost(each)
        if len(size) > 1:
            listed.sort(key=lambda each: size[each.namespace])
        return listed

    def take(
        self, work: Iterable[Work[T]], most: int | None = None, *, may_be_large: bool = True
    ) -> Iterator[T]:
        """Yield what to work on now, and count it while the caller works: a slice of the work.

        Args:
            work: all that is asked for.
            most: largest number of pieces; None = any.
            may_be_large: whether one piece may be larger than a slice.
        """
        now = Slice(self, may_be_large=may_be_large)
        for each in self.order(work)[:most]:
            if not now.has_room_for(each):
                break
            with now.spent_on(each):
                yield each.on

    def count(self, namespace: str, steps: float) -> None:
        """Count work that was done for a namespace."""
        self._account(namespace).done += steps

    def in_time(self, runs: Iterable[RunT]) -> Iterator[RunT]:
        """Yield runs by the turns until a slice of time is over; the time alone counts."""
        until = self.clock() + SLICE_STEPS / _STEPS_PER_SECOND
        for work in self.order(map(work_of, runs)):
            began = self.clock()
            if began > until:
                break
            yield work.on
            self.count(work.namespace, (self.clock() - began) * _STEPS_PER_SECOND)

    def cost(self, work: Work[T]) -> float:
        """Return how much work a piece is going to be, as its namespace has shown lately."""
        return work.steps * self._account(work.namespace).price

    def may_be_large(self, work: Work[T]) -> bool:
        """Return whether a large piece may be done now.

        After a tick with one comes a tick without, in which others do not wait. In the same tick,
        only who comes first by far has another one.
        """
        if self._large is not None:
            return self._account(work.namespace).done + self.cost(work) < self._large.done
        return not (self._rests and self._is_begun)

    def worked(self, work: Work[T], seconds: float) -> float:
        """Count a piece by the time that it took; return it in steps."""
        account, took = self._account(work.namespace), seconds * _STEPS_PER_SECOND
        took = max(took, work.steps)
        account.done += took
        account.asked += work.steps
        account.taken += took
        self._is_begun = True
        if took > SLICE_STEPS:
            self._large = account
        return took

    def _account(self, namespace: str) -> _Account:
        return self._accounts.setdefault(namespace, _Account())


@dataclass
class Slice:
    """Slice of one kind of work that is done in a tick: some pieces, or one that is larger.

    Attributes:
        turns: turns of the namespaces.
        may_be_large: whether one piece may be larger than a slice.
    """

    turns: Turns
    may_be_large: bool = True
    _left: float = SLICE_STEPS
    _is_whole: bool = True

    def has_room_for(self, work: Work[T]) -> bool:
        """Return whether a piece may be done now."""
        if self.turns.cost(work) <= self._left:
            return True
        return self.may_be_large and self._is_whole and self.turns.may_be_large(work)

    @contextmanager
    def spent_on(self, work: Work[T]) -> Iterator[None]:
        """Count a piece, which is done in this context."""
        self._is_whole, began = False, self.turns.clock()
        try:
            yield
        finally:
            self._left -= self.turns.worked(work, self.turns.clock() - began)
