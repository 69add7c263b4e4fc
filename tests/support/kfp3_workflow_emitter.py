"""Package -> Workflow of KFP 3: a stand-in for the compiler that KFP has not released yet.

It walks through a package as that of KFP 2.17 does, but components and containers stay in KFP's
API: the Workflow has names, dependencies and Kubernetes' settings. All of it can be executed.
It is checked against the real Workflows at hand (`test_kfp3_workflow_emitter.py`).
"""

import contextlib
import re
from collections.abc import Iterator

from tests.support import kfp3_templates
from tests.support.kfp_workflow_emitter import (
    STUBS,
    Mapping,
    WorkflowEmitter,
    depends_on,
    executor_template,
    parameters,
    pod_metadata,
)
from tests.support.runnable_workflow import COMPONENT_MARK, NOT_ROOT, input_reference

_PARENT = input_reference("parent-dag-task-id")
_INDEX = input_reference("iteration-index")


def emit_kfp3_workflow(pipeline: Mapping, platform: Mapping | None = None) -> Mapping:
    """The Workflow that KFP 3 makes of a package, for the defaults of its parameters."""
    return _Kfp3Emitter(pipeline, platform or {}).workflow()


def _output(driver: str, name: str) -> str:
    return f"{{{{tasks.{driver}.outputs.parameters.{name}}}}}"


class _Kfp3Emitter(WorkflowEmitter):
    _in_loop = False

    def workflow(self) -> Mapping:
        workflow = super().workflow()
        workflow["metadata"]["annotations"] = {"workflows.argoproj.io/pod-name-format": "v1"}
        spec = workflow["spec"]
        if not self._arguments:
            spec["arguments"] = {}
        marks = {COMPONENT_MARK: "true"}
        spec["podMetadata"] = {"annotations": marks, "labels": marks}
        spec["securityContext"] = NOT_ROOT
        spec["serviceAccountName"] = "pipeline-runner"
        return workflow

    def _entrypoint(self) -> None:
        name = self._pipeline["pipelineInfo"]["name"]
        driver = {
            "name": "root-driver",
            "template": "system-dag-driver",
            "arguments": parameters(runtime_config=self._runtime_config(), driver_type="ROOT_DAG"),
        }
        root = {
            "name": "root",
            "template": "root",
            "arguments": parameters(
                parent_dag_task_id=_output("root-driver", "parent-dag-task-id-path"), condition=""
            ),
            **depends_on(["root-driver"]),
        }
        self._templates["entrypoint"] = {"dag": {"tasks": [driver, root]}}
        self._add(kfp3_templates.dag_driver(name), kfp3_templates.container_driver(name))

    def _add(self, *templates: Mapping) -> None:
        for template in templates:
            self._templates[template["name"]] = template

    def _of_tasks(self, tasks: list[Mapping]) -> Mapping:
        inputs: list[Mapping] = [{"name": "parent-dag-task-id"}]
        if self._in_loop:
            inputs.append({"name": "iteration-index", "default": "-1"})
        return {"inputs": {"parameters": inputs}, **super()._of_tasks(tasks)}

    def _with_hook(self, task: Mapping, template: str | None) -> Mapping:
        hooked = super()._with_hook(task, template)
        if template is not None:
            hooked["hooks"]["exit"]["arguments"] = parameters(parent_dag_task_id=_PARENT)
        return hooked

    @property
    def _index(self) -> str | None:
        return _INDEX if self._in_loop else None

    def _dag_task(
        self, name: str, task: Mapping, depends: Mapping, hook: str | None, loop: str | None
    ) -> list[Mapping]:
        reference = task["componentRef"]["name"]
        self._dag(reference, self._components[reference])
        driver = self._dag_driver(f"{name}-driver", name)
        dag = {
            "name": name,
            "template": reference,
            "arguments": parameters(
                parent_dag_task_id=_output(f"{name}-driver", "parent-dag-task-id-path"),
                condition=_output(f"{name}-driver", "condition"),
                iteration_index=self._index,
            ),
            **depends_on([f"{name}-driver"]),
        }
        if task.get("triggerPolicy", {}).get("condition"):
            dag["when"] = f"{_output(f'{name}-driver', 'condition')} != false"
        return [driver | depends, self._with_hook(dag, hook)]

    def _dag_driver(self, name: str, task: str) -> Mapping:
        return {
            "name": name,
            "template": "system-dag-driver",
            "arguments": parameters(
                parent_dag_task_id=_PARENT, task_name=task, iteration_index=self._index
            ),
        }

    def _loop(self, name: str, task: Mapping) -> Mapping:
        """The body of a loop is the component itself, and no iteration has a driver."""
        reference = task["componentRef"]["name"]
        with self._inside_loop():
            self._dag(reference, self._components[reference])
        iterations = {
            "name": "iteration-iterations",
            "template": reference,
            "arguments": parameters(
                parent_dag_task_id=_output("iteration-driver", "parent-dag-task-id-path"),
                iteration_index="{{item}}",
            ),
            "withSequence": {"count": _output("iteration-driver", "iteration-count")},
            **depends_on(["iteration-driver"]),
        }
        template = self._of_tasks([self._dag_driver("iteration-driver", name), iterations])
        limit = task.get("iteratorPolicy", {}).get("parallelismLimit", 0)
        if limit:
            template["parallelism"] = limit
        self._templates[f"{reference}-{name}-iterator"] = template
        return {
            "name": name,
            "template": f"{reference}-{name}-iterator",
            "arguments": parameters(parent_dag_task_id=_PARENT, iteration_index=self._index),
            **depends_on(task.get("dependentTasks", [])),
        }

    @contextlib.contextmanager
    def _inside_loop(self) -> Iterator[None]:
        before, self._in_loop = self._in_loop, True
        yield
        self._in_loop = before

    def _importer(self, name: str, task: Mapping, importer: Mapping) -> Mapping:
        reference = task["componentRef"]["name"]
        self._save(f"implementations-{reference}", importer)
        template = "system-importer"
        if importer.get("downloadToWorkspace"):
            template += "-workspace"
        self._add(kfp3_templates.importer(template, self._pipeline["pipelineInfo"]["name"]))
        return {
            "name": name,
            "template": template,
            "arguments": parameters(
                task_name=name,
                importer=f"{{{{workflow.parameters.implementations-{reference}}}}}",
                parent_dag_task_id=_PARENT,
                iteration_index=self._index,
            ),
        }

    def _container(
        self,
        name: str,
        task: Mapping,
        container: Mapping,
        depends: Mapping,
        hook: str | None,
        loop: str | None,
    ) -> list[Mapping]:
        reference = task["componentRef"]["name"]
        config = self._config(self._components[reference]["executorLabel"])
        if config:
            self._save(f"kubernetes-{reference}", config)
        stub = container["image"] in STUBS
        driver = {
            "name": name if stub else f"{name}-driver",
            "template": "system-container-driver",
            "arguments": parameters(
                task_name=name,
                parent_dag_task_id=_PARENT,
                kubernetes_config=(
                    f"{{{{workflow.parameters.kubernetes-{reference}}}}}" if config else None
                ),
                iteration_index=self._index,
            ),
            **depends,
        }
        if stub:
            return [driver]
        template = executor_template(task, config)
        self._add(*kfp3_templates.executor(template))
        values = parameters(
            pod_spec_patch=_output(f"{name}-driver", "pod-spec-patch"),
            cached_decision=_output(f"{name}-driver", "cached-decision"),
            iteration_index=self._index,
        )
        values["parameters"] += [*_retries(task), *pod_metadata(config)]
        values["parameters"][1]["default"] = "false"
        executor = {
            "name": name,
            "template": template,
            "arguments": values,
            **depends_on([f"{name}-driver"]),
        }
        return [driver, self._with_hook(executor, hook)]

    def _save_component(self, name: str, component: Mapping) -> None:
        """Do nothing: KFP 3 keeps components to itself."""


def _retries(task: Mapping) -> Iterator[Mapping]:
    policy = task.get("retryPolicy")
    if policy is None:
        return
    values = (
        policy.get("maxRetryCount", 0),
        re.sub("s$", "", policy.get("backoffDuration", "0")),
        f"{policy.get('backoffFactor', 0):g}",
        re.sub("s$", "", policy.get("backoffMaxDuration", "0")),
    )
    for name, value in zip(kfp3_templates.RETRY_PARAMETERS, values, strict=True):
        yield {"name": name, "value": str(value)}
