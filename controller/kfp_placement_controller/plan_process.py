"""The process `plan`: watches, lets the coordinator decide, writes. Wiring only."""

import logging
import time
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from kfp_placement_controller.actuators.gate_workers import GateWorkers
from kfp_placement_controller.actuators.histories import HistoryWriter
from kfp_placement_controller.actuators.kfp_api import KfpApi
from kfp_placement_controller.actuators.leading import Leading
from kfp_placement_controller.actuators.plan_actions import ActionRunner
from kfp_placement_controller.actuators.prometheus import Prometheus
from kfp_placement_controller.actuators.search_worker import SearchWorker
from kfp_placement_controller.actuators.worker import Worker
from kfp_placement_controller.clock import wall_clock
from kfp_placement_controller.connection import (
    COMPONENT,
    connect,
    transport_to,
    transport_to_kfp,
)
from kfp_placement_controller.kinds import (
    PIPELINE_HISTORIES,
    PLACEMENTS,
    POLICIES,
    RUN_QUEUES,
    RUN_REQUESTS,
)
from kfp_placement_controller.leading_process import (
    LeadingProcess,
    election_of,
    lease_needs,
    run_until_signal,
)
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_controller.loops.planner_loop import PlannerLoop
from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_controller.settings import PlanSettings
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_controller.watches.plan_watches import plan_watches, readers, template_readers
from kfp_placement_controller.watches.planned_pipelines import PlannedPipelines
from kfp_placement_kube.access import Need, check_access
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.events import EventRecorder
from kfp_placement_kube.exceptions import AccessError
from kfp_placement_kube.kinds import PODS

AnswerT = TypeVar("AnswerT")

_LOG = logging.getLogger(__name__)


def run(settings: PlanSettings) -> int:
    """Run until SIGTERM or SIGINT, and return the exit code.

    Raises:
        SettingsError: there is no way to the API server.
        KubeError: the cluster or our rights are not sufficient.
    """
    client = connect(settings)
    check_access(client, needs(settings))
    _say_what_is_missing(client, learning_needs(settings), "plans do not use past runs")
    _say_what_is_missing(
        client, template_needs(settings), "steps in WorkflowTemplates are not known in time"
    )
    run_until_signal(PlanProcess(settings, client))
    return 0


def needs(settings: PlanSettings) -> tuple[Need, ...]:
    """Return the rights that the process needs at the API server."""
    kinds = readers(DEFAULT_SOURCES, PlannedPipelines(), queues=settings.queues, history=False)
    opening = (Need(PODS, ("get", "patch")),) if settings.gates else ()
    queueing = (
        Need(RUN_QUEUES, ("patch",), subresource="status"),
        Need(RUN_REQUESTS, ("create", "patch", "delete")),
    )
    return (
        *opening,
        *(queueing if settings.queues else ()),
        *map(Need, kinds),
        Need(PLACEMENTS, ("get", "create", "patch", "delete")),
        Need(PLACEMENTS, ("patch",), subresource="status"),
        Need(POLICIES, ("get", "create")),
        Need(POLICIES, ("patch",), subresource="status"),
        *lease_needs(settings.own_namespace, settings.planner_lease_name),
    )


def learning_needs(settings: PlanSettings) -> tuple[Need, ...]:
    """Return the rights for learning from past runs; the process plans without them, too."""
    learning = (
        Need(PIPELINE_HISTORIES, ("get", "list", "watch", "create", "delete")),
        Need(PIPELINE_HISTORIES, ("patch",), subresource="status"),
    )
    return learning if settings.history else ()


def template_needs(settings: PlanSettings) -> tuple[Need, ...]:
    """Return the rights for reading templates of other objects; runs are planned without, too."""
    return tuple(map(Need, template_readers(DEFAULT_SOURCES))) if settings.templates else ()


def _say_what_is_missing(client: KubeClient, wanted: tuple[Need, ...], consequence: str) -> None:
    try:
        check_access(client, wanted)
    except AccessError as error:
        _LOG.warning("%s until this is changed: %s", consequence, error)


class PlanProcess(LeadingProcess):
    """The planner, wired."""

    def __init__(self, settings: PlanSettings, client: KubeClient) -> None:
        """Connect everything without starting it."""
        self.coordinator = coordinator = Coordinator(
            DEFAULT_SOURCES,
            time.monotonic,
            time.thread_time,
            settings.own_namespace,
            may_gate=settings.gates,
            opt_in=settings.opt_in,
            queues=settings.queues,
            history=settings.history,
            kfp_api=bool(settings.kfp_api_address),
        )
        inbox: Inbox[Coordinator] = Inbox()

        def to_inbox(take: Callable[[AnswerT, datetime], None]) -> Callable[[AnswerT], None]:
            """Let the coordinator take an answer in its own thread."""
            return lambda answer: inbox.put(lambda _coordinator, now: take(answer, now))

        events = EventRecorder(client, COMPONENT, settings.identity, clock=wall_clock)
        searches = SearchWorker(to_inbox(coordinator.round_ended))
        containers = {name for each in DEFAULT_SOURCES for name in each.pod_keys.containers}
        prometheus = Prometheus(transport_to, containers)
        memory = Worker(
            "memory", prometheus.answer, to_inbox(coordinator.memory_answered), prometheus.failed
        )
        kfp = KfpApi(transport_to_kfp(settings), settings.kfp_namespace)
        packages = Worker(
            "packages", kfp.answer, to_inbox(coordinator.package_answered), kfp.failed
        )
        election = election_of(settings, settings.planner_lease_name, inbox.wake)
        writer = HistoryWriter(connect(settings, promptly=True), lambda: election.epoch)
        histories = Worker(
            "histories", writer.write, to_inbox(coordinator.history_answered), writer.failed
        )
        gates = GateWorkers(connect(settings))
        runner = ActionRunner(
            client,
            events,
            searches,
            wall_clock,
            memory.submit,
            packages.submit,
            histories.submit,
            gates.submit,
        )
        leading = Leading(election, runner, wall_clock, time.monotonic)
        super().__init__(
            settings,
            plan_watches(client, settings, DEFAULT_SOURCES, inbox),
            election,
            PlannerLoop(coordinator, inbox, wall_clock, time.monotonic, leading, runner),
            parts=(events, searches, memory, packages, histories, gates),
            alive={"search": searches.alive, "gates": gates.alive},
        )
