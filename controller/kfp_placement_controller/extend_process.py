"""The process `extend`: wires watchers, memory and the HTTP side together, and runs them.

Everything that decides is in `extender`; here is only what is connected with what.
"""

import asyncio
import contextlib
import gc
import logging
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from kfp_placement_controller.actuators.deviations import report_deviation
from kfp_placement_controller.actuators.guard import Guard
from kfp_placement_controller.actuators.policies import show_policy
from kfp_placement_controller.connection import COMPONENT, connect
from kfp_placement_controller.exceptions import SettingsError
from kfp_placement_controller.extender.answers import Answers
from kfp_placement_controller.extender.app import (
    CertificateFiles,
    Listener,
    listening,
    probe_application,
    scheduler_application,
    webhook_application,
)
from kfp_placement_controller.extender.decisions import Decision
from kfp_placement_controller.extender.deviations import DeviationNotes
from kfp_placement_controller.extender.knowledge import Knowledge
from kfp_placement_controller.extender.memory import (
    Memory,
    read_bare_node,
    read_location,
    read_plan,
    read_policy,
)
from kfp_placement_controller.extender.rejections import count_rejection
from kfp_placement_controller.extender.scheduling_request import SchedulingRequest
from kfp_placement_controller.kinds import LOCATIONS, PLACEMENTS, POLICIES
from kfp_placement_controller.observed.claims import observe_claim
from kfp_placement_controller.observed.liveness import observe_held_lease
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.settings import ExtendSettings
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_controller.sources.source import RunSources
from kfp_placement_engine.contract.policy import PlacementPolicy
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.durations import whole_seconds_text
from kfp_placement_kube.access import Need, check_access
from kfp_placement_kube.answers import JsonObject
from kfp_placement_kube.change import Change
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.events import EventRecorder
from kfp_placement_kube.kinds import CLAIMS, EVENTS, LEASES, NODES, PODS, Kind
from kfp_placement_kube.watch import Watcher

_LOG = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
"""Only the scheduler in the same pod asks; nobody else has to be let in."""

STUCK_SECONDS = 300.0
"""A stream that brought nothing for so long, while others did, is stuck: they end every minute."""


TICK_SECONDS = 1.0
"""How often it is looked whether something has gone stale."""


def needs(settings: ExtendSettings) -> list[Need]:
    """What this process does with the API server; gates come off only where they are installed."""
    return [
        *map(Need, (NODES, PODS, CLAIMS, PLACEMENTS, LOCATIONS)),
        Need(POLICIES, ("list", "watch", "get", "create")),
        Need(POLICIES, ("patch",), subresource="status"),
        Need(LEASES, namespace=settings.own_namespace),
        Need(EVENTS, ("create", "patch")),
    ]


def run(settings: ExtendSettings, sources: RunSources = DEFAULT_SOURCES) -> int:
    """Run until we are asked to stop; returns the exit code.

    Args:
        settings: of the process.
        sources: where runs come from.

    Raises:
        SettingsError: a setting is not what we need.
        KubeError: the cluster or our rights will not do.
    """
    client = connect(settings)
    check_access(client, needs(settings))
    asyncio.run(ExtendProcess(settings, client, sources).serve())
    return 0


class ExtendProcess:
    """What lives as long as the process."""

    def __init__(self, settings: ExtendSettings, client: KubeClient, sources: RunSources) -> None:
        """Connect everything; start nothing."""
        self._settings = settings
        self._events = EventRecorder(client, COMPONENT, settings.identity, clock=_now)
        self._memory = Memory(sources)
        self._notes = DeviationNotes()
        self._guard = Guard(
            client,
            lambda: self._memory.known,
            scheduler_lease=settings.scheduler_lease_name,
            planner_lease=settings.planner_lease_name,
            clock=_now,
        )
        self._stopping = threading.Event()
        self._watchers = self._watching(client, sources)
        self._answers = Answers(lambda: self._memory.known, self._decided, settings.own_namespace)

    async def serve(self) -> None:
        """Watch and answer until SIGTERM or SIGINT.

        Raises:
            SettingsError: a port or the certificate cannot be used.
        """
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
        certificates = self._certificates()
        with self._working():
            async with listening(*self._listeners(certificates)) as ports:
                _LOG.info("listening on ports %s", ", ".join(map(str, ports)))
                async with _beside(certificates):
                    await stopping.wait()

    def _watching(self, client: KubeClient, sources: RunSources) -> Sequence[Watcher[Any]]:
        memory = self._memory

        def watch(
            kind: Kind, read: Callable[[JsonObject], Any], changed: Callable[[Change[Any]], None]
        ) -> Watcher[Any]:
            return Watcher(client, kind, read, changed, malformed=InputError)

        return (
            watch(NODES, read_bare_node, memory.node_changed),
            watch(LOCATIONS, read_location, memory.location_changed),
            watch(POLICIES, read_policy, self._policy_changed),
            watch(CLAIMS, observe_claim, memory.claim_changed),
            watch(PLACEMENTS, read_plan, memory.plan_changed),
            watch(PODS, sources.observe_pod, self._pod_changed),
            Watcher(
                client,
                LEASES,
                observe_held_lease,
                self._guard.lease_changed,
                namespace=self._settings.own_namespace,
                malformed=InputError,
            ),
        )

    def _decided(self, known: Knowledge, pod: SchedulingRequest, decision: Decision) -> None:
        self._notes.decided(known, pod, decision)
        if len(decision.nodes) == 1 and pod.observed.uid:
            self._memory.granted(pod.observed, decision.nodes[0])

    def _policy_changed(self, change: Change[PlacementPolicy]) -> None:
        self._memory.policy_changed(change)
        show_policy(self._memory.known.policy)

    def _pod_changed(self, change: Change[ObservedPod]) -> None:
        self._memory.pod_changed(change)
        deviation = self._notes.pod_changed(change)
        if deviation is not None:
            report_deviation(self._events, deviation)
        self._guard.pod_changed(change)
        count_rejection(change, self._memory.known.rules.scheduler_names)

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        """Threads that run as long as the context lasts."""
        self._events.start()
        for watcher in self._watchers:
            watcher.start()
        guarding = threading.Thread(target=self._keep_guard, name="guard")
        guarding.start()
        try:
            yield
        finally:
            self._stopping.set()
            guarding.join()
            for watcher in self._watchers:
                watcher.stop()
            self._events.stop()

    def _keep_guard(self) -> None:
        while not self._is_synced():
            if self._stopping.wait(TICK_SECONDS):
                return
        # What is there at the start mostly stays; to look through it takes up to 50 ms each time.
        gc.collect()
        gc.freeze()
        while not self._stopping.wait(TICK_SECONDS):
            self._memory.forget_moments()
            try:
                self._guard.tick()
            except Exception:
                # Nobody else may be left to take gates off: a defect ends one round, not all.
                _LOG.exception("defect in the guard")

    def _is_synced(self) -> bool:
        return all(watcher.synced.is_set() for watcher in self._watchers)

    def _stuck(self) -> str:
        """The watch that has stopped while others go on; when all have, a restart mends nothing."""
        ages = {watcher.kind.plural: watcher.age_seconds() for watcher in self._watchers}
        oldest = max(ages, key=ages.__getitem__)
        if ages[oldest] > STUCK_SECONDS > min(ages.values()):
            return (
                f"the watch of {oldest} has brought nothing for {whole_seconds_text(ages[oldest])}"
            )
        return ""

    def _certificates(self) -> CertificateFiles | None:
        certificate, key = self._settings.webhook_certificate, self._settings.webhook_key
        if certificate is None and key is None:
            return None
        if certificate is None or key is None:
            raise SettingsError(
                "the webhook needs both --webhook-certificate and --webhook-key, or neither"
            )
        return CertificateFiles(certificate, key)

    def _listeners(self, certificates: CertificateFiles | None) -> list[Listener]:
        settings, answers, is_synced = self._settings, self._answers, self._is_synced
        probes = probe_application(is_synced, self._stuck)
        listeners = [
            Listener(scheduler_application(answers, is_synced), LOOPBACK, settings.extender_port),
            Listener(probes, None, settings.probe_port),
        ]
        if certificates is not None:
            hook = webhook_application(answers, is_synced)
            listeners.append(Listener(hook, None, settings.webhook_port, certificates.context))
        return listeners


@contextlib.asynccontextmanager
async def _beside(certificates: CertificateFiles | None) -> AsyncIterator[None]:
    """Keep the certificate up to date as long as the context lasts."""
    if certificates is None:
        yield
        return
    task = asyncio.create_task(certificates.keep_checking())
    try:
        yield
    finally:
        task.cancel()


def _now() -> datetime:
    return datetime.now(UTC)
