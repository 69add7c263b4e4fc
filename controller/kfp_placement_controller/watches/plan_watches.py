"""Watches of `plan`: each kind, the part of it that is kept, and messages to the coordinator."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kfp_placement_controller.actuators.policies import show_policy
from kfp_placement_controller.kinds import (
    LOCATIONS,
    PIPELINE_HISTORIES,
    PLACEMENT_METADATA,
    POLICIES,
    RUN_QUEUES,
    RUN_REQUESTS,
)
from kfp_placement_controller.learning.ended_pipelines import EndedPipeline
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_controller.observed.attach_failures import (
    ATTACH_FAILED_SELECTOR,
    MAX_ATTACH_FAILURES,
    observe_attach_failure,
)
from kfp_placement_controller.observed.claims import observe_claim, observe_volume
from kfp_placement_controller.observed.histories import observe_history
from kfp_placement_controller.observed.liveness import HeldLease
from kfp_placement_controller.observed.namespaces import Namespaces, observe_namespace
from kfp_placement_controller.observed.nodes import observe_node
from kfp_placement_controller.observed.placed_runs import observe_placed_run
from kfp_placement_controller.observed.run_queues import observe_queue
from kfp_placement_controller.observed.run_requests import observe_request
from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_controller.settings import PlanSettings
from kfp_placement_controller.sources.source import RunSources
from kfp_placement_controller.watches.ended_pipelines import EndedPipelines
from kfp_placement_controller.watches.planned_pipelines import PlannedPipelines
from kfp_placement_controller.watches.watch_group import USUAL_PARAMS, WatchGroup
from kfp_placement_engine.contract.custom_resources import (
    Location,
    read_resource,
    read_stored_policy,
)
from kfp_placement_engine.contract.history.pipeline_history import HISTORIES_PER_PAGE
from kfp_placement_engine.contract.policy import POLICY_NAME
from kfp_placement_kube.change import Change
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.kinds import (
    CLAIMS,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    VOLUMES,
    JsonObject,
    Kind,
)
from kfp_placement_kube.watch import WatchParams

_PARAMS: Mapping[Kind, WatchParams] = {
    EVENTS: WatchParams(most_objects=MAX_ATTACH_FAILURES),
    PIPELINE_HISTORIES: WatchParams(page_size=HISTORIES_PER_PAGE),
}
"""Sizes of the watches whose objects may be many, or large."""


PipelineReader = PlannedPipelines | EndedPipelines
"""Reader of runs: it drops those that get no plan, and may report those of them that end."""


def readers(
    sources: RunSources,
    runs: PipelineReader,
    *,
    queues: bool,
    history: bool,
    templates: bool = False,
) -> Mapping[Kind, Callable[[JsonObject], Any]]:
    """Return the reader of each watched kind; of events only those of one reason are watched.

    Of PipelinePlacements only the metadata is read: deleting one removes the plan of its owner.

    Args:
        sources: kinds of objects that are runs.
        runs: reader of runs.
        queues: whether queues of runs are installed.
        history: whether PipelineHistories are watched, as runs teach later ones.
        templates: whether objects are watched whose templates runs refer to.
    """
    queueing = {RUN_QUEUES: observe_queue, RUN_REQUESTS: observe_request} if queues else {}
    return {
        NODES: observe_node,
        PODS: sources.observe_pod,
        CLAIMS: observe_claim,
        VOLUMES: observe_volume,
        LOCATIONS: lambda raw: read_resource(Location, raw).stated(),
        POLICIES: read_stored_policy,
        NAMESPACES: observe_namespace,
        EVENTS: observe_attach_failure,
        PLACEMENT_METADATA: observe_placed_run,
        **{source.kind: partial(runs.read, source) for source in sources},
        **queueing,
        **({PIPELINE_HISTORIES: observe_history} if history else {}),
        **(template_readers(sources) if templates else {}),
    }


def template_readers(sources: RunSources) -> dict[Kind, Callable[[JsonObject], Any]]:
    """Return the kinds whose templates runs refer to, each with its reader."""
    return {kind: read for each in sources for kind, read in each.template_kinds.items()}


def plan_watches(
    client: KubeClient, settings: PlanSettings, sources: RunSources, inbox: Inbox[Coordinator]
) -> WatchGroup:
    """Return the watches of the process; none has started.

    Args:
        client: the API server.
        settings: settings of the process.
        sources: kinds of objects that are runs.
        inbox: the coordinator's.
    """
    watches = WatchGroup(client, listed=inbox.wake)
    runs = _run_reader(settings, inbox)
    run_kinds = {source.kind for source in sources}
    watched = readers(
        sources,
        runs,
        queues=settings.queues,
        history=settings.history,
        templates=settings.templates,
    )
    optional: dict[Kind, Callable[[bool], None]] = {
        PIPELINE_HISTORIES: partial(_readable, inbox),
        # Runs are read again whenever a template comes.
        **dict.fromkeys(template_readers(sources), lambda _is_readable: None),
    }
    for kind, read in watched.items():
        watches.add(
            kind,
            read,
            partial(_changed, inbox, runs, kind),
            field_selector=ATTACH_FAILED_SELECTOR if kind == EVENTS else "",
            params=_PARAMS.get(kind, USUAL_PARAMS),
            after=runs.decided_by if kind in run_kinds else (),
            readable=optional.get(kind),
        )
    leases = {settings.scheduler_lease_name: Coordinator.scheduler_lease}
    if settings.queues:
        leases[settings.queue_lease_name] = Coordinator.queue_lease
    for name, take in leases.items():
        changed = partial(_lease_changed, inbox, take)
        watches.add_lease(settings.own_namespace, name, changed)
    return watches


def _run_reader(settings: PlanSettings, inbox: Inbox[Coordinator]) -> PipelineReader:
    def report(run: EndedPipeline) -> None:
        inbox.put(lambda coordinator, _now: coordinator.pipeline_ended(run))

    planned = PlannedPipelines(reads_unplanned=settings.queues)
    if not settings.history:
        return planned
    return EndedPipelines(planned, report, Namespaces(settings.own_namespace, settings.opt_in))


def _changed(
    inbox: Inbox[Coordinator], runs: PipelineReader, kind: Kind, change: Change[Any]
) -> None:
    if kind == POLICIES and change.key[1] == POLICY_NAME:
        show_policy(None if change.new is None else change.new.policy)
    runs.changed(kind, change)
    inbox.put(lambda coordinator, now: coordinator.handle(kind, change, now))


def _readable(inbox: Inbox[Coordinator], is_readable: bool) -> None:
    inbox.put(lambda coordinator, _now: coordinator.histories.readable(is_readable))


def _lease_changed(
    inbox: Inbox[Coordinator],
    take: Callable[[Coordinator, HeldLease | None], None],
    lease: HeldLease | None,
) -> None:
    inbox.put_first(lambda coordinator, _now: take(coordinator, lease))
