"""Forecast of the starts of waiting runs, by a simulation of their queues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from kfp_placement_controller.queueing.runs import WaitingRun
from kfp_placement_engine.model.keys import RunKey


@dataclass(frozen=True)
class StartForecast:
    """Forecast starts of waiting runs.

    Attributes:
        starts: start of each run whose start was reached.
        later: runs whose start was not reached before the bound on the work, each with the time
            that was reached: they start later.
        never: runs that do not start while things are as they are.
    """

    starts: Mapping[RunKey, datetime] = field(default_factory=dict)
    later: Mapping[RunKey, datetime] = field(default_factory=dict)
    never: frozenset[RunKey] = frozenset()

    def __contains__(self, run: RunKey) -> bool:
        return run in self.starts or run in self.later or run in self.never

    def together_with(self, other: "StartForecast") -> "StartForecast":
        """Return this forecast together with that of other queues."""
        return StartForecast(
            {**self.starts, **other.starts}, {**self.later, **other.later}, self.never | other.never
        )


class Simulation(Protocol):
    """Queues that share room, as they are after a decision, ready to be simulated."""

    @property
    def waiting(self) -> Sequence[WaitingRun]:
        """Runs that still wait after the decision."""
        ...

    def forecast(self, now: datetime, /) -> StartForecast:
        """Simulate the queues until all runs have started, or nothing more can end."""
        ...
