"""Fields of Workflows: Argo 4.1, its full custom resource definition.

A module of its own because its types are Argo's alone.
"""

from kfp_placement_engine.readers.unused.field_lists import Effect, FieldList, MappingOf
from kfp_placement_engine.readers.unused.pod_fields import (
    AFFINITY,
    CONTAINER,
    HOST_NETWORK,
    POD_SPEC,
    PRIORITY_CLASS,
    SCHEDULER_NAME,
    VOLUME,
)

_RETRY = FieldList(modelled="affinity expression limit retryPolicy", irrelevant="backoff")

_CALL = (
    "arguments hooks inline name onExit template templateRef when withItems withParam withSequence"
)
"""Fields of what runs a template: a task of a DAG, or a step."""

_TASK = FieldList(modelled=f"{_CALL} dependencies depends", irrelevant="continueOn")

_ARGUMENTS = FieldList(
    modelled="artifacts",
    types={
        "parameters": FieldList(
            modelled="default enum name value valueFrom", irrelevant="description globalName"
        )
    },
)

# Argo reads what is below `steps` without regard to case, so a name that is nearly a field counts.
_STEP = FieldList(modelled=_CALL, irrelevant="continueOn").with_types(
    arguments=_ARGUMENTS,
    hooks=MappingOf(
        FieldList(modelled="expression template templateRef", types={"arguments": _ARGUMENTS})
    ),
    templateRef=FieldList(modelled="clusterScope name template"),
    withSequence=FieldList(modelled="count end format start"),
)

TEMPLATE = FieldList(
    modelled="activeDeadlineSeconds daemon data http inputs memoize metadata name nodeSelector"
    " outputs parallelism pendingTimeout plugin podResources resource resourceClaims suspend"
    " synchronization timeout tolerations",
    irrelevant="annotations archiveLocation automountServiceAccountToken executor failFast"
    " hostAliases metrics securityContext serviceAccountName",
    named={
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
WORKFLOW_SPEC = FieldList(
    # Readers look at those of the templates that they read.
    modelled="activeDeadlineSeconds arguments entrypoint hooks nodeSelector onExit"
    " parallelism podMetadata podResources resourceClaims synchronization templates"
    " tolerations volumeClaimTemplates workflowTemplateRef",
    irrelevant="archiveLogs artifactGC artifactRepositoryRef automountServiceAccountToken dnsConfig"
    " dnsPolicy executor executorPlugins hostAliases imagePullSecrets metrics podDisruptionBudget"
    " podGC priority securityContext serviceAccountName ttlStrategy volumeClaimGC workflowMetadata",
    named={
        "hostNetwork": HOST_NETWORK,
        "podPriorityClassName": PRIORITY_CLASS,
        "schedulerName": SCHEDULER_NAME,
        "shutdown": Effect("Argo ends the run at once"),
        "suspend": Effect("Argo starts nothing until somebody resumes the run"),
    },
    types={
        "affinity": AFFINITY,
        "podSpecPatch": POD_SPEC,
        "retryStrategy": _RETRY,
        "templateDefaults": TEMPLATE,
        "volumes": VOLUME,
    },
)
