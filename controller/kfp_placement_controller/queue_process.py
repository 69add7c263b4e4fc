"""The process `queue`: watches, lets the coordinator decide who starts, writes. Wiring only."""

import logging
import signal
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from kfp_placement_controller.actuators.kueue_following import KueueFollowing
from kfp_placement_controller.actuators.kueue_workloads import KueueWriter
from kfp_placement_controller.actuators.queue_actions import QueueActionRunner
from kfp_placement_controller.actuators.queue_leading import QueueLeading
from kfp_placement_controller.clock import wall_clock
from kfp_placement_controller.connection import (
    COMPONENT,
    configuration,
    connect,
    connect_for_lease,
)
from kfp_placement_controller.handlers.operator import OperatorThread
from kfp_placement_controller.handlers.own_kinds import follow_run_queues, follow_run_requests
from kfp_placement_controller.handlers.workloads import follow_kueue
from kfp_placement_controller.kinds import RUN_QUEUES, RUN_REQUESTS
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_controller.loops.queue_loop import QueueLoop
from kfp_placement_controller.parts import working
from kfp_placement_controller.probes import ProbeServer
from kfp_placement_controller.queueing.coordinator import QueueCoordinator
from kfp_placement_controller.settings import QueueSettings
from kfp_placement_controller.sources import DEFAULT_SOURCES, QUEUE_SOURCES
from kfp_placement_controller.sources.queue_source import QueueSource
from kfp_placement_controller.sources.source import RunSources
from kfp_placement_controller.watches.queue_watches import queue_readers, queue_watches
from kfp_placement_kube.access import Need, check_access
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.events import EventRecorder
from kfp_placement_kube.kinds import LEASES
from kfp_placement_kube.lease import LeaderElection

_LOG = logging.getLogger(__name__)


def run(
    settings: QueueSettings,
    sources: Sequence[QueueSource] = QUEUE_SOURCES,
    pods_of: RunSources = DEFAULT_SOURCES,
) -> int:
    """Run until SIGTERM or SIGINT; returns the exit code.

    Args:
        settings: of the process.
        sources: of runs that can wait.
        pods_of: say which run a pod is of.

    Raises:
        SettingsError: there is no way to the API server.
        KubeError: the cluster or our rights are not sufficient.
    """
    client = connect(settings)
    check_access(client, needs(settings, sources, pods_of))
    process = QueueProcess(settings, client, sources, pods_of)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: process.stop())
    return process.run()


def needs(
    settings: QueueSettings, sources: Sequence[QueueSource], pods_of: RunSources
) -> tuple[Need, ...]:
    """What the process does with the API server."""
    namespace = settings.own_namespace
    return (
        *(Need(kind) for kind in queue_readers(sources, pods_of)),
        *(Need(source.kind, ("patch",)) for source in sources),
        Need(RUN_QUEUES),
        Need(RUN_QUEUES, ("patch",), subresource="status"),
        Need(RUN_REQUESTS),
        Need(RUN_REQUESTS, ("patch",), subresource="status"),
        Need(LEASES, ("get", "list", "watch", "create"), namespace),
        Need(LEASES, ("update",), namespace, name=settings.queue_lease_name),
    )


class QueueProcess:
    """Threads that bring changes, and one that decides and writes."""

    def __init__(
        self,
        settings: QueueSettings,
        client: KubeClient,
        sources: Sequence[QueueSource],
        pods_of: RunSources,
        clock: Callable[[], datetime] = wall_clock,
    ) -> None:
        """Nothing is started yet."""
        self._settings = settings
        coordinator = QueueCoordinator(
            pods_of, own_namespace=settings.own_namespace, opt_in=settings.opt_in
        )
        inbox: Inbox[QueueCoordinator] = Inbox()
        self._watches = queue_watches(client, settings, sources, pods_of, inbox)
        self._events = EventRecorder(client, COMPONENT, settings.identity, clock=clock)
        self._operator = OperatorThread(
            partial(configuration, settings),
            settings.identity,
            [
                partial(follow_run_queues, inbox=inbox),
                partial(follow_run_requests, inbox=inbox),
            ],
        )
        self._election = LeaderElection(
            connect_for_lease(settings),
            settings.own_namespace,
            settings.queue_lease_name,
            settings.identity,
            clock=clock,
            changed=lambda _epoch: inbox.wake(),
        )
        writer = KueueWriter(client, clock)
        self._kueue = OperatorThread(
            partial(configuration, settings),
            settings.identity,
            [partial(follow_kueue, inbox=inbox)],
        )
        kueue = KueueFollowing(
            writer.check, writer.read, clock, began=self._kueue.start, ended=self._kueue.stop
        )
        patches = {each.kind: each for each in sources}
        runner = QueueActionRunner(client, self._events, patches, writer)
        leading = QueueLeading(
            self._election,
            runner,
            clock,
            began=self._operator.start,
            ended=self._operator.stop,
        )
        self._loop = QueueLoop(coordinator, inbox, leading, kueue, runner, clock)
        self._probes = ProbeServer(settings.address, settings.port, self.unhealthy, self.unready)

    def stop(self) -> None:
        """Let it end; from any thread, or a signal."""
        self._loop.stop()

    def run(self) -> int:
        """Work until `stop`; returns the exit code."""
        with working(self._probes, self._events, self._watches):
            _LOG.info("queue %s listens on port %d", self._settings.identity, self._probes.port)
            try:
                self._loop.run(self._watches.is_synced, self._election.start)
            finally:
                self._operator.stop()
                self._kueue.stop()
                self._election.stop()
        return 0

    def unready(self) -> str:
        """What has not been seen yet; "" = everything has."""
        return self._watches.unready()

    def unhealthy(self) -> str:
        """What hangs; "" = nothing."""
        wrong = self._watches.hanging()
        stuck = self._loop.stuck()
        if stuck:
            wrong.append(stuck)
        if not (self._operator.alive() and self._kueue.alive()):
            wrong.append("the operator's thread has ended")
        if self._loop.caught_up and not self._election.alive():
            wrong.append("the election thread has ended")
        return "; ".join(wrong)
