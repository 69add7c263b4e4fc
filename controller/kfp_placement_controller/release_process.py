"""The process `release`: frees pods and runs that wait for us, even if our processes are dead.

These are pods with our gate and, where queues are installed, runs that are held or preempted. Run
by hand, it pauses the policy first, so that nothing more is held, and frees all of them. Run by its
CronJob, it frees those that are past their deadline. It does not know round trips, so the pods
that it frees may break a latency limit; it prints the limit of each such pod.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from kfp_placement_controller.actuators.gates import open_gate
from kfp_placement_controller.actuators.held_runs import HeldRuns, ReleaseCounts, Say, silence_of
from kfp_placement_controller.actuators.policies import set_paused
from kfp_placement_controller.clock import wall_clock
from kfp_placement_controller.connection import connect
from kfp_placement_controller.kinds import POLICIES
from kfp_placement_controller.observed.latency_limits import limit_ms
from kfp_placement_controller.queueing.overdue import (
    BY_HAND,
    Holding,
    closed_condition,
    closing_patch,
    holding,
)
from kfp_placement_controller.settings import ReleaseSettings
from kfp_placement_controller.sources import DEFAULT_SOURCES, QUEUE_SOURCES
from kfp_placement_engine.contract.custom_resources import read_stored_policy
from kfp_placement_engine.contract.policy import POLICY_NAME, PlacementPolicySpec
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.kubernetes.gates import is_gated
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.units.durations import latency_text
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.exceptions import KubernetesError
from kfp_placement_kube.kinds import PODS, JsonObject, key_of

_POD = Place("pod")


def run(settings: ReleaseSettings) -> int:
    """Release once, and return the exit code: 1 if something could not be freed.

    Raises:
        SettingsError: there is no way to the API server.
        KubernetesError: there was no answer, or a request was refused that all else needs.
    """
    return release(connect(settings), wall_clock(), print, settings)


def release(client: KubeClient, now: datetime, say: Say, settings: ReleaseSettings) -> int:
    """Free pods and runs; go on after one that cannot be freed.

    Args:
        client: the API server.
        now: the time.
        say: callback with a line about each change.
        settings: kinds of objects to free, whether only overdue ones, and whether as a dry run.

    Returns:
        The exit code: 1 if something could not be freed.

    Raises:
        KubernetesError: the API server does not answer, or refuses to list objects or to pause the
            policy.
    """
    if not settings.overdue:
        if not settings.dry_run:
            set_paused(client, True)
        say("would pause the policy" if settings.dry_run else "the policy is paused")
    rules, failed = _rules(client, say), 0
    if settings.pods:
        deadline = timedelta(seconds=rules.gate_deadline_seconds)
        earlier_than = now - deadline if settings.overdue else None
        failed += _release_pods(client, earlier_than, say, rules, dry_run=settings.dry_run)
    for source in QUEUE_SOURCES if settings.runs else ():
        runs = HeldRuns(client, source, say, dry_run=settings.dry_run)
        if settings.overdue:
            done = _release_overdue_runs(runs, now, settings, rules)
        else:
            done = _release_all_runs(runs, now)
        say(f"{done.freed} runs released, {done.failed} failed")
        failed += done.failed
    return 1 if failed else 0


def _release_pods(
    client: KubeClient,
    earlier_than: datetime | None,
    say: Say,
    rules: PlacementPolicySpec,
    *,
    dry_run: bool,
) -> int:
    """Take our gates off pods, and return the number of pods for which this failed."""
    freed = failed = 0
    for pod in _gated(client, earlier_than, say):
        namespace, name = key_of(pod)
        if dry_run:
            say(f"would free {namespace}/{name}")
            continue
        try:
            if open_gate(client, namespace, name, pod["metadata"].get("uid", "")):
                freed += 1
                say(f"freed {namespace}/{name}{_unkept_limit(pod, rules)}")
        except (KubernetesError, InputError) as error:
            failed += 1
            say(f"could not free {namespace}/{name}: {error}")
    say(f"{freed} gates taken off, {failed} failed")
    return failed


def _release_all_runs(runs: HeldRuns, now: datetime) -> ReleaseCounts:
    """Release all waiting runs.

    This does not depend on Leases, and the caller may lack the right to read them.
    """
    return runs.release(lambda _: Holding.NONE, lambda queue: closing_patch(queue, BY_HAND, now))


def _release_overdue_runs(
    runs: HeldRuns, now: datetime, settings: ReleaseSettings, rules: PlacementPolicySpec
) -> ReleaseCounts:
    """Release waiting runs where `plan` or `queue` is silent for too long."""
    stale_after = timedelta(seconds=rules.scheduler_stale_after_seconds)
    names = (settings.planner_lease_name, settings.queue_lease_name)
    silence = silence_of(runs.client, settings.own_namespace, names)
    return runs.release(
        lambda queue: holding(queue, silence, stale_after, now),
        lambda queue: closing_patch(queue, closed_condition(silence), now),
    )


def _rules(client: KubeClient, say: Say) -> PlacementPolicySpec:
    """Return the policy's rules; what is missing or malformed has its default."""
    policy = PlacementPolicySpec()
    try:
        stored = client.get(POLICIES, POLICY_NAME)
        if stored is not None:
            policy = read_stored_policy(stored).policy.spec
    except (KubernetesError, InputError) as error:
        say(f"the policy cannot be read, its defaults apply: {error}")
    return policy


def _unkept_limit(pod: JsonObject, rules: PlacementPolicySpec) -> str:
    """Return a note that a pod's hard latency limit was not kept, or "" if it has no limit."""
    try:
        observed = DEFAULT_SOURCES.observe_pod(pod)
    except InputError:
        return ""  # it is freed anyway
    limit = limit_ms(observed, rules)
    if limit is None:
        return ""
    return f"; its limit of {latency_text(limit)} to {observed.location} is not kept"


def _gated(client: KubeClient, earlier_than: datetime | None, say: Say) -> Iterator[JsonObject]:
    """Yield the pods with our gate.

    Args:
        client: the API server.
        earlier_than: time before which a pod must have been created, or None for all pods.
        say: callback with a line about each pod that cannot be read.
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
