"""Views of runs, read from a cluster: plans, pods, events about the pods, how runs wait."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice

from kfp_placement.live.connection import ClusterApi
from kfp_placement.live.exceptions import ClusterForbiddenError, ClusterMissingError
from kfp_placement.live.finding import placements
from kfp_placement.live.kinds import CORE_EVENTS, objects
from kfp_placement.live.run_failures import failure_of
from kfp_placement.live.unplanned_runs import why_no_plan
from kfp_placement_engine.contract.keys import PLACED_ELSEWHERE
from kfp_placement_engine.readers.argo.keys import WORKFLOW_LABEL
from kfp_placement_engine.readers.argo.step_pods import pods_by_step
from kfp_placement_engine.views.queues import QueueView
from kfp_placement_engine.views.runs import NamedRun, RunView, run_view, waiting_run
from kfp_placement_kube.kinds import PODS, JsonObject, Kind

MAX_RUNS = 5_000
"""Largest number of runs that are listed."""

MAX_PODS = 50_000
"""Largest number of pods of a run that are read; a step has one for each attempt."""


def list_runs(api: ClusterApi, namespace: str, now: datetime) -> tuple[tuple[RunView, ...], bool]:
    """Return the runs of a namespace ("" = all), latest first, and whether there are more.

    Raises:
        ClusterError: the cluster refuses, gives no answer, or lacks the controller.
    """
    plans = placements(api, namespace)
    runs = [run_view(raw, now) for raw in islice(plans, MAX_RUNS)]
    runs.sort(key=lambda run: run.key)
    never = datetime.min.replace(tzinfo=UTC)
    runs.sort(key=lambda run: run.submitted_at or never, reverse=True)
    return tuple(runs), next(plans, None) is not None


def look_at(api: ClusterApi, named: NamedRun, now: datetime, queue: QueueView | None) -> RunView:
    """Read a run with its pods and events; its view says what could not be read.

    Args:
        api: cluster to read.
        named: run to read.
        now: present time.
        queue: view of the run in its queue; None if it is in none, or that was not read.

    Raises:
        ClusterMissingError: the run has no plan and is in no queue; the message says why.
        ClusterError: the cluster gives no answer.
    """
    if named.raw is None:
        why = why_no_plan(api, named.namespace, named.name)
        if queue is not None:
            return replace(waiting_run(queue, now), problems=(why,))
        raise ClusterMissingError(
            f"Workflow {named.namespace}/{named.name} is there but has no plan: {why}"
        )
    run = run_view(named.raw, now, run_name=named.run_name)
    if not run.has_plan:
        return run.in_queue(queue)
    missing: list[str] = []
    pods = _if_allowed(
        api,
        PODS,
        named.namespace,
        missing,
        "gates, and what Kubernetes says of waiting pods, are not shown",
        label_selector=f"{WORKFLOW_LABEL}={named.name}",
    )
    events = _if_allowed(
        api,
        CORE_EVENTS,
        named.namespace,
        missing,
        "why pods are not on their planned nodes is not shown",
        field_selector=f"reason={PLACED_ELSEWHERE}",
    )
    by_step = pods_by_step(pods, events, named.name, [step.name for step in run.steps])
    run = run_view(named.raw, now, by_step, named.run_name)
    run = replace(run, workflow_message=failure_of(api, run), missing=tuple(missing))
    return run.in_queue(queue)


def _if_allowed(
    api: ClusterApi,
    kind: Kind,
    namespace: str,
    missing: list[str],
    consequence: str,
    **selector: str,
) -> list[JsonObject]:
    """Return objects that we may read; add to `missing` what could not be read."""
    listed: list[JsonObject] = []
    try:
        listed += islice(objects(api, kind, namespace=namespace, **selector), MAX_PODS)
        if len(listed) == MAX_PODS:
            missing.append(f"only {MAX_PODS} {kind.plural} are looked at")
    except ClusterForbiddenError as error:
        missing.append(f"{error}; {consequence}")
    return listed
