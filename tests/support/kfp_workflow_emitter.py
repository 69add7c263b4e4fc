"""Package -> Argo Workflow: a stand-in for KFP's compiler, which is written in Go.

Written after the documented shape of the Workflows that KFP 2.17 makes, for tests only; container
templates carry no more than readers need. It is itself checked against all real Workflows at hand
(`test_workflow_emitter.py`), so that Workflows of generated pipelines can be trusted.
"""

import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

EXIT_STRATEGY = "ALL_UPSTREAM_TASKS_COMPLETED"
RETRY_PARAMETERS = (
    "retry-max-count",
    "retry-backoff-duration",
    "retry-backoff-factor",
    "retry-backoff-max-duration",
)
STUBS = ("argostub/createpvc", "argostub/deletepvc")

Mapping = dict[str, Any]


def emit_workflow(pipeline: Mapping, platform: Mapping | None = None) -> Mapping:
    """The Workflow that KFP would make of a package, without arguments given."""
    return WorkflowEmitter(pipeline, platform or {}).workflow()


def to_json(value: Any) -> str:
    """JSON as KFP writes it into arguments."""
    return json.dumps(_as_protobuf(value), sort_keys=True, separators=(",", ":"))


def _as_protobuf(value: Any) -> Any:
    """Whole numbers lose their decimal point on the way through protocol buffers."""
    if isinstance(value, dict):
        return {key: _as_protobuf(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_as_protobuf(entry) for entry in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def parameters(**values: str | None) -> Mapping:
    """Arguments of a task; those that are None are left out."""
    entries = [
        {"name": name.replace("_", "-"), "value": value}
        for name, value in values.items()
        if value is not None
    ]
    return {"parameters": entries}


def depends_on(names: list[str]) -> Mapping:
    """The field of a task that waits for others."""
    return {"depends": " && ".join(f"{name}.Succeeded" for name in names)} if names else {}


def output_of(driver: str, name: str) -> str:
    """A reference to what a driver answers."""
    return f"{{{{tasks.{driver}.outputs.parameters.{name}}}}}"


def _of_workflow(argument: str) -> str:
    return f"{{{{workflow.parameters.{argument}}}}}"


class WorkflowEmitter:
    """Walks through a package and emits the Workflow of KFP 2.17; KFP 3's is a variation of it."""

    def __init__(self, pipeline: Mapping, platform: Mapping) -> None:
        """Take the documents of a package; they are not changed."""
        self._pipeline = copy.deepcopy(pipeline)
        self._components = self._pipeline.get("components", {})
        self._executors = self._pipeline.get("deploymentSpec", {}).get("executors", {})
        self._kubernetes = platform.get("platforms", {}).get("kubernetes", {})
        self._arguments: dict[str, str] = {}
        self._templates: dict[str, Mapping] = {}

    def workflow(self) -> Mapping:
        """The Workflow, without arguments given."""
        name = self._pipeline["pipelineInfo"]["name"]
        self._dag("root", self._pipeline["root"])
        self._entrypoint()
        spec: Mapping = {
            "entrypoint": "entrypoint",
            "arguments": {
                "parameters": [
                    {"name": key, "value": text} for key, text in self._arguments.items()
                ]
            },
            "templates": [{"name": key, **body} for key, body in self._templates.items()],
        }
        workspace = self._kubernetes.get("pipelineConfig", {}).get("workspace")
        if workspace:
            claim: Mapping = {"metadata": {"name": "kfp-workspace"}}
            claim["spec"] = {
                **workspace.get("kubernetes", {}).get("pvcSpecPatch", {}),
                "resources": {"requests": {"storage": workspace["size"]}},
            }
            spec["volumeClaimTemplates"] = [claim]
        return {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"generateName": f"{name}-"},
            "spec": spec,
        }

    def _runtime_config(self) -> str:
        definitions = self._pipeline["root"].get("inputDefinitions", {}).get("parameters", {})
        values = {}
        for name, definition in definitions.items():
            if "defaultValue" in definition:
                values[name] = definition["defaultValue"]
            elif definition.get("isOptional"):
                values[name] = None
        return to_json({"parameterValues": values} if values else {})

    def _entrypoint(self) -> None:
        driver = {
            "name": "root-driver",
            "template": "system-dag-driver",
            "arguments": parameters(
                component="{{workflow.parameters.components-root}}",
                runtime_config=self._runtime_config(),
                driver_type="ROOT_DAG",
            ),
        }
        root = {"name": "root", "template": "root", **depends_on(["root-driver"])}
        self._templates["entrypoint"] = {"dag": {"tasks": [driver, root]}}
        arguments = ["--pipeline_name", self._pipeline["pipelineInfo"]["name"]]
        for template in ("system-dag-driver", "system-container-driver"):
            self._templates[template] = {"container": {"args": arguments}}

    def _dag(self, name: str, component: Mapping) -> None:
        if name in self._templates:
            return
        tasks: dict[str, Mapping] = component["dag"]["tasks"]
        for task in tasks.values():
            _add_implicit_dependencies(task)
        self._save(f"components-{name}", component)
        hooks: dict[str, str] = {}
        exits = [key for key in sorted(tasks) if _is_exit(tasks[key])]
        for key in exits:
            template = f"exit-hook-{name}-{key}"
            self._templates[template] = self._of_tasks(self._task(key, tasks[key]))
            hooks.update(dict.fromkeys(tasks[key].get("dependentTasks", []), template))
        emitted: list[Mapping] = []
        for key in sorted(tasks):
            if key not in exits:
                emitted.extend(self._task(key, tasks[key], hook=hooks.get(key)))
        self._templates[name] = self._of_tasks(emitted)

    def _of_tasks(self, tasks: list[Mapping]) -> Mapping:
        """Return the template of a DAG."""
        return {"dag": {"tasks": tasks}}

    def _with_hook(self, task: Mapping, template: str | None) -> Mapping:
        return task if template is None else {**task, "hooks": {"exit": {"template": template}}}

    def _task(
        self, name: str, task: Mapping, *, hook: str | None = None, loop: str | None = None
    ) -> list[Mapping]:
        iterated = task.get("parameterIterator") is not None
        if iterated and loop is None:
            return [self._loop(name, task)]
        reference = task["componentRef"]["name"]
        component = self._components[reference]
        free = loop is not None or _is_exit(task)
        depends = {} if free else depends_on(task.get("dependentTasks", []))
        if "dag" in component:
            return self._dag_task(name, task, depends, hook, loop)
        executor = self._executors[component["executorLabel"]]
        if "importer" in executor:
            return [self._importer(name, task, executor["importer"])]
        return self._container(name, task, executor["container"], depends, hook, loop)

    def _dag_task(
        self, name: str, task: Mapping, depends: Mapping, hook: str | None, loop: str | None
    ) -> list[Mapping]:
        reference = task["componentRef"]["name"]
        self._dag(reference, self._components[reference])
        driver = self._driver(f"{name}-driver", "dag", self._driver_arguments(name, task, loop))
        dag = {
            "name": name,
            "template": reference,
            **self._dag_fields(name),
            **depends_on([f"{name}-driver"]),
        }
        if task.get("triggerPolicy", {}).get("condition"):
            dag["when"] = f"{output_of(f'{name}-driver', 'condition')} != false"
        return [driver | depends, self._with_hook(dag, hook)]

    def _driver(self, name: str, kind: str, arguments: Mapping) -> Mapping:
        return {"name": name, "template": f"system-{kind}-driver", "arguments": arguments}

    def _loop(self, name: str, task: Mapping) -> Mapping:
        reference = task["componentRef"]["name"]
        arguments = self._driver_arguments(name, task, None)
        iterations = {
            "name": "iteration-iterations",
            **self._iteration_fields(name, task),
            "withSequence": {"count": output_of("iteration-driver", "iteration-count")},
            **depends_on(["iteration-driver"]),
        }
        driver = self._driver("iteration-driver", "dag", arguments)
        template = self._of_tasks([driver, iterations])
        limit = task.get("iteratorPolicy", {}).get("parallelismLimit", 0)
        if limit:
            template["parallelism"] = limit
        self._templates[f"{reference}-{name}-iterator"] = template
        return {
            "name": name,
            "template": f"{reference}-{name}-iterator",
            **self._loop_fields(),
            **depends_on(task.get("dependentTasks", [])),
        }

    def _importer(self, name: str, task: Mapping, importer: Mapping) -> Mapping:
        reference = task["componentRef"]["name"]
        self._save(f"components-{reference}", self._components[reference])
        self._save(f"implementations-{reference}", importer)
        suffix = "-workspace" if importer.get("downloadToWorkspace") else ""
        return {
            "name": name,
            "template": f"system-importer{suffix}",
            "arguments": parameters(
                task=to_json(task),
                component=_of_workflow(f"components-{reference}"),
                importer=_of_workflow(f"implementations-{reference}"),
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
        component = self._components[reference]
        key = self._component_key(reference)
        self._save(f"components-{key}", component)
        self._save(f"implementations-{key}", container)
        config = self._config(component["executorLabel"])
        if config:
            self._save(f"kubernetes-{reference}", config)
        stub = container["image"] in STUBS
        arguments = self._driver_arguments(
            name,
            task,
            loop,
            container=_of_workflow(f"implementations-{key}"),
            kubernetes_config=_of_workflow(f"kubernetes-{reference}") if config else None,
        )
        driver = self._driver(name if stub else f"{name}-driver", "container", arguments) | depends
        if stub:
            return [driver]
        handed = [*self._executor_arguments(name), *retries(task), *pod_metadata(config)]
        executor = {
            "name": name,
            "template": self._executor_template(task, config),
            "arguments": {"parameters": handed},
            **depends_on([f"{name}-driver"]),
        }
        return [driver, self._with_hook(executor, hook)]

    # What other versions do otherwise.

    def _driver_arguments(
        self, name: str, task: Mapping, loop: str | None, **more: str | None
    ) -> Mapping:
        key = self._component_key(task["componentRef"]["name"])
        return parameters(
            component=_of_workflow(f"components-{key}"),
            task=to_json(task),
            task_name=loop or name,
            iteration_index="{{inputs.parameters.iteration-index}}" if loop else None,
            **more,
        )

    def _dag_fields(self, name: str) -> Mapping:
        return {}

    def _loop_fields(self) -> Mapping:
        return {}

    def _iteration_fields(self, name: str, task: Mapping) -> Mapping:
        template = f"{task['componentRef']['name']}-iteration"
        self._templates[template] = {
            "dag": {"tasks": self._task("iteration-item", task, loop=name)}
        }
        return {"template": template, "arguments": parameters(iteration_index="{{item}}")}

    def _executor_arguments(self, name: str) -> list[Mapping]:
        return []

    def _executor_template(self, task: Mapping, config: Mapping) -> str:
        return _executor_template(task, config)

    def _config(self, executor: str) -> Mapping:
        executors = self._kubernetes.get("deploymentSpec", {}).get("executors", {})
        config: Mapping = executors.get(executor, {})
        return config

    def _component_key(self, reference: str) -> str:
        label = self._components[reference].get("executorLabel")
        container = self._executors.get(label, {}).get("container")
        if container is None:
            return reference
        return hashlib.sha256(to_json(container).encode()).hexdigest()

    def _save(self, name: str, value: Mapping) -> None:
        self._arguments.setdefault(name, to_json(value))


def _is_exit(task: Mapping) -> bool:
    return bool(task.get("triggerPolicy", {}).get("strategy") == EXIT_STRATEGY)


def _add_implicit_dependencies(task: Mapping) -> None:
    names = list(task.get("dependentTasks", []))
    inputs = task.get("inputs", {})
    for kind, key in (("parameters", "taskOutputParameter"), ("artifacts", "taskOutputArtifact")):
        for source in inputs.get(kind, {}).values():
            if key in source and source[key]["producerTask"] not in names:
                names.append(source[key]["producerTask"])
    if names:
        task["dependentTasks"] = names


def _executor_template(task: Mapping, config: Mapping) -> str:
    """The name of an executor's template, which says what its pods have."""
    retry = "retry-" if task.get("retryPolicy") is not None else ""
    metadata = config.get("podMetadata")
    if metadata is None:
        return f"{retry}system-container-executor"
    counts = f"{len(metadata.get('annotations', {}))}-{len(metadata.get('labels', {}))}"
    return f"metadata-{counts}-{retry}system-container-executor"


def retries(task: Mapping) -> Iterator[Mapping]:
    """The arguments that say how often and when a step is tried again."""
    policy = task.get("retryPolicy")
    if policy is None:
        return
    values = (
        policy.get("maxRetryCount", 0),
        policy.get("backoffDuration", "0").removesuffix("s"),
        f"{policy.get('backoffFactor', 0):g}",
        policy.get("backoffMaxDuration", "0").removesuffix("s"),
    )
    for name, value in zip(RETRY_PARAMETERS, values, strict=True):
        yield {"name": name, "value": str(value)}


def pod_metadata(config: Mapping) -> list[Mapping]:
    """The arguments that hand labels and annotations of a step to its executor."""
    arguments: list[Mapping] = []
    metadata = config.get("podMetadata", {})
    for kind in ("annotation", "label"):
        entries: dict[str, str] = metadata.get(f"{kind}s", {})
        for number, key in enumerate(sorted(entries), 1):
            suffix = f"-{number}" if len(entries) > 1 else ""
            arguments.append({"name": f"pod-metadata-{kind}-key{suffix}", "value": key})
            arguments.append({"name": f"pod-metadata-{kind}-val{suffix}", "value": entries[key]})
    return arguments


def structure(workflow: Mapping, *, rename: Callable[[str], str] = str) -> Mapping:
    """Return the parts of a Workflow that decide its run graph, in a comparable form.

    Args:
        workflow: the Workflow.
        rename: function applied to argument names, which hold hashes of container specs.
    """
    spec = workflow["spec"]
    templates = {}
    for template in spec["templates"]:
        tasks = template.get("dag", {}).get("tasks")
        if tasks is not None and not template["name"].endswith("system-container-executor"):
            templates[template["name"]] = {
                "parallelism": template.get("parallelism"),
                "tasks": {task["name"]: _task_structure(task, rename) for task in tasks},
            }
    arguments = {
        rename(entry["name"]): _as_protobuf(json.loads(entry["value"]))
        for entry in spec["arguments"]["parameters"]
    }
    claims = [claim["spec"] for claim in spec.get("volumeClaimTemplates", [])]
    return {"templates": templates, "arguments": arguments, "claims": claims}


_RELEVANT = (
    "component",
    "task",
    "container",
    "importer",
    "kubernetes-config",
    "task-name",
    "runtime-config",
    "iteration-index",
)


def _task_structure(task: Mapping, rename: Callable[[str], str]) -> Mapping:
    arguments = {}
    for entry in task.get("arguments", {}).get("parameters", []):
        name, value = entry["name"], entry.get("value")
        if name in ("task", "runtime-config"):
            arguments[name] = _sorted_dependencies(_as_protobuf(json.loads(value)))
        elif name in _RELEVANT or name.startswith("pod-metadata-"):
            arguments[name] = rename(value)
    return {
        "template": task["template"],
        "depends": sorted(task.get("depends", "").split(" && ")),
        "when": bool(task.get("when")),
        "hook": task.get("hooks", {}).get("exit", {}).get("template"),
        "sequence": "withSequence" in task,
        "arguments": arguments,
    }


def _sorted_dependencies(task: Any) -> Any:
    if isinstance(task, dict) and "dependentTasks" in task:
        return {**task, "dependentTasks": sorted(task["dependentTasks"])}
    return task
