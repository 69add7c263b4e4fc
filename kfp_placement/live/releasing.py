"""Release: pause the policy, take our gates off pods, let queued runs begin or go on."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kfp_placement.live.connection import ClusterApi
from kfp_placement.live.exceptions import (
    ClusterConflictError,
    ClusterError,
    ClusterMissingError,
    ClusterUnreachableError,
)
from kfp_placement.live.kinds import (
    POLICIES,
    RUN_QUEUES,
    WORKFLOWS,
    not_installed,
    objects,
    our_objects,
)
from kfp_placement_engine.contract.policy import POLICY_NAME
from kfp_placement_engine.contract.policy_status import new_policy, pause_patch
from kfp_placement_engine.exceptions import InputError
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
from kfp_placement_engine.readers.argo.keys import WORKFLOW_LABEL
from kfp_placement_engine.readers.kubernetes.gates import is_gated, opening_patch
from kfp_placement_engine.readers.kubernetes.required_hosts import is_unsatisfiable
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_kube.client import modify
from kfp_placement_kube.kinds import PODS, JsonObject, Kind

MAX_ROUNDS = 20
"""Largest number of times that pods are listed: admission gates pods until it sees a pause."""


@dataclass
class Released:
    """Result of a release of pods or of runs.

    Attributes:
        dry_run: whether the server checks every write and keeps none.
        freed: namespace/name of the pods whose gate was taken off, or of the runs that may go on.
        failures: namespace/name of pods or runs that still wait -> reason.
        unsatisfiable: namespace/name of pods that no node can take even without a gate, as no node
            was within their latency limit when the gate came off.
    """

    dry_run: bool
    freed: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    unsatisfiable: list[str] = field(default_factory=list)


def set_paused(api: ClusterApi, paused: bool, *, dry_run: bool) -> bool:
    """Pause the policy, or end its pause; return whether that changes anything.

    A missing policy is created paused; otherwise the controller would create one without a pause.

    Raises:
        ClusterMissingError: the controller is not installed.
        ClusterError: the cluster refuses, or gives no answer.
    """
    policy = api.get(POLICIES, POLICY_NAME)
    if policy is None:
        if not paused:
            # Listing raises an error if the kind is not installed.
            next(our_objects(api, POLICIES), None)
            return False
        try:
            api.create(POLICIES, new_policy(paused=True), dry_run=dry_run)
            return True
        except ClusterMissingError as error:
            raise not_installed(POLICIES) from error
        except ClusterConflictError:
            pass  # the controller has been faster
    elif bool((policy.get("spec") or {}).get("paused")) == paused:
        return False
    api.patch(POLICIES, POLICY_NAME, "", pause_patch(paused), dry_run=dry_run)
    return True


def open_gates(
    api: ClusterApi, runs: Iterable[RunKey] | None, tell: Callable[[str], None], *, dry_run: bool
) -> Released:
    """Take our gates off pods until no pod has one; leave the gates of others.

    Args:
        api: cluster to write to.
        runs: runs whose pods are freed; None = the pods of all runs.
        tell: callback with namespace/name of each freed pod.
        dry_run: whether the server checks every write and keeps none.

    Raises:
        ClusterError: we have no right to list pods, or the cluster gives no answer.
    """
    released = Released(dry_run)
    for _ in range(1 if dry_run else MAX_ROUNDS):
        pods = list(_pending(api, runs))
        released.unsatisfiable = [
            _name(pod)
            for pod in pods
            if _is_true(lambda raw: is_unsatisfiable(Fields(raw, Place("pod"))), pod)
        ]
        gated = [
            pod for pod in pods if _is_true(is_gated, pod) and _name(pod) not in released.failures
        ]
        for pod in gated:
            if _free(
                api, PODS, pod, lambda raw: opening_patch(raw, raw["metadata"].get("uid")), released
            ):
                tell(_name(pod))
        if not gated:
            break
    return released


def release_held(api: ClusterApi, runs: Sequence[RunKey] | None, *, dry_run: bool) -> Released:
    """Let runs that wait in queues go on; do nothing if queues are not installed.

    Runs that others have suspended are left alone.

    Args:
        api: cluster to write to.
        runs: runs that are released; None = all runs.
        dry_run: whether the server checks every write and keeps none.

    Raises:
        ClusterError: we have no right to read Workflows, or the cluster gives no answer.
    """
    released = Released(dry_run)
    # Who operates the queues of one namespace may list them there alone.
    namespace = runs[0].namespace if runs else ""
    try:
        next(objects(api, RUN_QUEUES, namespace=namespace), None)
    except ClusterMissingError:
        return released
    for workflow in _waiting(api, runs):
        _free(api, WORKFLOWS, workflow, _resuming, released)
    return released


def _free(
    api: ClusterApi,
    kind: Kind,
    listed: JsonObject,
    patch_of: Callable[[JsonObject], JsonObject | None],
    released: Released,
) -> bool:
    """Patch an object, unless another one has its name now; return whether it was patched.

    Args:
        api: cluster to write to.
        kind: kind of the object.
        listed: object as it was listed.
        patch_of: function that makes the patch which frees the object; None = it does not wait.
        released: result, to which the object is added.
    """
    metadata, name = listed["metadata"], _name(listed)
    key = metadata["name"], metadata["namespace"]

    def write(now: JsonObject | None) -> bool:
        if now is None or now["metadata"].get("uid") != metadata.get("uid"):
            return False
        patch = patch_of(now)
        if patch is not None:
            api.patch(kind, *key, patch, dry_run=released.dry_run)
        return patch is not None

    first: JsonObject | None = listed
    try:
        freed = modify(first, write, lambda: api.get(kind, *key), retry_on=(ClusterConflictError,))
    except ClusterUnreachableError:
        raise
    except ClusterMissingError:
        return False
    except ClusterError as error:
        busy = isinstance(error, ClusterConflictError)
        why = "somebody else keeps writing it; try again" if busy else str(error)
        released.failures[name] = why
        return False
    released.freed += [name] if freed else []
    return freed


def _pending(api: ClusterApi, runs: Iterable[RunKey] | None) -> Iterator[JsonObject]:
    """Yield pods without a node, whether they are gated or not."""
    chosen = [("", "")]
    if runs is not None:
        chosen = [(space, f"{WORKFLOW_LABEL}={name}") for space, name in runs]
    for namespace, selector in chosen:
        yield from objects(
            api,
            PODS,
            namespace=namespace,
            label_selector=selector,
            field_selector="status.phase=Pending,spec.nodeName=",
        )


def _waiting(api: ClusterApi, runs: Iterable[RunKey] | None) -> Iterator[JsonObject]:
    if runs is None:
        for selector in (HELD_SELECTOR, PREEMPTED_SELECTOR):
            yield from objects(api, WORKFLOWS, label_selector=selector)
        return
    for namespace, name in runs:
        workflow = api.get(WORKFLOWS, name, namespace)
        if workflow is not None:
            yield workflow


def _resuming(workflow: JsonObject) -> JsonObject | None:
    """Return the patch that lets a run go on; None if it does not wait in a queue."""
    version = workflow["metadata"]["resourceVersion"]
    if is_held(workflow):
        return releasing_patch(version, has_message=bool(held_message(workflow)))
    if is_preempted(workflow) and not has_ended(workflow):
        return resuming_patch(version)
    return None


def _is_true(condition: Callable[[JsonObject], bool], pod: JsonObject) -> bool:
    """Return whether a condition is true for a pod; False if the pod cannot be read."""
    try:
        return condition(pod)
    except InputError:
        return False


def _name(raw: JsonObject) -> str:
    metadata = raw["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"
