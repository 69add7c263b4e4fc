"""Fields of Workflows: Argo 4.1, its full custom resource definition.

A module of its own because its types are Argo's alone.
"""

from collections.abc import Mapping

from kfp_placement_engine.readers.unused.field_lists import (
    Effect,
    FieldList,
    FieldType,
    MappingOf,
    TemplateName,
)
from kfp_placement_engine.readers.unused.pod_fields import (
    AFFINITY,
    CONTAINER,
    DEADLINE,
    HOST_NETWORK,
    POD_SPEC,
    PRIORITY_CLASS,
    SCHEDULER_NAME,
    VOLUME,
)

_SYNCHRONIZATION = Effect("the run waits for a lock that other runs may have")

_RETRY = FieldList(
    modelled="expression limit retryPolicy",
    irrelevant="backoff",
    named={"affinity": Effect("each retry goes to another node")},
)

_RUN = TemplateName()

_CALL = "arguments name templateRef when withItems withParam withSequence"
"""Fields of what runs a template: a task of a DAG, or a step."""

_HOOK = FieldList(modelled="arguments expression templateRef", types={"template": _RUN})

_CALL_TYPES: Mapping[str, FieldType] = {"hooks": MappingOf(_HOOK), "onExit": _RUN, "template": _RUN}

_TASK = FieldList(
    modelled=f"{_CALL} dependencies depends inline", irrelevant="continueOn", types=_CALL_TYPES
)

_STEP = FieldList(modelled=f"{_CALL} inline", irrelevant="continueOn", types=_CALL_TYPES)

TEMPLATE = FieldList(
    modelled="data http inputs memoize metadata name nodeSelector outputs parallelism"
    " pendingTimeout plugin podResources resource resourceClaims suspend synchronization timeout"
    " tolerations",
    irrelevant="annotations archiveLocation automountServiceAccountToken executor failFast"
    " hostAliases metrics securityContext serviceAccountName",
    named={
        "activeDeadlineSeconds": DEADLINE,
        "daemon": Effect("its pod runs on until the run ends"),
        "priorityClassName": PRIORITY_CLASS,
        "schedulerName": SCHEDULER_NAME,
    },
    types={
        "affinity": AFFINITY,
        "container": CONTAINER,
        "containerSet": FieldList(
            modelled="volumeMounts",
            irrelevant="retryStrategy",
            types={"containers": CONTAINER.with_fields("dependencies")},
        ),
        "dag": FieldList(
            modelled="target",
            irrelevant="failFast",
            types={"tasks": _TASK},
        ),
        "initContainers": CONTAINER.with_fields("mirrorVolumeMounts"),
        "podSpecPatch": POD_SPEC,
        "retryStrategy": _RETRY,
        "script": CONTAINER.with_fields("source"),
        "sidecars": CONTAINER.with_fields("mirrorVolumeMounts"),
        "steps": _STEP,
        "volumes": VOLUME,
    },
)
# Templates have tasks, which may have templates.
_TASK.types["inline"] = TEMPLATE
_STEP.types["inline"] = TEMPLATE

WORKFLOW_SPEC = FieldList(
    # Of the templates, those that the run reaches are looked at.
    modelled="arguments nodeSelector parallelism podMetadata podResources resourceClaims templates"
    " tolerations volumeClaimTemplates workflowTemplateRef",
    irrelevant="archiveLogs artifactGC artifactRepositoryRef automountServiceAccountToken dnsConfig"
    " dnsPolicy executor executorPlugins hostAliases imagePullSecrets metrics podDisruptionBudget"
    " podGC priority securityContext serviceAccountName ttlStrategy volumeClaimGC workflowMetadata",
    named={
        "activeDeadlineSeconds": Effect("Argo ends the run after that time"),
        "hostNetwork": HOST_NETWORK,
        "podPriorityClassName": PRIORITY_CLASS,
        "schedulerName": SCHEDULER_NAME,
        "shutdown": Effect("Argo ends the run at once"),
        "suspend": Effect("Argo starts nothing until somebody resumes the run"),
        "synchronization": _SYNCHRONIZATION,
    },
    types={
        "affinity": AFFINITY,
        "entrypoint": _RUN,
        "hooks": MappingOf(_HOOK),
        "onExit": _RUN,
        "podSpecPatch": POD_SPEC,
        "retryStrategy": _RETRY,
        "templateDefaults": TEMPLATE,
        "volumes": VOLUME,
    },
)
