"""Fields of pipeline packages: KFP's `pipeline_spec.proto` and `kubernetes_executor_config.proto`.

They are those of KFP 2.17 and of what is to become KFP 3, in the form that packages have.

A module of its own because its types are KFP's alone.
"""

from kfp_placement_engine.readers.unused.field_lists import Effect, FieldList, MappingOf
from kfp_placement_engine.readers.unused.pod_fields import (
    EPHEMERAL,
    IMAGE_PULL_POLICY,
)

_CONTAINER = FieldList(modelled="args command image resources", irrelevant="env lifecycle")

_EXECUTOR = FieldList(
    modelled="importer",
    named={
        "customJob": Effect("it runs elsewhere, and the plan gives it a pod"),
        "resolver": Effect("KFP has no pod for it, and the plan gives it one"),
    },
    types={"container": _CONTAINER},
)

_TASK = FieldList(
    modelled="cachingOptions componentRef dependentTasks inputs iteratorPolicy parameterIterator"
    " retryPolicy taskInfo triggerPolicy",
    named={"artifactIterator": Effect("the step runs once for each artifact")},
)

_COMPONENT = FieldList(
    modelled="executorLabel inputDefinitions outputDefinitions taskConfigPassthroughs",
    irrelevant="singlePlatformSpecs",
    types={"dag": FieldList(modelled="outputs", types={"tasks": MappingOf(_TASK)})},
)

PIPELINE_SPEC = FieldList(
    modelled="pipelineInfo schemaVersion",
    irrelevant="defaultPipelineRoot sdkVersion",
    types={
        "components": MappingOf(_COMPONENT),
        "deploymentSpec": FieldList(types={"executors": MappingOf(_EXECUTOR)}),
        "root": _COMPONENT,
    },
)

_EXECUTOR_CONFIG = FieldList(
    modelled="activeDeadlineSeconds initContainers nodeAffinity nodeSelector podMetadata pvcMount"
    " tolerations",
    irrelevant="configMapAsEnv configMapAsVolume emptyDirMounts enabledSharedMemory fieldPathAsEnv"
    " imagePullSecret secretAsEnv secretAsVolume securityContext",
    named={
        "genericEphemeralVolume": EPHEMERAL,
        "imagePullPolicy": IMAGE_PULL_POLICY,
        "podAffinity": Effect("the pods of the step go near other pods, or keep away from them"),
    },
)

_PLATFORM = FieldList(
    irrelevant="config platform",
    types={
        "deploymentSpec": FieldList(types={"executors": MappingOf(_EXECUTOR_CONFIG)}),
        "pipelineConfig": FieldList(
            modelled="activeDeadlineSeconds workspace",
            irrelevant="resourceTtlOnCompletion resourceTtlOnFailure resourceTtlOnSuccess",
        ),
    },
)

PLATFORM_SPEC = FieldList(types={"platforms": MappingOf(_PLATFORM)})
