"""A process of which one replica leads: it watches, decides and writes until it is to stop."""

import logging
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kfp_placement_controller.clock import wall_clock
from kfp_placement_controller.connection import connect
from kfp_placement_controller.loops.decision_loop import DecisionLoop
from kfp_placement_controller.parts import Part, working
from kfp_placement_controller.probes import ProbeServer
from kfp_placement_controller.settings import LeadingSettings
from kfp_placement_controller.watches.watch_group import WatchGroup
from kfp_placement_kube.access import Need
from kfp_placement_kube.kinds import LEASES
from kfp_placement_kube.lease import ElectionParams, LeaderElection

_LOG = logging.getLogger(__name__)

_ELECTION = ElectionParams(lease_seconds=10, renew_deadline_seconds=7.0, retry_seconds=1.0)
"""Times of an election; another replica leads within 12.4 s after the last renewal.

That is before the Lease counts as stale (`schedulerStaleAfter`, 15 s by default), when queues would
no longer hold new runs.
"""


def run_until_signal(process: "LeadingProcess") -> None:
    """Run until SIGTERM or SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: process.stop())
    process.run()


def lease_needs(namespace: str, name: str) -> tuple[Need, ...]:
    """Return the rights that a process needs to lead by the Lease of that name."""
    return (
        Need(LEASES, ("get", "list", "watch", "create"), namespace),
        Need(LEASES, ("update",), namespace, name=name),
    )


def election_of(settings: LeadingSettings, lease: str, wake: Callable[[], None]) -> LeaderElection:
    """Return the election of the replica that leads; it has not started.

    Args:
        settings: settings of the process.
        lease: name of the Lease.
        wake: function to call when this replica begins or stops leading.
    """
    return LeaderElection(
        connect(settings, promptly=True),
        settings.own_namespace,
        lease,
        settings.identity,
        clock=wall_clock,
        changed=lambda _epoch: wake(),
        params=_ELECTION,
    )


@dataclass
class LeadingProcess:
    """Threads that bring changes, and one that decides and writes.

    Attributes:
        settings: settings of the process.
        watches: watches that bring changes.
        election: election of the replica that leads.
        loop: loop that decides and writes.
        parts: parts that work as long as the process does, the watches aside.
        alive: name of a thread -> returns whether it works; if not, the process must restart.
        stopping: functions to call at the end, whether the process has led or not.
    """

    settings: LeadingSettings
    watches: WatchGroup
    election: LeaderElection
    loop: DecisionLoop[Any]
    parts: Sequence[Part]
    alive: Mapping[str, Callable[[], bool]]
    stopping: Sequence[Callable[[], None]] = ()

    def __post_init__(self) -> None:
        """Open the port of probes; nothing is started yet."""
        self._probes = ProbeServer(
            self.settings.address, self.settings.port, self.unhealthy, self.watches.unready
        )

    def stop(self) -> None:
        """Let it end; from any thread, or a signal."""
        self.loop.stop()

    def run(self) -> None:
        """Work until `stop`."""
        settings = self.settings
        with working(self._probes, *self.parts, self.watches):
            _LOG.info(
                "%s %s listens on port %d", settings.process, settings.identity, self._probes.port
            )
            try:
                self.loop.run(self.watches.is_synced, self.election.start)
            finally:
                # First the Lease: another replica can lead while the rest ends here.
                for stop in (self.election.stop, *self.stopping):
                    stop()

    def unhealthy(self) -> str:
        """Return in words what hangs and only a restart repairs; empty = nothing does."""
        wrong = self.watches.hanging()
        if stuck := self.loop.stuck():
            wrong.append(stuck)
        wrong += [
            f"the {name} thread has ended" for name, lives in self.alive.items() if not lives()
        ]
        if self.loop.caught_up and not self.election.alive():
            wrong.append("the election thread has ended")
        return "; ".join(wrong)
