"""The process `extend`: wires watches, memory and the HTTP side together, and runs them.

Everything that decides is in `extender`; here is only what is connected with what.
"""

import asyncio
import time

from kfp_placement_controller.actuators.guard import Guard
from kfp_placement_controller.clock import wall_clock
from kfp_placement_controller.connection import COMPONENT, connect
from kfp_placement_controller.extender.answers import Answers
from kfp_placement_controller.extender.app import scheduler_listener, serve_until_signal
from kfp_placement_controller.extender.decisions import Decision
from kfp_placement_controller.extender.deviations import DeviationNotes
from kfp_placement_controller.extender.knowledge import Knowledge
from kfp_placement_controller.extender.knowledge_store import KnowledgeStore
from kfp_placement_controller.kinds import LOCATIONS, PLACEMENTS, POLICIES
from kfp_placement_controller.loops.garbage import look_less_often
from kfp_placement_controller.loops.guard_loop import GuardLoop
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.parts import working
from kfp_placement_controller.probes import ProbeServer
from kfp_placement_controller.settings import ExtendSettings
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_controller.watches.extend_watches import ExtendObserver
from kfp_placement_engine.units.durations import whole_seconds_text
from kfp_placement_kube.access import Need, check_access
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.events import EventRecorder
from kfp_placement_kube.kinds import CLAIMS, EVENTS, LEASES, NODES, PODS

STUCK_SECONDS = 300.0
"""A stream without a change for this long, while others have some, hangs: they end every minute."""


def needs(settings: ExtendSettings) -> list[Need]:
    """Return the rights that the process needs at the API server.

    To take gates off is not among them: there are gates only where they are installed.
    """
    return [
        *map(Need, (NODES, PODS, CLAIMS, PLACEMENTS, LOCATIONS)),
        Need(POLICIES, ("list", "watch", "get", "create")),
        Need(POLICIES, ("patch",), subresource="status"),
        Need(LEASES, namespace=settings.own_namespace),
        Need(EVENTS, ("create", "patch")),
    ]


def run(settings: ExtendSettings) -> int:
    """Run until we are asked to stop; returns the exit code.

    Raises:
        SettingsError: a setting is not what we need.
        KubeError: the cluster or our rights are not sufficient.
    """
    client = connect(settings)
    check_access(client, needs(settings))
    look_less_often()
    ExtendProcess(settings, client).run()
    return 0


class ExtendProcess:
    """The process `extend`: its watches, its guard and its HTTP side."""

    def __init__(self, settings: ExtendSettings, client: KubeClient) -> None:
        """Connect everything without starting it.

        Raises:
            SettingsError: a port cannot be opened.
        """
        self._store = KnowledgeStore(DEFAULT_SOURCES)
        self._notes = DeviationNotes()
        self._events = EventRecorder(client, COMPONENT, settings.identity, clock=wall_clock)
        guard = Guard(
            client,
            lambda: self._store.knowledge,
            scheduler_lease=settings.scheduler_lease_name,
            planner_lease=settings.planner_lease_name,
            clock=wall_clock,
            monotonic=time.monotonic,
        )
        observer = ExtendObserver(self._store, self._notes, guard, self._events)
        self._watches = observer.watches(client, DEFAULT_SOURCES, settings)
        self._guard_loop = GuardLoop(guard, self._store, self._watches.is_synced)
        answers = Answers(lambda: self._store.knowledge, self._decided)
        is_synced = self._watches.is_synced
        self._listener = scheduler_listener(answers, is_synced, settings.extender_port)
        self._probes = ProbeServer(None, settings.probe_port, self._stuck, self._watches.unready)

    def run(self) -> None:
        """Watch and answer until SIGTERM or SIGINT."""
        with working(self._probes, self._events, self._watches, self._guard_loop):
            asyncio.run(serve_until_signal(self._listener))

    def _decided(self, knowledge: Knowledge, pod: ObservedPod, decision: Decision) -> None:
        self._notes.decided(knowledge, pod, decision)
        if len(decision.nodes) == 1 and pod.uid:
            self._store.granted(pod, decision.nodes[0])

    def _stuck(self) -> str:
        """Name the watch that has stopped while others go on; empty if none, or if all have.

        When all have stopped, a restart fixes nothing.
        """
        ages = self._watches.ages_seconds()
        kind, longest = max(ages, key=lambda watch: watch[1])
        if longest > STUCK_SECONDS > min(age for _, age in ages):
            return f"the watch of {kind} has brought nothing for {whole_seconds_text(longest)}"
        return ""
