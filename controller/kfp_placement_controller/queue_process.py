"""The process `queue`, which decides when whole runs start: the wiring of its parts."""

import time
from functools import partial

from kfp_placement_controller.actuators.kueue_workloads import KueueWriter
from kfp_placement_controller.actuators.queue_actions import QueueActionRunner
from kfp_placement_controller.clock import wall_clock
from kfp_placement_controller.connection import COMPONENT, configuration, connect
from kfp_placement_controller.handlers.kueue_kinds import follow_kueue
from kfp_placement_controller.handlers.operator import OperatorThread
from kfp_placement_controller.kinds import RUN_QUEUES, RUN_REQUESTS
from kfp_placement_controller.leading_process import (
    LeadingProcess,
    election_of,
    lease_needs,
    run_until_signal,
)
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_controller.loops.kueue_following import KueueFollowing
from kfp_placement_controller.loops.queue_loop import QueueLoop
from kfp_placement_controller.observed.namespaces import Namespaces
from kfp_placement_controller.queueing.builtin.backend import BuiltinBackend
from kfp_placement_controller.queueing.coordinator import QueueCoordinator
from kfp_placement_controller.queueing.kueue.backend import KueueBackend
from kfp_placement_controller.settings import QueueSettings
from kfp_placement_controller.sources import DEFAULT_SOURCES, QUEUE_SOURCES
from kfp_placement_controller.watches.queue_watches import queue_readers, queue_watches
from kfp_placement_kube.access import Need, check_access
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.events import EventRecorder


def run(settings: QueueSettings) -> int:
    """Run until SIGTERM or SIGINT, and return the exit code.

    Raises:
        SettingsError: there is no way to the API server.
        KubeError: the cluster or our rights are not sufficient.
    """
    client = connect(settings)
    check_access(client, needs(settings))
    run_until_signal(QueueProcess(settings, client))
    return 0


def needs(settings: QueueSettings) -> tuple[Need, ...]:
    """Return the rights that the process needs."""
    return (
        *map(Need, queue_readers(QUEUE_SOURCES, DEFAULT_SOURCES)),
        *(Need(source.kind, ("patch",)) for source in QUEUE_SOURCES),
        Need(RUN_QUEUES, ("patch",), subresource="status"),
        Need(RUN_REQUESTS, ("patch",), subresource="status"),
        *lease_needs(settings.own_namespace, settings.queue_lease_name),
    )


class QueueProcess(LeadingProcess):
    """The parts of the process: watches, coordinator, loop, writers and the Lease."""

    def __init__(self, settings: QueueSettings, client: KubeClient) -> None:
        """Connect the parts without starting them."""
        kueue_backend = KueueBackend()
        coordinator = QueueCoordinator(
            DEFAULT_SOURCES,
            (BuiltinBackend(), kueue_backend),
            time.monotonic,
            Namespaces(settings.own_namespace, settings.opt_in),
        )
        inbox: Inbox[QueueCoordinator] = Inbox()
        events = EventRecorder(client, COMPONENT, settings.identity, clock=wall_clock)
        load = partial(configuration, settings)
        kueue_kinds = OperatorThread(load, settings.identity, partial(follow_kueue, inbox=inbox))
        election = election_of(settings, settings.queue_lease_name, inbox.wake)
        writer = KueueWriter(client, wall_clock)
        kueue = KueueFollowing(
            kueue_backend.objects,
            writer.check,
            writer.read,
            time.monotonic,
            began=kueue_kinds.start,
            ended=kueue_kinds.stop,
        )
        patches = {each.kind: each for each in QUEUE_SOURCES}
        runner = QueueActionRunner(client, events, patches, writer.run)
        super().__init__(
            settings,
            queue_watches(client, settings, QUEUE_SOURCES, DEFAULT_SOURCES, inbox),
            election,
            QueueLoop(coordinator, inbox, wall_clock, time.monotonic, election, kueue, runner),
            parts=(events,),
            alive={"operator's": kueue_kinds.alive},
            stopping=(kueue_kinds.stop,),
        )
