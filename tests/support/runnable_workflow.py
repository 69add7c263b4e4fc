"""Package -> Workflow that Argo can execute, for pipelines without loops, conditions or nesting.

What `kfp_workflow_emitter` leaves out because readers need none of it: what the pods are made of.
Written after the Workflows of KFP 2.17, and checked by the pods that a recorded run really had.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.support.kfp_workflow_emitter import RETRY_PARAMETERS, emit_workflow

Json = dict[str, Any]

RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
NOT_ROOT = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
RUNTIME_ROLE = "pipelines.kubeflow.org/runtime-role"
COMPONENT_MARK = "pipelines.kubeflow.org/v2_component"
_EXECUTOR = "system-container-executor"


def read_package(path: Path) -> Json:
    """The Workflow of a compiled package, one or two documents."""
    documents = [each for each in yaml.load_all(path.read_text("utf-8"), yaml.CSafeLoader) if each]
    return runnable_workflow(*documents)


def runnable_workflow(pipeline: Json, platform: Json | None = None) -> Json:
    """The Workflow as KFP's API server submits it, for the arguments' defaults.

    Args:
        pipeline: the package's pipeline.
        platform: second document of the package.

    Raises:
        ValueError: the pipeline has more than plain steps.
    """
    workflow = emit_workflow(pipeline, platform)
    spec = workflow["spec"]
    given = {template["name"]: template for template in spec["templates"]}
    if set(given) - {"root", "entrypoint", "system-dag-driver", "system-container-driver"}:
        raise ValueError(f"only plain steps can be executed, not {', '.join(sorted(given))}")
    name = pipeline["pipelineInfo"]["name"]
    tasks = given["root"]["dag"]["tasks"]
    for task in tasks:
        task["arguments"]["parameters"] += list(_handed_down(task))
    (driver, root) = given["entrypoint"]["dag"]["tasks"]
    execution = "{{tasks.root-driver.outputs.parameters.execution-id}}"
    root["arguments"] = {"parameters": [{"name": "parent-dag-id", "value": execution}]}
    executors = sorted({task["template"] for task in tasks if task["template"].endswith(_EXECUTOR)})
    spec["templates"] = [
        {"name": "entrypoint", "dag": {"tasks": [driver, root]}},
        {"name": "root", "inputs": inputs_of("parent-dag-id"), "dag": {"tasks": tasks}},
        _dag_driver(name),
        _container_driver(name),
        *(each for template in executors for each in executor_templates(template)),
    ]
    spec["podMetadata"] = {
        "annotations": {COMPONENT_MARK: "true"},
        "labels": {COMPONENT_MARK: "true"},
    }
    spec["securityContext"] = NOT_ROOT
    spec["serviceAccountName"] = "pipeline-runner"
    return workflow


def _handed_down(task: Json) -> Iterator[Json]:
    """Arguments that only the execution needs."""
    if task["template"] == "system-container-driver":
        yield {"name": "parent-dag-id", "value": "{{inputs.parameters.parent-dag-id}}"}
        return
    for output in ("pod-spec-patch", "cached-decision"):
        value = f"{{{{tasks.{task['name']}-driver.outputs.parameters.{output}}}}}"
        yield {"name": output, "value": value}


def inputs_of(*names: str, **defaults: str) -> Json:
    optional = [
        {"name": name.replace("_", "-"), "default": value} for name, value in defaults.items()
    ]
    return {"parameters": [*({"name": name} for name in names), *optional]}


def outputs_of(**defaults: str | None) -> Json:
    parameters = []
    for key, default in defaults.items():
        name = key.replace("_", "-")
        source = {"path": f"/tmp/outputs/{name}"}
        parameters.append(
            {
                "name": name,
                "valueFrom": source if default is None else source | {"default": default},
            }
        )
    return {"parameters": parameters}


def driver_template(name: str, arguments: dict[str, str], inputs: Json, outputs: Json) -> Json:
    return {
        "name": name,
        "inputs": inputs,
        "outputs": outputs,
        "metadata": {"annotations": {RUNTIME_ROLE: "driver"}},
        "securityContext": NOT_ROOT,
        "container": {
            "name": "",
            "image": "kfp-driver:2.17.0",
            "command": ["driver"],
            "args": [text for key, value in arguments.items() for text in (f"--{key}", value)],
            "resources": {
                "limits": {"cpu": "500m", "memory": "512Mi"},
                "requests": {"cpu": "100m", "memory": "64Mi"},
            },
            "securityContext": RESTRICTED | {"runAsNonRoot": True},
        },
    }


def _common_arguments(pipeline: str) -> dict[str, str]:
    return {
        "pipeline_name": pipeline,
        "run_id": "{{workflow.uid}}",
        "run_name": "{{workflow.name}}",
        "dag_execution_id": "{{inputs.parameters.parent-dag-id}}",
        "component": "{{inputs.parameters.component}}",
        "task": "{{inputs.parameters.task}}",
        "task_name": "{{inputs.parameters.task-name}}",
        "iteration_index": "{{inputs.parameters.iteration-index}}",
        "condition_path": "{{outputs.parameters.condition.path}}",
    }


def _dag_driver(pipeline: str) -> Json:
    arguments = {
        "type": "{{inputs.parameters.driver-type}}",
        **_common_arguments(pipeline),
        "runtime_config": "{{inputs.parameters.runtime-config}}",
        "execution_id_path": "{{outputs.parameters.execution-id.path}}",
        "iteration_count_path": "{{outputs.parameters.iteration-count.path}}",
    }
    inputs = inputs_of(
        "component",
        runtime_config="",
        task="",
        task_name="",
        parent_dag_id="0",
        iteration_index="-1",
        driver_type="DAG",
    )
    outputs = outputs_of(execution_id=None, iteration_count="0", condition="true")
    return driver_template("system-dag-driver", arguments, inputs, outputs)


def _container_driver(pipeline: str) -> Json:
    arguments = {
        "type": "CONTAINER",
        **_common_arguments(pipeline),
        "container": "{{inputs.parameters.container}}",
        "cached_decision_path": "{{outputs.parameters.cached-decision.path}}",
        "pod_spec_patch_path": "{{outputs.parameters.pod-spec-patch.path}}",
        "kubernetes_config": "{{inputs.parameters.kubernetes-config}}",
    }
    names = ("component", "task", "container", "task-name", "parent-dag-id")
    inputs = inputs_of(*names, iteration_index="-1", kubernetes_config="")
    outputs = outputs_of(pod_spec_patch="", cached_decision="false", condition="true")
    return driver_template("system-container-driver", arguments, inputs, outputs)


def metadata_parameters(template: str) -> dict[str, list[tuple[str, str]]]:
    """Parameters that hold the key and the value of each annotation and label.

    `metadata-1-3-...`: one annotation, whose names have no number, and three labels.
    """
    if not template.startswith("metadata-"):
        return {}
    counts = zip(("annotation", "label"), map(int, template.split("-")[1:3]), strict=True)
    return {
        f"{kind}s": [
            (f"pod-metadata-{kind}-key{suffix}", f"pod-metadata-{kind}-val{suffix}")
            for suffix in ([""] if count == 1 else [f"-{each}" for each in range(1, count + 1)])
        ]
        for kind, count in counts
        if count
    }


def input_reference(name: str) -> str:
    return f"{{{{inputs.parameters.{name}}}}}"


def executor_templates(name: str) -> Iterator[Json]:
    """The template of an executor, which may be skipped, and that of its pod.

    Args:
        name: name of the first, which says what its pods have: `metadata-1-2-retry-...`.
    """
    metadata = metadata_parameters(name)
    marks = [each for pairs in metadata.values() for pair in pairs for each in pair]
    retries = RETRY_PARAMETERS if "retry-" in name else ()
    names = ("pod-spec-patch", *retries, *marks)
    implementation = name.replace("-executor", "-impl")
    call = {
        "name": "executor",
        "template": implementation,
        "arguments": {
            "parameters": [{"name": each, "value": input_reference(each)} for each in names]
        },
        "when": "{{inputs.parameters.cached-decision}} != true",
    }
    inputs = inputs_of("pod-spec-patch", *marks, cached_decision="false", iteration_index="-1")
    inputs["parameters"] += [{"name": each, "default": "0"} for each in retries]
    yield {"name": name, "inputs": inputs, "dag": {"tasks": [call]}}
    written = {
        kind: {input_reference(key): input_reference(value) for key, value in pairs}
        for kind, pairs in metadata.items()
    }
    template: Json = {
        "name": implementation,
        "inputs": inputs_of(*names),
        "podSpecPatch": "{{inputs.parameters.pod-spec-patch}}",
        "metadata": {
            "annotations": {RUNTIME_ROLE: "launcher", **written.get("annotations", {})},
            "labels": written.get("labels", {}),
        },
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "volumes": [{"name": "kfp-launcher", "emptyDir": {}}],
        "initContainers": [launcher_container()],
        "container": {
            "name": "",
            "image": "gcr.io/ml-pipeline/should-be-overridden-during-runtime",
            "command": ["should-be-overridden-during-runtime"],
            "resources": {},
            "securityContext": RESTRICTED,
            "volumeMounts": [{"name": "kfp-launcher", "mountPath": "/kfp-launcher"}],
        },
    }
    if retries:
        template["retryStrategy"] = _retry_strategy()
    yield template


def _retry_strategy() -> Json:
    limit, duration, factor, longest = map(input_reference, RETRY_PARAMETERS)
    backoff = {"duration": duration, "factor": factor, "maxDuration": longest}
    return {"limit": limit, "backoff": backoff}


def launcher_container() -> Json:
    return {
        "name": "kfp-launcher",
        "image": "kfp-launcher:2.17.0",
        "command": ["launcher-v2"],
        "args": ["--copy", "/kfp-launcher/launch"],
        "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m"}},
        "securityContext": RESTRICTED | {"runAsNonRoot": True},
        "volumeMounts": [{"name": "kfp-launcher", "mountPath": "/kfp-launcher"}],
    }
