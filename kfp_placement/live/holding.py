"""Lets runs go on that wait in queues: those that are held, and those that were preempted."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kfp_placement.live.exceptions import (
    ClusterConflictError,
    ClusterError,
    ClusterMissingError,
    ClusterUnreachableError,
)
from kfp_placement.live.kinds import RUN_QUEUES, WORKFLOWS, Api, JsonObject
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.readers.argo.holds import (
    HELD_SELECTOR,
    PREEMPTED_SELECTOR,
    has_ended,
    held_message,
    is_held,
    is_preempted,
    releasing_patch,
    resuming_patch,
)
from kfp_placement_kube.client import modify


@dataclass
class ReleasedRuns:
    """What was done.

    Attributes:
        begun: runs that may begin or go on, or would.
        failures: those that still wait, and why.
    """

    begun: list[RunKey] = field(default_factory=list)
    failures: dict[RunKey, str] = field(default_factory=dict)


def release_held(api: Api, runs: Iterable[RunKey] | None, *, dry_run: bool) -> ReleasedRuns:
    """Let runs go on that wait; where queues are not installed, there are none.

    Runs that others have suspended are left alone.

    Args:
        api: the cluster.
        runs: namespace and Workflow name of those that are meant; None = all.
        dry_run: the server checks every write and keeps none.

    Raises:
        ClusterError: Workflows may not be read, or there is no answer.
    """
    done = ReleasedRuns()
    try:
        next(api.pages(RUN_QUEUES))
    except ClusterMissingError:
        return done
    for workflow in _waiting(api, runs):
        _release(api, workflow, done, dry_run=dry_run)
    return done


def _waiting(api: Api, runs: Iterable[RunKey] | None) -> Iterator[JsonObject]:
    if runs is None:
        for selector in (HELD_SELECTOR, PREEMPTED_SELECTOR):
            for page in api.pages(WORKFLOWS, label_selector=selector):
                yield from page.items
        return
    for namespace, name in runs:
        workflow = api.get(WORKFLOWS, name, namespace)
        if workflow is not None:
            yield workflow


def _patch(workflow: JsonObject) -> JsonObject | None:
    """What lets a run go on; None = it does not wait in a queue."""
    version = workflow["metadata"]["resourceVersion"]
    if is_held(workflow):
        return releasing_patch(version, says_so=bool(held_message(workflow)))
    if is_preempted(workflow) and not has_ended(workflow):
        return resuming_patch(version)
    return None


def _release(api: Api, listed: JsonObject, done: ReleasedRuns, *, dry_run: bool) -> None:
    metadata = listed["metadata"]
    key = RunKey(metadata["namespace"], metadata["name"])

    def read() -> JsonObject | None:
        return api.get(WORKFLOWS, key.name, key.namespace)

    def write(now: JsonObject | None) -> bool:
        is_same = now is not None and now["metadata"].get("uid") == metadata.get("uid")
        patch = _patch(now) if now is not None and is_same else None
        if patch is None:
            return False
        api.patch(WORKFLOWS, key.name, key.namespace, patch, dry_run=dry_run)
        return True

    first: JsonObject | None = listed
    try:
        released = modify(first, write, read, again_on=(ClusterConflictError,))
    except ClusterMissingError:
        return
    except ClusterUnreachableError:
        raise
    except ClusterConflictError:
        done.failures[key] = "somebody else keeps writing it; try again"
    except ClusterError as error:
        done.failures[key] = str(error)
    else:
        if released:
            done.begun.append(key)
