"""Intake of runs: they are read in turn, as many of each namespace as its budget of steps lets in.

Which runs are in is decided by those of the namespace alone: those that may go on come before those
that are held back, those that have a plan before others, then the oldest first. What is left out
runs without a plan. Ended runs are kept, as somebody may retry them, while open ones leave room.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_controller.runs.kept_contents import KEPT_BYTES_PER_STEP
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_controller.runs.turns import Turns, Work, steps_to_read
from kfp_placement_engine.model.keys import RunKey

_ENDED_LONG_AGO = "it ended before others of its namespace, and is read again if it is retried"

LEAST_STEPS = 5
"""Steps that any run counts as in the budget, since it takes memory, however small it is."""

_COUNTED_BYTES_PER_STEP = 2_000
"""Bytes of a run's object that count as a step in the budget; KFP's large runs have 1,600."""


@dataclass
class Intake:
    """Intake of runs, which leaves out what is beyond the budget of its namespace.

    Attributes:
        registry: all runs.
        turns: turns of the namespaces.
        over_budget: number of open runs that are left out, by namespace.
        has_backlog: whether runs are left to read.
    """

    registry: RunRegistry
    turns: Turns
    over_budget: Counter[str] = field(default_factory=Counter)
    has_backlog: bool = False
    _ended: dict[str, dict[RunKey, int]] = field(default_factory=dict)
    _to_announce: list[TrackedRun] = field(default_factory=list)

    def due(self, now: datetime, *, may_be_large: bool) -> Iterator[TrackedRun]:
        """Yield the runs to read now; open ones come first, and the oldest of each namespace.

        Args:
            now: the time.
            may_be_large: whether it may be one that takes long.
        """
        self.settle(now)
        unsettled = self.registry.unsettled.ordered()
        stale = _ordered(run for run in unsettled if run.stale and not run.left_out)
        work = [
            Work(run.key.namespace, steps_to_read(run.steps, run.observed), run) for run in stale
        ]
        # Many runs may have ended before this planner began: those that go on come first.
        opened = [each for each in work if not each.on.observed.ended]
        yield from self.turns.take(opened or work, may_be_large=may_be_large)
        self.has_backlog = any(run.stale for run in stale)

    def settle(self, now: datetime) -> None:
        """Decide which runs are in the budget of their namespace: runs come, grow and end."""
        most = self.registry.policy().namespace_limits.planned_steps
        if self._all_fit(most):
            self.over_budget = Counter()
            return
        taken: Counter[str] = Counter()
        forgotten: Counter[str] = Counter()
        self.over_budget = Counter()
        runs = self.registry.unsettled.ordered()
        for run in _ordered(run for run in runs if not run.observed.ended):
            namespace, steps = run.key.namespace, _steps(run)
            if run.left_out and run.observed.content.is_forgotten:
                forgotten[namespace] += 1
                continue
            # One run is always in, or those that are larger than the budget would never be.
            fits = not taken[namespace] or taken[namespace] + steps <= most
            if fits and not self.over_budget[namespace]:
                taken[namespace] += steps
                if run.left_out:
                    self.registry.take_in(run, now)
                continue
            self.over_budget[namespace] += 1
            if not run.left_out:
                run = self.registry.leave_out(run, over_budget_text(most))
            if not run.announced:
                run.announced = True
                self._to_announce.append(run)
        self.over_budget += forgotten
        for namespace, ended in self._ended.items():
            while ended and sum(ended.values()) > most - taken[namespace]:
                self._let_go(*next(iter(ended)))

    def _all_fit(self, most: int) -> bool:
        """Return whether all runs are in, and would fit if they were of one namespace.

        So it usually is, and this is looked at in each tick.
        """
        runs = self.registry.unsettled.ordered()
        if any(run.left_out for run in runs):
            return False
        ended = sum(sum(own.values()) for own in self._ended.values())
        return ended + sum(map(_steps, runs)) <= most

    def ended(self, run: TrackedRun) -> None:
        """Take in that nothing is left to do for a run."""
        own = self._ended.setdefault(run.key.namespace, {})
        own.pop(run.key, None)
        own[run.key] = _steps(run)

    def _let_go(self, namespace: str, name: str) -> None:
        """Forget an ended run, unless it is gone or has been retried."""
        key = RunKey(namespace, name)
        del self._ended[namespace][key]
        run = self.registry.runs.get(key)
        if run is not None and run.observed.ended and run.key not in self.registry.unsettled:
            self.registry.leave_out(run, _ENDED_LONG_AGO)

    def to_announce(self) -> list[TrackedRun]:
        """Return the runs that were left out for the first time since the last call."""
        runs, self._to_announce = self._to_announce, []
        return runs


def _ordered(runs: Iterable[TrackedRun]) -> Sequence[TrackedRun]:
    """Return runs in the order in which they come in; they are given oldest first."""
    return sorted(runs, key=lambda run: (bool(run.observed.state.blocked), run.plan is None))


def over_budget_text(most_steps: int) -> str:
    """Return why a run that goes on is left out."""
    return (
        f"at most {most_steps} steps of a namespace are planned at a time (namespaceLimits in the"
        " PlacementPolicy), and older runs of this one have that many; it gets its plan when they"
        " have ended"
    )


def _steps(run: TrackedRun) -> int:
    """Return the steps that a run counts as, by their number or by the size of its object."""
    content = run.observed.content
    of_size = content.size // _COUNTED_BYTES_PER_STEP
    return max(run.steps, of_size, content.kept_bytes // KEPT_BYTES_PER_STEP, LEAST_STEPS)
