"""The process `plan`: watches, lets the coordinator decide, writes. Wiring only."""

import logging
import queue
import signal
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from kfp_placement_controller.actuators.leading import Leading
from kfp_placement_controller.actuators.placements import observe_existence
from kfp_placement_controller.actuators.plan_actions import ActionRunner
from kfp_placement_controller.actuators.policies import show_policy
from kfp_placement_controller.actuators.search_worker import SearchWorker
from kfp_placement_controller.connection import COMPONENT, connect
from kfp_placement_controller.kinds import (
    LOCATIONS,
    PLACEMENT_METADATA,
    PLACEMENTS,
    POLICIES,
)
from kfp_placement_controller.metrics import (
    LEARNED_SECONDS,
    PLANNER_TICK_SECONDS,
    RUNS,
)
from kfp_placement_controller.observed.attach_failures import (
    ATTACH_FAILED_SELECTOR,
    MAX_ATTACH_FAILURES,
    observe_attach_failure,
)
from kfp_placement_controller.observed.claims import observe_claim, observe_volume
from kfp_placement_controller.observed.liveness import observe_held_lease
from kfp_placement_controller.observed.namespaces import observe_namespace
from kfp_placement_controller.observed.nodes import observe_node
from kfp_placement_controller.planning.conditions import phase
from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_controller.planning.rounds import RoundFailure, RoundResult
from kfp_placement_controller.probes import ProbeServer
from kfp_placement_controller.settings import PlanSettings
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_controller.sources.source import RunSources
from kfp_placement_engine.contract.placement import Phase
from kfp_placement_engine.contract.policy import POLICY_NAME
from kfp_placement_engine.contract.resources import Location, PlacementPolicy, read_resource
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.durations import whole_seconds_text
from kfp_placement_kube.access import Need, check_access
from kfp_placement_kube.answers import JsonObject
from kfp_placement_kube.change import Change
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.events import EventRecorder
from kfp_placement_kube.kinds import CLAIMS, EVENTS, LEASES, NAMESPACES, NODES, PODS, VOLUMES, Kind
from kfp_placement_kube.lease import LeaderElection
from kfp_placement_kube.watch import Watcher, WatchParams

_LOG = logging.getLogger(__name__)

ELECTION_TIMEOUT_SECONDS = 5.0
"""Of a request for the Lease: well within the ten seconds after which we lead no longer."""

STALE_STREAM_SECONDS = 180.0
"""A stream is resumed every minute; one that brought nothing for so long hangs."""

LEAST_PAUSE_SECONDS = 0.05
"""Between two looks: changes come in bursts."""

STUCK_SECONDS = 120.0
"""A loop that has not come round for so long hangs; a look takes a second at most."""

MAX_BATCH_SECONDS = 0.1
"""For changes between two looks: a graph is read in tens of milliseconds, and plans are awaited."""

Message = Callable[[Coordinator, datetime], None]


def run(settings: PlanSettings, sources: RunSources = DEFAULT_SOURCES) -> int:
    """Run until SIGTERM or SIGINT; returns the exit code.

    Args:
        settings: of the process.
        sources: where runs come from.

    Raises:
        SettingsError: there is no way to the API server.
        KubeError: the cluster or our rights will not do.
    """
    client = connect(settings)
    check_access(client, needs(settings, sources))
    process = PlanProcess(settings, client, sources)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: process.stop())
    return process.run()


def readers(sources: RunSources) -> dict[Kind, Callable[[JsonObject], Any]]:
    """What is watched, and what is kept of it; of events only those of one reason.

    Of our own objects only their being there counts: who deletes one takes a run's plan away.
    """
    return {
        NODES: observe_node,
        PODS: sources.observe_pod,
        CLAIMS: observe_claim,
        VOLUMES: observe_volume,
        **{source.kind: source.observe for source in sources},
        LOCATIONS: lambda raw: read_resource(Location, raw).stated(),
        POLICIES: lambda raw: read_resource(PlacementPolicy, raw),
        NAMESPACES: observe_namespace,
        EVENTS: observe_attach_failure,
        PLACEMENT_METADATA: observe_existence,
    }


def needs(settings: PlanSettings, sources: RunSources) -> tuple[Need, ...]:
    """What the process does with the API server."""
    namespace = settings.own_namespace
    opening = (Need(PODS, ("get", "patch")),) if settings.gates else ()
    return (
        *opening,
        *(Need(kind) for kind in readers(sources)),
        Need(PLACEMENTS, ("get", "create", "patch", "delete")),
        Need(PLACEMENTS, ("patch",), subresource="status"),
        Need(POLICIES, ("get", "create")),
        Need(POLICIES, ("patch",), subresource="status"),
        Need(LEASES, ("get", "list", "watch", "create"), namespace),
        Need(LEASES, ("update",), namespace, name=settings.planner_lease_name),
    )


def _now() -> datetime:
    return datetime.now(UTC)


class _Part(Protocol):
    """Something that works in a thread of its own."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class PlanProcess:
    """Threads that bring changes, and one that decides and writes."""

    def __init__(
        self,
        settings: PlanSettings,
        client: KubeClient,
        sources: RunSources,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        """Start nothing yet."""
        self._settings = settings
        self._clock = clock
        self._inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._came_round_at = clock()
        self._caught_up = False
        self.coordinator = Coordinator(
            sources,
            settings.own_namespace,
            may_gate=settings.gates,
            opt_in=settings.opt_in,
        )
        self._watchers = [
            self._watcher(client, kind, read) for kind, read in readers(sources).items()
        ]
        self._watchers.append(self._lease_watcher(client))
        self._events = EventRecorder(client, COMPONENT, settings.identity, clock=clock)
        self._worker = SearchWorker(self._round_ended)
        self._runner = ActionRunner(client, self._events, self._worker, clock)
        self._election = LeaderElection(
            connect(settings, timeout_seconds=ELECTION_TIMEOUT_SECONDS),
            settings.own_namespace,
            settings.planner_lease_name,
            settings.identity,
            clock=clock,
            changed=lambda _epoch: self._inbox.put(_nothing),
        )
        self._leading = Leading(self._election, self._runner, clock)
        self._probes = ProbeServer(settings.address, settings.port, self.unhealthy, self.unready)

    def stop(self) -> None:
        """Let it end; from any thread, or a signal."""
        self._stopping.set()
        self._inbox.put(_nothing)

    def run(self) -> int:
        """Work until `stop`; returns the exit code."""
        parts: list[_Part] = [self._probes, self._events, self._worker, *self._watchers]
        for part in parts:
            part.start()
        _LOG.info("plan %s listens on port %d", self._settings.identity, self._probes.port)
        try:
            self._work()
        finally:
            self._election.stop()
            for part in reversed(parts):
                part.stop()
        return 0

    def unready(self) -> str:
        """What has not been seen yet; "" = everything has."""
        missing = [each.kind.plural for each in self._watchers if not each.synced.is_set()]
        return f"not seen yet: {', '.join(missing)}" if missing else ""

    def unhealthy(self) -> str:
        """What hangs; "" = nothing."""
        wrong = []
        for watcher in self._watchers:
            age = watcher.age_seconds()
            if age > STALE_STREAM_SECONDS:
                wrong.append(f"{watcher.kind.plural}: nothing heard for {whole_seconds_text(age)}")
        stuck = (self._clock() - self._came_round_at).total_seconds()
        if stuck > STUCK_SECONDS:
            wrong.append(f"the planner's loop has not come round for {whole_seconds_text(stuck)}")
        if not self._worker.alive():
            wrong.append("the search thread has ended")
        if self._caught_up and not self._election.alive():
            wrong.append("the election thread has ended")
        return "; ".join(wrong)

    def _watcher(
        self, client: KubeClient, kind: Kind, read: Callable[[JsonObject], Any]
    ) -> Watcher[Any]:
        def changed(change: Change[Any]) -> None:
            if kind == POLICIES and change.key[1] == POLICY_NAME:
                show_policy(change.new)
            self._inbox.put(lambda coordinator, now: coordinator.handle(kind, change, now))

        events = kind == EVENTS
        return Watcher(
            client,
            kind,
            read,
            changed,
            field_selector=ATTACH_FAILED_SELECTOR if events else "",
            listed=lambda: self._inbox.put(_nothing),
            malformed=InputError,
            params=WatchParams(most_objects=MAX_ATTACH_FAILURES if events else None),
        )

    def _lease_watcher(self, client: KubeClient) -> Watcher[Any]:
        """Our scheduler's Lease, and no other."""

        def changed(change: Change[Any]) -> None:
            self._inbox.put(lambda coordinator, now: coordinator.scheduler_lease(change.new, now))

        return Watcher(
            client,
            LEASES,
            observe_held_lease,
            changed,
            namespace=self._settings.own_namespace,
            field_selector=f"metadata.name={self._settings.scheduler_lease_name}",
            listed=lambda: self._inbox.put(_nothing),
            malformed=InputError,
        )

    def _round_ended(self, outcome: RoundResult | RoundFailure) -> None:
        self._inbox.put(lambda coordinator, now: coordinator.round_outcome(outcome, now))

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._came_round_at = self._clock()
            self._take()
            if not self._caught_up or self._stopping.is_set():
                continue
            self._leading.follow_election(self.coordinator)
            with PLANNER_TICK_SECONDS.time():
                actions = self.coordinator.tick(self._clock())
            for action in actions:
                if self._stopping.is_set():
                    return
                self._runner.run(action, self.coordinator)
            self._count()
            self._stopping.wait(LEAST_PAUSE_SECONDS)

    def _count(self) -> None:
        """Tell the metrics what there is."""
        counts = Counter(phase(run) for run in self.coordinator.registry.runs.values())
        for each in Phase:
            RUNS.labels(str(each)).set(counts[each])
        learned = self.coordinator.learned
        LEARNED_SECONDS.labels("driver").set(learned.driver.value or 0.0)
        LEARNED_SECONDS.labels("start").set(learned.start.value or 0.0)

    def _take(self) -> None:
        """Take in what has come, or wait until it is time to look.

        What there was at the start is taken in whole: plans are adopted by runs that are known.
        """
        now = self._clock()
        pause = max(0.0, (self.coordinator.next_at(now) - now).total_seconds())
        is_complete = not self._caught_up and not self.unready()
        try:
            message = self._inbox.get(timeout=pause)
            until = self._clock() + timedelta(seconds=MAX_BATCH_SECONDS)
            while not self._stopping.is_set():
                self._came_round_at = self._clock()
                message(self.coordinator, self._came_round_at)
                if self._caught_up and self._came_round_at >= until:
                    return
                message = self._inbox.get_nowait()
        except queue.Empty:
            if is_complete:
                # Who has not seen everything stands back: others can lead, and say so if none does.
                self._election.start()
                self._caught_up = True


def _nothing(_coordinator: Coordinator, _now: datetime) -> None:
    """Only wakes the coordinator."""
