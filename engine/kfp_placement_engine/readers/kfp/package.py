"""KFP pipeline packages (IR YAML, both documents) -> task tree."""

from collections.abc import Callable
from typing import Any

from kfp_placement_engine.exceptions import InputError, LimitError
from kfp_placement_engine.model.run_graph import Notice
from kfp_placement_engine.readers.fields import as_mapping, as_name, as_text, as_texts
from kfp_placement_engine.readers.kfp.arguments import missing_notices, pipeline_arguments
from kfp_placement_engine.readers.kfp.leaves import (
    DRIVER_ONLY_IMAGES,
    LeafWithInputs,
    container_leaf,
    importer_leaf,
    input_defaults,
)
from kfp_placement_engine.readers.kfp.tasks import (
    dag_outputs,
    dependencies,
    is_exit_task,
    read_task,
)
from kfp_placement_engine.readers.options import ReadOptions
from kfp_placement_engine.readers.tree.tasks import (
    MAX_TREE_DEPTH,
    WORKSPACE_CLAIM,
    Dag,
    Task,
    TaskTree,
)

SOURCE = "kfp-package"


def is_package(document: dict[str, Any]) -> bool:
    """Whether a document is a pipeline spec."""
    return "root" in document and ("pipelineInfo" in document or "deploymentSpec" in document)


def package_tree(
    pipeline: dict[str, Any], platform: dict[str, Any], name: str, options: ReadOptions
) -> TaskTree:
    """Read a package.

    Args:
        pipeline: the pipeline spec, the package's first document.
        platform: the platform spec, its second document, or {}.
        name: the file's name, for messages.
        options: arguments are taken from here.

    Raises:
        InputError: malformed, or arguments that do not fit.
        LimitError: nested too deep.
    """
    info = as_mapping(pipeline.get("pipelineInfo"), f"{name}: pipelineInfo")
    root = as_mapping(pipeline.get("root"), f"{name}: root")
    if "dag" not in root:
        raise InputError(f"{name}: root: has no dag; is this a component instead of a pipeline?")
    reader = _PackageReader(pipeline, platform, name)
    arguments, missing = pipeline_arguments(root, options.arguments, name)
    dag = reader.dag("root", root)
    return TaskTree(
        name=as_text(info.get("name"), f"{name}: pipelineInfo.name") or name,
        source=SOURCE,
        root=dag,
        arguments=arguments,
        missing_arguments=tuple(missing),
        has_drivers=True,
        run_claims=reader.run_claims(),
        notices=(
            *_version_notices(pipeline, name),
            *missing_notices(missing),
            *reader.notices,
        ),
    )


def _version_notices(pipeline: dict[str, Any], name: str) -> list[Notice]:
    version = as_text(pipeline.get("schemaVersion"), f"{name}: schemaVersion")
    if not version or version.split(".")[0] == "2":
        return []
    message = f"schema version {version:.20} is not 2.x; the package is read as far as it is known"
    return [Notice("unknown-version", message)]


class _PackageReader:
    def __init__(self, pipeline: dict[str, Any], platform: dict[str, Any], name: str) -> None:
        self._name = name
        self._components = as_mapping(pipeline.get("components"), f"{name}: components")
        deployment = as_mapping(pipeline.get("deploymentSpec"), f"{name}: deploymentSpec")
        self._executors = as_mapping(deployment.get("executors"), f"{name}: executors")
        platforms = as_mapping(platform.get("platforms"), f"{name}: platforms")
        self._platform = as_mapping(platforms.get("kubernetes"), f"{name}: platforms.kubernetes")
        configs = as_mapping(self._platform.get("deploymentSpec"), f"{name}: platforms.kubernetes")
        self._configs = as_mapping(configs.get("executors"), f"{name}: platforms.kubernetes")
        self._dags: dict[str, Dag] = {}
        self._open: list[str] = []
        self.notices: list[Notice] = []

    def run_claims(self) -> dict[str, tuple[str, ...]]:
        """The run's workspace, if the package asks for one."""
        place = f"{self._name}: platforms.kubernetes.pipelineConfig"
        config = as_mapping(self._platform.get("pipelineConfig"), place)
        if config.get("workspace") is None:
            return {}
        workspace = as_mapping(config["workspace"], f"{place}.workspace")
        kubernetes = as_mapping(workspace.get("kubernetes"), f"{place}.workspace")
        patch = as_mapping(kubernetes.get("pvcSpecPatch"), f"{place}.workspace")
        modes = as_texts(patch.get("accessModes"), f"{place}.workspace: accessModes")
        return {WORKSPACE_CLAIM: modes}

    def dag(self, name: str, component: dict[str, Any]) -> Dag:
        """The DAG of a component; one object however often it is used."""
        if name in self._dags:
            return self._dags[name]
        if name in self._open:
            raise InputError(f"{self._name}: component {name:.80} contains itself")
        if len(self._open) > MAX_TREE_DEPTH:
            raise LimitError(f"{self._name}: pipelines nested deeper than {MAX_TREE_DEPTH} levels")
        place = f"{self._name}: {name:.80}"
        self._open.append(name)
        body = as_mapping(component.get("dag"), f"{place}: dag")
        specs = {
            task: as_mapping(spec, f"{place}: task {task:.80}")
            for task, spec in as_mapping(body.get("tasks"), f"{place}: tasks").items()
        }
        tasks = self._tasks(specs, place)
        parameters, artifacts = dag_outputs(component, place)
        dag = Dag(tasks, parameters, artifacts, input_defaults(component, place), place)
        self._dags[name] = dag
        self._open.pop()
        return dag

    def _tasks(self, specs: dict[str, dict[str, Any]], place: str) -> dict[str, Task]:
        exits = exit_targets(specs, lambda task: self._can_have_exit(specs[task], place), place)
        tasks = {}
        for name, spec in specs.items():
            where = f"{place}: task {as_name(name, place):.80}"
            if name in exits and not exits[name]:
                self.notices.append(
                    Notice(
                        "exit-task-lost",
                        f"{where}: KFP never runs this exit task: it attaches at most one, and "
                        "none to loops, importers and volume claims",
                    )
                )
                continue
            body, inputs = self._body(spec, where)
            waits = dependencies(spec, where)
            tasks[name] = read_task(
                name,
                spec,
                body,
                where,
                depends_on=() if name in exits else waits,
                exit_of=exits.get(name, ()),
                extra_inputs=inputs,
            )
        return tasks

    def _component(self, spec: dict[str, Any], place: str) -> tuple[str, dict[str, Any]]:
        reference = as_mapping(spec.get("componentRef"), f"{place}: componentRef")
        name = as_name(reference.get("name"), f"{place}: componentRef.name")
        if name not in self._components:
            raise InputError(f"{place}: component {name!r:.80} does not exist")
        return name, as_mapping(self._components[name], f"{self._name}: {name:.80}")

    def _body(self, spec: dict[str, Any], place: str) -> tuple[Any, dict[str, Any]]:
        name, component = self._component(spec, place)
        if "dag" in component:
            return self.dag(name, component), {}
        found = self._leaf(component, spec, place)
        return found.leaf, dict(found.inputs)

    def _executor(self, component: dict[str, Any], place: str) -> tuple[str, dict[str, Any]]:
        label = as_text(component.get("executorLabel"), f"{place}: executorLabel")
        if not label:
            raise InputError(
                f"{place}: its component has neither dag nor executorLabel, so KFP cannot run it; "
                "compile the pipeline again, and give groups of nested pipelines other names"
            )
        if label not in self._executors:
            raise InputError(f"{place}: executor {label!r:.80} does not exist")
        return label, as_mapping(self._executors[label], f"{self._name}: executor {label:.80}")

    def _leaf(self, component: dict[str, Any], spec: dict[str, Any], place: str) -> LeafWithInputs:
        label, executor = self._executor(component, place)
        if executor.get("importer") is not None:
            importer = as_mapping(executor["importer"], f"{place}: importer")
            return LeafWithInputs(importer_leaf(importer, component, place), {})
        if executor.get("container") is None:
            kinds = ", ".join(executor) or "nothing"
            raise InputError(f"{place}: runs {kinds:.80}, which KFP on Kubernetes cannot run")
        container = as_mapping(executor["container"], f"{place}: container")
        config = as_mapping(self._configs.get(label), f"{self._name}: platform of {label:.80}")
        return container_leaf(container, config, component, spec, place)

    def _can_have_exit(self, spec: dict[str, Any], place: str) -> bool:
        """KFP's compiler attaches exit tasks to containers and DAGs only."""
        if spec.get("parameterIterator") is not None or spec.get("artifactIterator") is not None:
            return False
        _, component = self._component(spec, place)
        if "dag" in component:
            return True
        _, executor = self._executor(component, place)
        container = as_mapping(executor.get("container"), f"{place}: container")
        image = as_text(container.get("image"), f"{place}: image")
        return "container" in executor and image not in DRIVER_ONLY_IMAGES


def exit_targets(
    specs: dict[str, dict[str, Any]], can_have_exit: Callable[[str], bool], place: str
) -> dict[str, tuple[str, ...]]:
    """Exit tasks of a DAG and the tasks after which each runs; none = it never runs.

    As KFP's compiler does it: every task that an exit task waits for gets it as its exit hook, and
    of two exit tasks of one task the last by name wins.
    """
    exits = [name for name in sorted(specs) if is_exit_task(specs[name], place)]
    owner: dict[str, str] = {}
    for name in exits:
        for other in dependencies(specs[name], f"{place}: task {name:.80}"):
            if other not in specs:
                raise InputError(
                    f"{place}: task {name!r:.80} waits for {other!r:.80}, which does not exist"
                )
            owner[other] = name
    targets: dict[str, list[str]] = {name: [] for name in exits}
    for other, name in sorted(owner.items()):
        if other not in targets and can_have_exit(other):
            targets[name].append(other)
    return {name: tuple(others) for name, others in targets.items()}
