"""All runs that carry our mark, and the pods of all Workflows, whoever comes first."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_controller.kube.pods import ObservedPod
from kfp_placement_controller.kube.watch import Change
from kfp_placement_controller.kube.workflows import ObservedWorkflow
from kfp_placement_controller.planning.attach_failures import AttachFailures
from kfp_placement_controller.planning.tracked_run import RunKey, TrackedRun
from kfp_placement_engine.contract.resources_policy import PlacementPolicySpec

NEVER_PLANNED = frozenset({"kube-system"})
"""Namespaces whose pods are never ours; the controller's own is another."""


@dataclass
class RunBook:
    """The runs.

    Attributes:
        runs: by namespace and name.
        own_namespace: the controller's.
        opt_in: whether only namespaces that ask for it take part, or all but those that refuse.
        enabled: what namespaces say of that by their label; "" = nothing.
        policy: says what is assumed of loops; asked whenever a run is read.
        attach_failures: volumes that could not be attached.
    """

    policy: Callable[[], PlacementPolicySpec]
    own_namespace: str = ""
    opt_in: bool = False
    runs: dict[RunKey, TrackedRun] = field(default_factory=dict)
    enabled: dict[str, str] = field(default_factory=dict)
    attach_failures: AttachFailures = field(default_factory=AttachFailures)
    _pods: dict[RunKey, dict[str, ObservedPod]] = field(default_factory=dict)

    def workflow_changed(
        self, change: Change[ObservedWorkflow], now: datetime
    ) -> TrackedRun | None:
        """A Workflow with our mark is new, has changed or is gone; returns the run if it is new."""
        workflow = change.new
        if workflow is None:
            self.runs.pop(change.key, None)
            return None
        run = self.runs.get(change.key)
        if run is not None and run.workflow.uid == workflow.uid:
            run.observe(workflow)
            return None
        if self._excluded(workflow.namespace):
            return None
        run = TrackedRun(workflow, attach_failures=self.attach_failures)
        for pod in self._pods.get(change.key, {}).values():
            if _belongs(pod, workflow):
                run.observe_pod(None, pod, now)
        if not run.read(self.policy()):
            return None
        self.runs[change.key] = run
        return run

    def pod_changed(self, change: Change[ObservedPod], now: datetime) -> None:
        """A pod is new, has changed or is gone."""
        for pod in (change.old, change.new):
            if pod is not None and pod.workflow:
                self._shelve(pod, change.new)
        pod = change.new or change.old
        run = self.runs.get((pod.namespace, pod.workflow)) if pod is not None else None
        if run is not None and pod is not None and _belongs(pod, run.workflow):
            run.observe_pod(change.old, change.new, now)

    def leave_alone(self) -> None:
        """Drop runs whose namespace takes no part, as is known now; planned ones go on."""
        for key, run in list(self.runs.items()):
            if run.plan is None and self._excluded(key[0]):
                del self.runs[key]

    def active(self) -> Iterator[TrackedRun]:
        """Runs in which something is left to plan, oldest first."""
        runs = sorted(self.runs.values(), key=lambda run: (run.workflow.created_at, run.key))
        return (run for run in runs if run.active)

    def workflow_pods(self) -> Iterator[ObservedPod]:
        """The pods of all Workflows, marked or not."""
        for pods in self._pods.values():
            yield from pods.values()

    def _shelve(self, pod: ObservedPod, now: ObservedPod | None) -> None:
        key = (pod.namespace, pod.workflow)
        pods = self._pods.setdefault(key, {})
        if now is not None and now.uid == pod.uid:
            pods[pod.uid] = now
        else:
            pods.pop(pod.uid, None)
        if not pods:
            del self._pods[key]

    def _excluded(self, namespace: str) -> bool:
        if namespace in NEVER_PLANNED or namespace == self.own_namespace:
            return True
        # One not seen yet takes part: what it says comes soon, and `leave_alone` then.
        said = self.enabled.get(namespace)
        return said is not None and (said != "true" if self.opt_in else said == "false")


def _belongs(pod: ObservedPod, workflow: ObservedWorkflow) -> bool:
    """Whether a pod is of this Workflow, and not of an earlier one of the same name."""
    return not pod.workflow_uid or pod.workflow_uid == workflow.uid
