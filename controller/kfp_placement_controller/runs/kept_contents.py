"""Contents of runs' objects: those that nobody needs are forgotten where a namespace has too many.

An object may take 1.4 MB, and anybody may create thousands of them. What is planned has a budget of
its own, so all others leave room for it: runs over that budget, runs that have ended, and runs that
get no plan. They are read again when their object changes, as it does when a run begins, goes on or
is retried.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_controller.sources.source import ObservedRun
from kfp_placement_engine.model.keys import RunKey

KEPT_BYTES_PER_STEP = 3_000
"""Bytes of objects, compressed, that are kept in memory for each step of a namespace's budget."""


@dataclass
class KeptContents:
    """Contents of all runs that are seen.

    Attributes:
        most_steps: function that returns the budget of a namespace.
        is_needed: function that returns whether the content of a run must be kept.
    """

    most_steps: Callable[[], int]
    is_needed: Callable[[ObservedRun], bool]
    _runs: dict[str, dict[RunKey, ObservedRun]] = field(default_factory=dict)
    _changed: set[str] = field(default_factory=set)

    def run_changed(self, key: RunKey, observed: ObservedRun | None) -> None:
        """Take in that a run is new, has changed or is gone."""
        own = self._runs.setdefault(key.namespace, {})
        if observed is not None:
            own[key] = observed
            self._changed.add(key.namespace)
        elif own.pop(key, None) is not None and not own:
            del self._runs[key.namespace]

    def settle(self) -> None:
        """Forget contents in the namespaces that have too many: of ended runs first, then new ones.

        A namespace is looked at again until it has no more than it may.
        """
        most_bytes = self.most_steps() * KEPT_BYTES_PER_STEP
        self._changed = {
            each for each in self._changed if self._forget(each, most_bytes) > most_bytes
        }

    def _forget(self, namespace: str, most_bytes: int) -> int:
        """Forget what is too much; return the bytes that are left."""
        own = self._runs.get(namespace, {}).values()
        left = sum(run.content.kept_bytes for run in own)
        for run in sorted(own, key=_place, reverse=True) if left > most_bytes else ():
            if left > most_bytes and not self.is_needed(run):
                left -= run.content.kept_bytes
                run.content.forget()
        return left


def _place(run: ObservedRun) -> tuple[bool, datetime, RunKey]:
    return run.ended, run.submitted_at, run.key
