"""What admission does to which pods: one matrix for the webhook and for the admission policies.

Every case differs from a pod that is given to our scheduler (actuator `extender`) or gated
(actuator `gates`) in one thing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kfp_placement_engine.contract.keys import (
    ENABLED_LABEL,
    PIPELINES_LABEL,
    PLAN_GATE,
    SCHEDULER_LABEL,
    UNPLANNED_LABEL,
)

STOCK = "default-scheduler"
OURS = "kfp-placement"
MARK = {SCHEDULER_LABEL: OURS}
READY = {"schedulerReady": True, "gatesReady": True}
GATES = {"actuator": "gates"}


@dataclass(frozen=True)
class AdmissionCase:
    """A pod, where and when it is created, and what it looks like afterwards.

    Attributes:
        name: of the case, lower case with dashes.
        labels: of the pod.
        spec: of the pod, beside its container.
        owners: of the pod.
        namespace_labels: of its namespace, beside its name.
        namespace: its namespace where it must be a certain one; "" = any.
        policy: `spec` of PlacementPolicy `default`; None = there is no such object.
        status: its status.
        scheduler: `spec.schedulerName` afterwards.
        gates: names of the pod's scheduling gates afterwards, in any order.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=lambda: MARK)
    spec: Mapping[str, Any] = field(default_factory=dict)
    owners: Sequence[Mapping[str, Any]] = ()
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""
    policy: Mapping[str, Any] | None = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=lambda: READY)
    scheduler: str = STOCK
    gates: Sequence[str] = ()

    def pod(self, namespace: str, name: str = "pod") -> dict[str, Any]:
        """The pod to create."""
        metadata: dict[str, Any] = {"name": name, "namespace": namespace}
        metadata["labels"] = dict(self.labels)
        if self.owners:
            metadata["ownerReferences"] = [dict(owner) for owner in self.owners]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": [{"name": "main", "image": "busybox:1"}], **self.spec},
        }


_OTHER_GATE = "example.com/other"
_TWO_NAMES = {"schedulerNames": [OURS, "another-of-ours"]}

EXTENDER_CASES = (
    AdmissionCase("marked", scheduler=OURS),
    AdmissionCase("marked-in-words", spec={"schedulerName": STOCK}, scheduler=OURS),
    AdmissionCase("not-marked", labels={}),
    AdmissionCase("other-labels-only", labels={"typeOfComponent": "Predict"}),
    AdmissionCase("mark-empty", labels={SCHEDULER_LABEL: ""}),
    AdmissionCase("mark-not-allowed", labels={SCHEDULER_LABEL: "somebody-else"}),
    AdmissionCase("mark-asks-for-stock", labels={SCHEDULER_LABEL: STOCK}),
    AdmissionCase(
        "mark-of-a-second-name",
        labels={SCHEDULER_LABEL: "another-of-ours"},
        policy=_TWO_NAMES,
        scheduler="another-of-ours",
    ),
    AdmissionCase("names-without-ours", policy={"schedulerNames": ["another-of-ours"]}),
    AdmissionCase("has-a-scheduler", spec={"schedulerName": "volcano"}, scheduler="volcano"),
    AdmissionCase("has-a-node", spec={"nodeName": "no-such-node"}, scheduler=OURS),
    AdmissionCase(
        "keeps-gates-of-others",
        spec={"schedulingGates": [{"name": _OTHER_GATE}]},
        scheduler=OURS,
        gates=(_OTHER_GATE,),
    ),
    AdmissionCase("paused", policy={"paused": True}),
    AdmissionCase("scheduler-not-ready", status={"schedulerReady": False, "gatesReady": True}),
    AdmissionCase("scheduler-not-known", status={"gatesReady": True}),
    AdmissionCase("no-status", status={}),
    AdmissionCase("gates-not-ready", status={"schedulerReady": True}, scheduler=OURS),
    AdmissionCase("no-policy", policy=None),
    AdmissionCase("opted-out", namespace_labels={ENABLED_LABEL: "false"}),
    AdmissionCase("opted-in", namespace_labels={ENABLED_LABEL: "true"}, scheduler=OURS),
    AdmissionCase("opted-in-empty", namespace_labels={ENABLED_LABEL: ""}, scheduler=OURS),
    AdmissionCase("system-namespace", namespace="kube-system"),
    AdmissionCase("own-namespace", namespace="kfp-placement"),
)

GATE_CASES = (
    AdmissionCase("gated", policy=GATES, gates=(PLAN_GATE,)),
    AdmissionCase("gated-not-marked", labels={}, policy=GATES),
    AdmissionCase("gated-mark-empty", labels={SCHEDULER_LABEL: ""}, policy=GATES),
    AdmissionCase("gated-not-allowed", labels={SCHEDULER_LABEL: "somebody-else"}, policy=GATES),
    AdmissionCase(
        "gated-has-a-scheduler",
        spec={"schedulerName": "volcano"},
        policy=GATES,
        scheduler="volcano",
    ),
    AdmissionCase("gated-has-a-node", spec={"nodeName": "no-such-node"}, policy=GATES),
    AdmissionCase(
        "gated-beside-others",
        spec={"schedulingGates": [{"name": _OTHER_GATE}]},
        policy=GATES,
        gates=(_OTHER_GATE, PLAN_GATE),
    ),
    AdmissionCase(
        "gated-already",
        spec={"schedulingGates": [{"name": PLAN_GATE}]},
        policy=GATES,
        gates=(PLAN_GATE,),
    ),
    AdmissionCase("gated-paused", policy={**GATES, "paused": True}),
    AdmissionCase("gates-without-planner", policy=GATES, status={"schedulerReady": True}),
    AdmissionCase(
        "gates-of-a-dead-planner",
        policy=GATES,
        status={"schedulerReady": True, "gatesReady": False},
    ),
    AdmissionCase("gated-no-status", policy=GATES, status={}),
    AdmissionCase(
        "gated-scheduler-not-ready",
        policy=GATES,
        status={"schedulerReady": False, "gatesReady": True},
        gates=(PLAN_GATE,),
    ),
    AdmissionCase("gated-opted-out", namespace_labels={ENABLED_LABEL: "false"}, policy=GATES),
    AdmissionCase("gated-system-namespace", namespace="kube-system", policy=GATES),
    AdmissionCase("gated-own-namespace", namespace="kfp-placement", policy=GATES),
)

_KFP = {"pipelines.kubeflow.org/v2_component": "true"}
_LAUNCHED = {"initContainers": [{"name": "kfp-launcher", "image": "busybox:1"}]}
_ALL = {PIPELINES_LABEL: "all"}


def _owner(kind: str = "Workflow", group: str = "argoproj.io") -> Mapping[str, Any]:
    return {"apiVersion": f"{group}/v1alpha1", "kind": kind, "name": "run", "uid": "run-uid"}


def _executor(name: str, **changes: Any) -> AdmissionCase:
    """A step of KFP without our mark, in a namespace that plans all pipelines."""
    usual: dict[str, Any] = {
        "labels": _KFP,
        "spec": _LAUNCHED,
        "owners": [_owner()],
        "namespace_labels": _ALL,
    }
    return AdmissionCase(f"all-{name}", **{**usual, **changes})


ALL_PIPELINES_CASES = (
    _executor("executor", scheduler=OURS),
    _executor("executor-in-a-namespace-of-marked", namespace_labels={PIPELINES_LABEL: "marked"}),
    _executor("executor-in-a-namespace-without-label", namespace_labels={}),
    _executor(
        "executor-in-a-namespace-of-another-value", namespace_labels={PIPELINES_LABEL: "ALL"}
    ),
    _executor("opted-out-namespace", namespace_labels={**_ALL, ENABLED_LABEL: "false"}),
    _executor("driver", spec={"initContainers": [{"name": "init", "image": "busybox:1"}]}),
    _executor("importer", spec={}),
    _executor("plain-workflow", labels={}),
    _executor("without-owner", owners=[]),
    _executor("owned-by-another-kind", owners=[_owner("Job")]),
    _executor("owned-by-another-group", owners=[_owner(group="example.com")]),
    _executor("two-owners", owners=[_owner("Job"), _owner()], scheduler=OURS),
    _executor("opted-out-step", labels={**_KFP, UNPLANNED_LABEL: "true"}),
    _executor("not-opted-out-step", labels={**_KFP, UNPLANNED_LABEL: "false"}, scheduler=OURS),
    _executor("marked", labels={**_KFP, **MARK}, scheduler=OURS),
    _executor("marked-for-others", labels={**_KFP, SCHEDULER_LABEL: "somebody-else"}),
    _executor(
        "marked-and-opted-out", labels={**_KFP, **MARK, UNPLANNED_LABEL: "true"}, scheduler=OURS
    ),
    _executor(
        "of-a-second-name",
        labels={**_KFP, SCHEDULER_LABEL: "another-of-ours"},
        policy=_TWO_NAMES,
        scheduler="another-of-ours",
    ),
    _executor("names-without-ours", policy={"schedulerNames": ["another-of-ours"]}),
    _executor(
        "has-a-scheduler", spec={**_LAUNCHED, "schedulerName": "volcano"}, scheduler="volcano"
    ),
    _executor("paused", policy={"paused": True}),
    _executor("scheduler-not-ready", status={"gatesReady": True}),
    _executor("no-policy", policy=None),
    _executor("gated", policy=GATES, gates=(PLAN_GATE,)),
    _executor("gated-driver", spec={}, policy=GATES),
    _executor("gated-opted-out-step", labels={**_KFP, UNPLANNED_LABEL: "true"}, policy=GATES),
    _executor("gated-in-a-namespace-without-label", namespace_labels={}, policy=GATES),
    _executor("gated-marked", labels={**_KFP, **MARK}, policy=GATES, gates=(PLAN_GATE,)),
    _executor("gated-has-a-node", spec={**_LAUNCHED, "nodeName": "no-such-node"}, policy=GATES),
    _executor(
        "gated-already",
        spec={**_LAUNCHED, "schedulingGates": [{"name": PLAN_GATE}]},
        policy=GATES,
        gates=(PLAN_GATE,),
    ),
    _executor("gated-names-without-ours", policy={**GATES, "schedulerNames": ["another-of-ours"]}),
    _executor("gated-paused", policy={**GATES, "paused": True}),
    _executor("gates-without-planner", policy=GATES, status={"schedulerReady": True}),
)

CASES = (*EXTENDER_CASES, *GATE_CASES, *ALL_PIPELINES_CASES)
"""The whole matrix."""
