"""Package -> Workflow of KFP 3: a stand-in for the compiler that KFP has not released yet.

It walks through a package as that of KFP 2.17 does, but components and containers stay in KFP's
API: the Workflow has names, dependencies and Kubernetes' settings. All of it can be executed.
It is checked against the real Workflows at hand (`test_kfp3_workflow_emitter.py`).
"""

from tests.support import kfp3_templates
from tests.support.kfp_workflow_emitter import (
    Mapping,
    WorkflowEmitter,
    depends_on,
    output_of,
    parameters,
)
from tests.support.runnable_workflow import COMPONENT_MARK, NOT_ROOT, input_reference

_PARENT = input_reference("parent-dag-task-id")
_INDEX = input_reference("iteration-index")


def emit_kfp3_workflow(pipeline: Mapping, platform: Mapping | None = None) -> Mapping:
    """The Workflow that KFP 3 makes of a package, for the defaults of its parameters."""
    return _Kfp3Emitter(pipeline, platform or {}).workflow()


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
                parent_dag_task_id=output_of("root-driver", "parent-dag-task-id-path"), condition=""
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

    def _driver_arguments(
        self, name: str, task: Mapping, loop: str | None, **more: str | None
    ) -> Mapping:
        return parameters(
            task_name=name,
            parent_dag_task_id=_PARENT,
            iteration_index=self._index,
            kubernetes_config=more.get("kubernetes_config"),
        )

    def _dag_fields(self, name: str) -> Mapping:
        arguments = parameters(
            parent_dag_task_id=output_of(f"{name}-driver", "parent-dag-task-id-path"),
            condition=output_of(f"{name}-driver", "condition"),
            iteration_index=self._index,
        )
        return {"arguments": arguments}

    def _loop_fields(self) -> Mapping:
        return {"arguments": parameters(parent_dag_task_id=_PARENT, iteration_index=self._index)}

    def _iteration_fields(self, name: str, task: Mapping) -> Mapping:
        """The body of a loop is the component itself, and no iteration has a driver."""
        reference = task["componentRef"]["name"]
        before, self._in_loop = self._in_loop, True
        self._dag(reference, self._components[reference])
        self._in_loop = before
        arguments = parameters(
            parent_dag_task_id=output_of("iteration-driver", "parent-dag-task-id-path"),
            iteration_index="{{item}}",
        )
        return {"template": reference, "arguments": arguments}

    def _importer(self, name: str, task: Mapping, importer: Mapping) -> Mapping:
        emitted = super()._importer(name, task, importer)
        given = {each["name"]: each["value"] for each in emitted["arguments"]["parameters"]}
        emitted["arguments"] = parameters(
            task_name=name,
            importer=given["importer"],
            parent_dag_task_id=_PARENT,
            iteration_index=self._index,
        )
        pipeline = self._pipeline["pipelineInfo"]["name"]
        self._add(kfp3_templates.importer(emitted["template"], pipeline))
        return emitted

    def _executor_arguments(self, name: str) -> list[Mapping]:
        patch, decision = "pod-spec-patch", "cached-decision"
        values = parameters(
            pod_spec_patch=output_of(f"{name}-driver", patch),
            cached_decision=output_of(f"{name}-driver", decision),
            iteration_index=self._index,
        )
        values["parameters"][1]["default"] = "false"
        arguments: list[Mapping] = values["parameters"]
        return arguments

    def _executor_template(self, task: Mapping, config: Mapping) -> str:
        name = super()._executor_template(task, config)
        self._add(*kfp3_templates.executor(name))
        return name

    def _save(self, name: str, value: Mapping) -> None:
        """Save no components and containers: KFP 3 keeps them to itself."""
        is_importer = name.startswith("implementations-comp-")
        if is_importer or name.startswith("kubernetes-"):
            super()._save(name, value)
