"""Graphs of runs that were planned alone, as many of each namespace as its budget of steps lets in.

Runs may wait for days, and each of 6,000 steps takes 10 MB. Those that have begun come before those
that wait, whose demand does not change; then come the oldest. A run whose graph is not kept counts
with the demand of the whole run until there is room again.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_controller.planning.needs.run_needs import RunNeed
from kfp_placement_controller.runs.intake import LEAST_STEPS
from kfp_placement_engine.model.keys import RunKey


@dataclass
class KeptGraphs:
    """Graphs that are kept.

    Attributes:
        most_steps: function that returns the budget of a namespace.
    """

    most_steps: Callable[[], int]
    _needs: dict[str, dict[RunKey, RunNeed]] = field(default_factory=dict)

    def keep(self, need: RunNeed) -> None:
        """Keep the graph of a run; others of its namespace are forgotten for it, or it is itself.

        One is always kept, however large it is.
        """
        key = need.key
        own = self._needs.setdefault(key.namespace, {})
        own[key] = need
        steps = sum(map(_steps, own.values()))
        while len(own) > 1 and steps > self.most_steps():
            last = max(own.values(), key=_place)
            steps -= _steps(last)
            self.forget(last.key)

    def forget(self, key: RunKey) -> None:
        """Forget the graph of a run, if it is kept."""
        own = self._needs.get(key.namespace, {})
        need = own.pop(key, None)
        if need is not None:
            need.fold()
        if not own:
            self._needs.pop(key.namespace, None)

    def kept(self, namespace: str) -> Collection[RunKey]:
        """Return the runs of a namespace whose graphs are kept."""
        return self._needs.get(namespace, {}).keys()

    def has_room(self, need: RunNeed) -> bool:
        """Return whether the graph of a run that has begun would be kept."""
        own = self._needs.get(need.key.namespace, {}).values()
        begun = sum(_steps(each) for each in own if each.has_begun)
        return not begun or begun + _steps(need) <= self.most_steps()


def _steps(need: RunNeed) -> int:
    return max(need.steps, LEAST_STEPS)


def _place(need: RunNeed) -> tuple[bool, datetime, RunKey]:
    return not need.has_begun, need.observed.submitted_at, need.key
