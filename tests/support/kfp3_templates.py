"""Templates of KFP 3's Workflows that make pods, and the DAG around each executor.

Left out: variables, and volumes but the launcher's, which nothing here reads.
"""

from collections.abc import Iterator
from typing import Any

from tests.support.runnable_workflow import (
    RUNTIME_ROLE,
    driver_template,
    executor_templates,
    inputs_of,
    outputs_of,
)

Json = dict[str, Any]

_POD_ROLE = "pipelines.kubeflow.org/pod-role"
_TEMPLATE_NAME = "pipelines.kubeflow.org/template-name"


def dag_driver(pipeline: str) -> Json:
    """The template of drivers of groups and of the whole run."""
    arguments = {
        "type": "{{inputs.parameters.driver-type}}",
        **_common_arguments(pipeline),
        "runtime_config": "{{inputs.parameters.runtime-config}}",
        "parent_task_id_path": "{{outputs.parameters.parent-dag-task-id-path.path}}",
        "iteration_count_path": "{{outputs.parameters.iteration-count.path}}",
    }
    inputs = inputs_of(
        runtime_config="",
        task_name="",
        parent_dag_task_id="",
        iteration_index="-1",
        driver_type="DAG",
    )
    outputs = outputs_of(parent_dag_task_id_path=None, iteration_count="0", condition="true")
    outputs["parameters"][0]["valueFrom"] = {"path": "/tmp/outputs/task-id"}
    template = driver_template("system-dag-driver", arguments, inputs, outputs)
    return _with_role(template, "dag-driver")


def container_driver(pipeline: str) -> Json:
    """The template of drivers of steps."""
    arguments = {
        "type": "CONTAINER",
        **_common_arguments(pipeline),
        "cached_decision_path": "{{outputs.parameters.cached-decision.path}}",
        "pod_spec_patch_path": "{{outputs.parameters.pod-spec-patch.path}}",
        "kubernetes_config": "{{inputs.parameters.kubernetes-config}}",
    }
    inputs = inputs_of(
        "task-name", "parent-dag-task-id", iteration_index="-1", kubernetes_config=""
    )
    outputs = outputs_of(pod_spec_patch="", cached_decision="false", condition="true")
    outputs["parameters"][1]["default"] = "false"
    template = driver_template("system-container-driver", arguments, inputs, outputs)
    return _with_role(template, "container-driver")


def _common_arguments(pipeline: str) -> dict[str, str]:
    return {
        "pipeline_name": pipeline,
        "run_id": "{{workflow.uid}}",
        "run_name": "{{workflow.name}}",
        "parent_task_id": "{{inputs.parameters.parent-dag-task-id}}",
        "task_name": "{{inputs.parameters.task-name}}",
        "iteration_index": "{{inputs.parameters.iteration-index}}",
        "condition_path": "{{outputs.parameters.condition.path}}",
    }


def _with_role(template: Json, role: str) -> Json:
    metadata = template["metadata"]
    annotations = {**metadata["annotations"], _TEMPLATE_NAME: template["name"]}
    labels = {**metadata.get("labels", {}), _POD_ROLE: role}
    return {**template, "metadata": {"annotations": annotations, "labels": labels}}


def executor(name: str) -> Iterator[Json]:
    """The template of an executor, and that of its pod; see `executor_templates`."""
    around, pod = executor_templates(name)
    yield around
    yield _with_role(pod, "container-executor")


def importer(name: str, pipeline: str) -> Json:
    """The template of importers.

    Args:
        name: `system-importer`, or `system-importer-workspace`.
        pipeline: name of the pipeline.
    """
    arguments = {
        "executor_type": "importer",
        "task_name": "{{inputs.parameters.task-name}}",
        "importer_spec": "{{inputs.parameters.importer}}",
        "pipeline_name": pipeline,
        "run_id": "{{workflow.uid}}",
        "parent_task_id": "{{inputs.parameters.parent-dag-task-id}}",
        "iteration_index": "{{inputs.parameters.iteration-index}}",
    }
    inputs = inputs_of("task-name", "importer", "parent-dag-task-id", iteration_index="-1")
    template = driver_template(name, arguments, inputs, {})
    template["metadata"] = {"annotations": {RUNTIME_ROLE: "launcher"}}
    template["container"] |= {"image": "kfp-launcher:3", "command": ["launcher-v2"]}
    if name.endswith("-workspace"):
        claim = {"claimName": "{{workflow.name}}-kfp-workspace"}
        template["volumes"] = [{"name": "kfp-workspace", "persistentVolumeClaim": claim}]
    return _with_role(template, "importer")
