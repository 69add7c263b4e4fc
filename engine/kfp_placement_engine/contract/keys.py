"""Label, annotation and name constants of the contract between SDK and cluster."""

from typing import NamedTuple

API_GROUP = "kfp-placement.dev"
API_VERSION = "kfp-placement.dev/v1alpha1"


class KindNames(NamedTuple):
    """Names of a kind in the API.

    Attributes:
        api_version: group and version.
        plural: name in addresses.
        kind: name in objects.
        namespaced: whether its objects live in namespaces.
    """

    api_version: str
    plural: str
    kind: str
    namespaced: bool = True


PLACEMENT_NAMES = KindNames(API_VERSION, "pipelineplacements", "PipelinePlacement")
POLICY_NAMES = KindNames(API_VERSION, "placementpolicies", "PlacementPolicy", namespaced=False)
QUEUE_NAMES = KindNames(API_VERSION, "runqueues", "RunQueue")
REQUEST_NAMES = KindNames(API_VERSION, "runrequests", "RunRequest")
HISTORY_NAMES = KindNames(API_VERSION, "pipelinehistories", "PipelineHistory")
LOCATION_NAMES = KindNames(API_VERSION, "locations", "Location", namespaced=False)

TYPE_LABEL = "typeOfComponent"
LOCATION_LABEL = "OurLocation"
SCHEDULER_LABEL = "kfp-placement.dev/scheduler"
HINTS_ANNOTATION = "kfp-placement.dev/hints"
ENABLED_LABEL = "kfp-placement.dev/enabled"

UNPLANNED_LABEL = "kfp-placement.dev/unplanned"
"""Label of pods: `true` leaves the step to the default scheduler in every namespace."""

PIPELINES_LABEL = "kfp-placement.dev/pipelines"
"""Label of namespaces: `all` counts all steps of KFP runs as marked; else only marked ones are."""

ALL_PIPELINES = "all"

SPEED_LABEL = "kfp-placement.dev/speed"
STORE_BANDWIDTH_LABEL = "kfp-placement.dev/store-bandwidth"
PULL_RATE_LABEL = "kfp-placement.dev/pull-rate"

RUN_ID_LABEL = "pipeline/runid"
"""KFP's, on Workflows and pods; on our PipelinePlacements as well."""

RUN_NAME_ANNOTATION = "pipelines.kubeflow.org/run_name"
"""KFP's, on Workflows; on our PipelinePlacements as well."""

MAX_RUN_NAME_CHARACTERS = 253
"""Kept from a run's name."""

QUEUE_INSTANCE = "kfp-placement-queue"
"""The workflow controller that a held run asks for: there is none of that name, so it waits."""

ADMIT_ANNOTATION = "kfp-placement.dev/admit"
PREEMPT_ANNOTATION = "kfp-placement.dev/preempt"
"""Annotation of a RunRequest: a wish that its run begins, or stops and waits; the value is when,
in RFC 3339. A request counts once: one from before the run was admitted, or waited, is over."""

PREEMPTED_ANNOTATION = "kfp-placement.dev/preempted-for"
"""Annotation of a Workflow that its queue suspended: uid of the run that it makes room for, or
`request` if somebody has asked for it."""

PREEMPTED_LABEL = "kfp-placement.dev/preempted"
"""Label of the same Workflows, so that they can be selected; the value is `true`."""

PLAN_GATE = "kfp-placement.dev/plan"

HOST_LABEL = "kubernetes.io/hostname"
"""A node's name, set by its kubelet; a pod under a hard latency limit requires nodes by it."""

NO_NODE_WITHIN = "no-node-within-"
"""Prefix of a host name that no node has; a pod requires it while no node keeps its limit."""

OVER_BUDGET = "OverBudget"
"""Reason of the event about a run that its namespace has no budget of steps for."""

PLACED_ELSEWHERE = "PlacedElsewhere"
"""Reason of the event that says why a pod is not on its planned node."""

DEFAULT_SCHEDULER = "kfp-placement"

KUBERNETES_SCHEDULER = "default-scheduler"
"""Kubernetes' own, which places every pod that asks for no other."""

LATENCY_RULED_TYPES = ("predict", "predicting", "prediction", "inference", "serving")
"""Step types that follow the latency rule unless a policy names others (compared lower case)."""

RUNS_RESOURCE = f"{API_GROUP}/runs"
"""A resource that no node has: each run requests one, so that Kueue's quota can limit their number.
"""
