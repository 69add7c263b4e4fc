"""The process `plan`: watches, lets the coordinator decide, writes. Wiring only."""

import logging
import signal
from collections.abc import Callable
from datetime import datetime

from kfp_placement_controller.actuators.histories import HistoryWriter
from kfp_placement_controller.actuators.leading import Leading
from kfp_placement_controller.actuators.plan_actions import ActionRunner
from kfp_placement_controller.actuators.prometheus import Prometheus
from kfp_placement_controller.actuators.search_worker import SearchWorker
from kfp_placement_controller.actuators.worker import Worker
from kfp_placement_controller.clock import wall_clock
from kfp_placement_controller.connection import (
    COMPONENT,
    connect,
    connect_for_histories,
    connect_for_lease,
    transport_to,
)
from kfp_placement_controller.kinds import (
    PIPELINE_HISTORIES,
    PLACEMENTS,
    POLICIES,
    RUN_QUEUES,
    RUN_REQUESTS,
)
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_controller.loops.planner_loop import PlannerLoop
from kfp_placement_controller.parts import working
from kfp_placement_controller.planning.actions import HistoryAnswer, MemoryAnswer
from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_controller.planning.rounds import RoundFailure, RoundResult
from kfp_placement_controller.probes import ProbeServer
from kfp_placement_controller.settings import PlanSettings
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_controller.sources.source import RunSources
from kfp_placement_controller.watches.plan_watches import plan_watches, readers
from kfp_placement_controller.watches.planned_pipelines import PlannedPipelines
from kfp_placement_kube.access import Need, check_access
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.events import EventRecorder
from kfp_placement_kube.exceptions import AccessError
from kfp_placement_kube.kinds import LEASES, PODS
from kfp_placement_kube.lease import LeaderElection

_LOG = logging.getLogger(__name__)


def run(settings: PlanSettings, sources: RunSources = DEFAULT_SOURCES) -> int:
    """Run until SIGTERM or SIGINT; returns the exit code.

    Args:
        settings: of the process.
        sources: where runs come from.

    Raises:
        SettingsError: there is no way to the API server.
        KubeError: the cluster or our rights are not sufficient.
    """
    client = connect(settings)
    check_access(client, needs(settings, sources))
    _say_what_is_missing(client, learning_needs(settings))
    process = PlanProcess(settings, client, sources)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: process.stop())
    return process.run()


def needs(settings: PlanSettings, sources: RunSources) -> tuple[Need, ...]:
    """What the process does with the API server."""
    namespace = settings.own_namespace
    opening = (Need(PODS, ("get", "patch")),) if settings.gates else ()
    queueing = (
        Need(RUN_QUEUES, ("patch",), subresource="status"),
        Need(RUN_REQUESTS, ("create", "patch", "delete")),
    )
    return (
        *opening,
        *(queueing if settings.queues else ()),
        *(Need(kind) for kind in readers(sources, PlannedPipelines(), queues=settings.queues)),
        Need(PLACEMENTS, ("get", "create", "patch", "delete")),
        Need(PLACEMENTS, ("patch",), subresource="status"),
        Need(POLICIES, ("get", "create")),
        Need(POLICIES, ("patch",), subresource="status"),
        Need(LEASES, ("get", "list", "watch", "create"), namespace),
        Need(LEASES, ("update",), namespace, name=settings.planner_lease_name),
    )


def learning_needs(settings: PlanSettings) -> tuple[Need, ...]:
    """What it does to learn from past runs; it plans without where it may not."""
    learning = (
        Need(PIPELINE_HISTORIES, ("get", "list", "watch", "create", "delete")),
        Need(PIPELINE_HISTORIES, ("patch",), subresource="status"),
    )
    return learning if settings.history else ()


def _say_what_is_missing(client: KubeClient, wanted: tuple[Need, ...]) -> None:
    try:
        check_access(client, wanted)
    except AccessError as error:
        _LOG.warning("past runs count for no plan until this is changed: %s", error)


class PlanProcess:
    """Threads that bring changes, and one that decides and writes."""

    def __init__(
        self,
        settings: PlanSettings,
        client: KubeClient,
        sources: RunSources,
        clock: Callable[[], datetime] = wall_clock,
    ) -> None:
        """Nothing is started yet."""
        self._settings = settings
        self.coordinator = Coordinator(
            sources,
            settings.own_namespace,
            may_gate=settings.gates,
            opt_in=settings.opt_in,
            queues=settings.queues,
            history=settings.history,
        )
        self._inbox: Inbox[Coordinator] = Inbox()
        self._watches = plan_watches(client, settings, sources, self._inbox)
        self._events = EventRecorder(client, COMPONENT, settings.identity, clock=clock)
        self._worker = SearchWorker(self._round_ended)
        containers = {name for each in sources for name in each.pod_marks.containers}
        prometheus = Prometheus(transport_to, containers)
        self._memory = Worker("memory", prometheus.answer, self._memory_answered)
        self._election = LeaderElection(
            connect_for_lease(settings),
            settings.own_namespace,
            settings.planner_lease_name,
            settings.identity,
            clock=clock,
            changed=lambda _epoch: self._inbox.wake(),
        )
        histories = HistoryWriter(connect_for_histories(settings), lambda: self._election.epoch)
        self._histories = Worker("histories", histories.write, self._history_answered)
        runner = ActionRunner(
            client,
            self._events,
            self._worker,
            clock,
            self._memory.submit,
            self._histories.submit,
        )
        leading = Leading(self._election, runner, clock)
        self._loop = PlannerLoop(self.coordinator, self._inbox, leading, runner, clock)
        self._probes = ProbeServer(settings.address, settings.port, self.unhealthy, self.unready)

    def stop(self) -> None:
        """Let it end; from any thread, or a signal."""
        self._loop.stop()

    def run(self) -> int:
        """Work until `stop`; returns the exit code."""
        workers = (self._worker, self._memory, self._histories)
        with working(self._probes, self._events, *workers, self._watches):
            _LOG.info("plan %s listens on port %d", self._settings.identity, self._probes.port)
            try:
                self._loop.run(self._watches.is_synced, self._election.start)
            finally:
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
        if not self._worker.alive():
            wrong.append("the search thread has ended")
        if self._loop.caught_up and not self._election.alive():
            wrong.append("the election thread has ended")
        return "; ".join(wrong)

    def _history_answered(self, answer: HistoryAnswer) -> None:
        self._inbox.put(lambda coordinator, now: coordinator.history_answered(answer, now))

    def _memory_answered(self, answer: MemoryAnswer) -> None:
        self._inbox.put(lambda coordinator, now: coordinator.memory_answered(answer, now))

    def _round_ended(self, outcome: RoundResult | RoundFailure) -> None:
        self._inbox.put(lambda coordinator, now: coordinator.round_outcome(outcome, now))
