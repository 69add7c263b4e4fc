"""Pauses the policy and takes our gates off pods, or lets the policy go on."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from kfp_placement.live.exceptions import (
    ClusterConflictError,
    ClusterError,
    ClusterMissingError,
    ClusterUnreachableError,
)
from kfp_placement.live.kinds import NOT_INSTALLED, PODS, POLICIES, Api, JsonObject
from kfp_placement_engine.contract.policy import POLICY_NAME
from kfp_placement_engine.contract.policy_status import new_policy, pause_patch
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.readers.argo.keys import WORKFLOW_LABEL
from kfp_placement_engine.readers.fields import Fields
from kfp_placement_engine.readers.kubernetes.gates import is_gated, opening_patch
from kfp_placement_engine.readers.kubernetes.required_hosts import is_unsatisfiable
from kfp_placement_engine.readers.place import Place
from kfp_placement_kube.client import modify

MAX_ROUNDS = 20
"""Times the pods are listed: admission learns of a pause a moment later, and gates until then."""

Tell = Callable[[str], None]


class PolicyChange(Enum):
    """What happened to the policy."""

    WRITTEN = auto()
    """It was changed."""

    CREATED = auto()
    """There was none; one that is paused was made."""

    NONE = auto()
    """It was so already."""


@dataclass
class Released:
    """What was done.

    Attributes:
        opened: namespace/name of pods whose gate was taken off, or would be.
        failures: those whose gate is still there, and why.
        unsatisfiable: pods that go nowhere even so: under gates no node was within their latency
            limit.
    """

    opened: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    unsatisfiable: list[str] = field(default_factory=list)


def set_paused(api: Api, paused: bool, *, dry_run: bool) -> PolicyChange:
    """Pause the policy, or let it go on.

    If there is none to pause it is made: the controller makes one without a pause when it finds
    none.

    Raises:
        ClusterMissingError: the controller is not installed.
        ClusterError: refused, or no answer.
    """
    policy = api.get(POLICIES, POLICY_NAME)
    if policy is None:
        return _create_policy(api, paused, dry_run=dry_run)
    spec = policy.get("spec")
    if isinstance(spec, dict) and bool(spec.get("paused")) == paused:
        return PolicyChange.NONE
    api.patch(POLICIES, POLICY_NAME, "", pause_patch(paused), dry_run=dry_run)
    return PolicyChange.WRITTEN


def open_gates(api: Api, runs: Iterable[RunKey] | None, tell: Tell, *, dry_run: bool) -> Released:
    """Take our gates off, and only ours, until no pod has one any more.

    Args:
        api: the cluster.
        runs: namespace and Workflow name of the runs whose pods are meant; None = all.
        tell: called with every pod.
        dry_run: the server checks every write and keeps none.

    Raises:
        ClusterError: pods may not be listed, or there is no answer.
    """
    done = Released()
    chosen = None if runs is None else list(runs)
    for _ in range(1 if dry_run else MAX_ROUNDS):
        gated: list[JsonObject] = []
        done.unsatisfiable.clear()
        for pod in _pending(api, chosen):
            if _is_unsatisfiable(pod):
                done.unsatisfiable.append(_name(pod))
            if _is_gated(pod) and _name(pod) not in done.failures:
                gated.append(pod)
        if not gated:
            break
        for pod in gated:
            _open(api, pod, done, tell, dry_run=dry_run)
    return done


def _create_policy(api: Api, paused: bool, *, dry_run: bool) -> PolicyChange:
    try:
        if not paused:
            # Only to check that the kind of policies exists at all.
            next(api.pages(POLICIES))
            return PolicyChange.NONE
        api.create(POLICIES, new_policy(paused=True), dry_run=dry_run)
    except ClusterMissingError as error:
        raise ClusterMissingError(NOT_INSTALLED.format(POLICIES.kind)) from error
    except ClusterConflictError:
        # The controller has been faster.
        api.patch(POLICIES, POLICY_NAME, "", pause_patch(True), dry_run=dry_run)
        return PolicyChange.WRITTEN
    return PolicyChange.CREATED


def _pending(api: Api, runs: list[RunKey] | None) -> Iterator[JsonObject]:
    """Pods without a node, gated ones among them."""
    if runs is None:
        yield from _pods(api, "", "")
        return
    for namespace, workflow in runs:
        yield from _pods(api, namespace, f"{WORKFLOW_LABEL}={workflow}")


def _pods(api: Api, namespace: str, label_selector: str) -> Iterator[JsonObject]:
    for page in api.pages(
        PODS,
        namespace=namespace,
        label_selector=label_selector,
        field_selector="status.phase=Pending,spec.nodeName=",
    ):
        yield from page.items


def _is_gated(pod: Mapping[str, Any]) -> bool:
    try:
        return is_gated(pod)
    except InputError:
        return False


def _is_unsatisfiable(pod: Mapping[str, Any]) -> bool:
    try:
        return is_unsatisfiable(Fields(pod, Place("pod")))
    except InputError:
        return False


def _open(api: Api, pod: JsonObject, done: Released, tell: Tell, *, dry_run: bool) -> None:
    metadata, name = pod["metadata"], _name(pod)

    def write(now: JsonObject | None) -> bool:
        patch = opening_patch(now, metadata.get("uid"))
        if patch is None:
            return False
        api.patch(PODS, metadata["name"], metadata["namespace"], patch, dry_run=dry_run)
        return True

    def read() -> JsonObject | None:
        return api.get(PODS, metadata["name"], metadata["namespace"])

    listed: JsonObject | None = pod
    try:
        opened = modify(listed, write, read, again_on=(ClusterConflictError,))
    except ClusterMissingError:
        # It is gone, and so is its gate.
        return
    except ClusterUnreachableError:
        raise
    except ClusterConflictError:
        done.failures[name] = "somebody else keeps writing it; try again"
    except ClusterError as error:
        done.failures[name] = str(error)
    else:
        if opened:
            done.opened.append(name)
            tell(name)


def _name(pod: Mapping[str, Any]) -> str:
    metadata = pod["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"
