"""`release`: takes our gates off pods, even if all our other components are dead.

By hand it pauses the policy first, so that no more pods are gated, and frees all pods. A CronJob
frees those that are past their deadline. It knows no round trips, so no latency limit applies for
the pods that it frees; it says of which.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from kfp_placement_controller.actuators.gates import open_gate
from kfp_placement_controller.actuators.policies import set_paused
from kfp_placement_controller.connection import connect
from kfp_placement_controller.kinds import POLICIES
from kfp_placement_controller.observed.latency_limits import limit_ms
from kfp_placement_controller.settings import ReleaseSettings
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_controller.sources.source import RunSources
from kfp_placement_engine.contract.policy import POLICY_NAME, PlacementPolicySpec
from kfp_placement_engine.contract.resources import PlacementPolicy, read_resource
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.durations import latency_text
from kfp_placement_engine.readers.fields import Fields
from kfp_placement_engine.readers.kubernetes.gates import is_gated
from kfp_placement_engine.readers.place import Place
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.exceptions import KubernetesError
from kfp_placement_kube.kinds import PODS

Say = Callable[[str], None]

_POD = Place("pod")


def run(settings: ReleaseSettings, sources: RunSources = DEFAULT_SOURCES) -> int:
    """Release once; returns the exit code: 1 if a gate could not be taken off.

    Args:
        settings: whether all gates or only overdue ones, and whether this is a dry run.
        sources: read the pods.

    Raises:
        SettingsError: there is no way to the API server.
        KubernetesError: no answer, or what everything needs is refused.
    """
    client = connect(settings)
    return release(client, datetime.now(UTC), print, settings, sources)


def release(
    client: KubeClient, now: datetime, say: Say, settings: ReleaseSettings, sources: RunSources
) -> int:
    """Take gates off; one pod that cannot be freed keeps none of the others waiting.

    Args:
        client: the API server.
        now: the time.
        say: takes a line about what is done.
        settings: whether all gates or only overdue ones, and whether this is a dry run.
        sources: read the pods.

    Returns:
        The exit code: 1 if a gate could not be taken off.

    Raises:
        KubernetesError: pods cannot be listed, or the policy cannot be paused.
    """
    earlier_than, rules = None, _rules(client, say)
    if settings.overdue:
        earlier_than = now - timedelta(seconds=rules.gate_deadline_seconds)
    else:
        say("the policy is paused" if not settings.dry_run else "would pause the policy")
        if not settings.dry_run:
            set_paused(client, True)
    freed = failed = 0
    for pod in _gated(client, earlier_than, say):
        metadata = pod["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        if settings.dry_run:
            say(f"would free {namespace}/{name}")
            continue
        try:
            freed += open_gate(client, namespace, name, metadata.get("uid", ""))
            say(f"freed {namespace}/{name}{_unkept_limit(pod, rules, sources)}")
        except (KubernetesError, InputError) as error:
            failed += 1
            say(f"could not free {namespace}/{name}: {error}")
    say(f"{freed} gates taken off, {failed} failed")
    return 1 if failed else 0


def _rules(client: KubeClient, say: Say) -> PlacementPolicySpec:
    """The policy's, or the default ones: a policy that is gone or damaged holds nobody up."""
    policy = PlacementPolicy()
    try:
        stored = client.get(POLICIES, POLICY_NAME)
        if stored is not None:
            policy = read_resource(PlacementPolicy, stored)
    except (KubernetesError, InputError) as error:
        say(f"the policy cannot be read, its defaults apply: {error}")
    return policy.spec


def _unkept_limit(pod: Mapping[str, Any], rules: PlacementPolicySpec, sources: RunSources) -> str:
    """What to report about a pod's hard limit: round trips are not known here."""
    try:
        observed = sources.observe_pod(pod)
    except InputError:
        return ""  # it is freed anyway
    limit = limit_ms(observed, rules)
    if limit is None:
        return ""
    return f"; its limit of {latency_text(limit)} to {observed.location} is not kept"


def _gated(
    client: KubeClient, earlier_than: datetime | None, say: Say
) -> Iterator[Mapping[str, Any]]:
    """Pods with our gate, by default all of them.

    Args:
        client: the API server.
        earlier_than: only those created earlier; None = all.
        say: takes a line about pods that cannot be read.
    """
    # A gated pod is always pending.
    for pod in client.list(PODS, field_selector="status.phase=Pending").items:
        try:
            created_at = Fields(pod, _POD).flat("metadata").moment("creationTimestamp")
            if not is_gated(pod):
                continue
        except InputError as error:
            say(f"a pod is skipped: {error}")
            continue
        if earlier_than is None or created_at is None or created_at < earlier_than:
            yield pod
