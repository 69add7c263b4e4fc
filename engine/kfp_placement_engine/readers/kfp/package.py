"""A reader of KFP pipeline packages: IR YAML with one or two documents."""

from collections.abc import Mapping

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import EndLimit, RunClaim
from kfp_placement_engine.readers.kfp.arguments import missing_notices, pipeline_arguments
from kfp_placement_engine.readers.kfp.leaves import (
    DRIVER_ONLY_IMAGES,
    container_leaf,
    importer_leaf,
    input_defaults,
)
from kfp_placement_engine.readers.kfp.tasks import (
    dag_outputs,
    dependencies,
    exit_targets,
    read_task,
)
from kfp_placement_engine.readers.kubernetes.claims import made_claim
from kfp_placement_engine.readers.kubernetes.start_limits import run_limit
from kfp_placement_engine.readers.text.fields import Fields, RawMapping
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.expressions import Expression
from kfp_placement_engine.readers.tree.leaves import Leaf
from kfp_placement_engine.readers.tree.options import ReadOptions
from kfp_placement_engine.readers.tree.tasks import (
    WORKSPACE_CLAIM,
    Dag,
    Drivers,
    Nesting,
    Task,
    TaskTree,
)
from kfp_placement_engine.readers.unused.walk import unused_in_package

SOURCE = "kfp-package"


def package_tree(
    pipeline: RawMapping, platform: RawMapping, name: str, options: ReadOptions
) -> TaskTree:
    """Read a package.

    Args:
        pipeline: pipeline spec, the first document of the package.
        platform: platform spec, the second document; {} without one.
        name: name of the file, for messages.
        options: settings, of which the arguments are used.

    Raises:
        InputError: the package is malformed, or the arguments do not fit.
        LimitError: the package is nested too deeply.
    """
    package = Fields(pipeline, Place(name))
    info, root = package.fields("pipelineInfo"), package.fields("root")
    if "dag" not in root:
        raise InputError(f"{name}: root: has no dag; is this a component instead of a pipeline?")
    reader = _PackageReader(package, Fields(platform, package.place))
    arguments, missing = pipeline_arguments(root, options.arguments, package.place)
    dag = reader.dag("root", root)
    return TaskTree(
        name=info.text("name") or name,
        source=SOURCE,
        root=dag,
        arguments=arguments,
        missing_arguments=tuple(missing),
        drivers=Drivers.PER_ITERATION,
        run_claims=reader.run_claims(),
        end_limit=reader.end_limit(),
        notices=(
            *_version_notices(package),
            *missing_notices(missing),
            *reader.notices,
            *unused_in_package(pipeline, platform),
        ),
    )


def _version_notices(package: Fields) -> list[Notice]:
    version = package.text("schemaVersion")
    if not version or version.split(".")[0] == "2":
        return []
    message = f"schema version {version:.20} is not 2.x; the package is read as far as it is known"
    return [Notice("unknown-version", message)]


class _PackageReader:
    def __init__(self, package: Fields, platform: Fields) -> None:
        self._file = package.place
        self._components = package.mapping("components")
        self._executors = package.fields("deploymentSpec").mapping("executors")
        self._platform = platform.fields("platforms").fields("kubernetes")
        self._configs = self._platform.fields("deploymentSpec").mapping("executors")
        self._dags: dict[str, Dag] = {}
        self._nesting = Nesting()
        self.notices: list[Notice] = []

    def run_claims(self) -> tuple[RunClaim, ...]:
        """Return the run's workspace; empty without a workspace."""
        config = self._platform.fields("pipelineConfig")
        if config.get("workspace") is None:
            return ()
        workspace = config.fields("workspace")
        patch = workspace.fields("kubernetes").fields("pvcSpecPatch")
        return (made_claim(WORKSPACE_CLAIM, patch, workspace.get("size")),)

    def end_limit(self) -> EndLimit | None:
        """Return the limit of the time that the run may take."""
        return run_limit(self._platform.fields("pipelineConfig"))

    def dag(self, name: str, component: Fields) -> Dag:
        """Return the DAG of a component, as one object however often it is used."""
        if name in self._dags:
            return self._dags[name]
        component = Fields(component.raw, self._file.then(": {:.80}", name))
        with self._nesting.inside(name, self._file.then(": component {:.80}", name)):
            tasks = self._tasks(component)
        outputs, defaults = dag_outputs(component), input_defaults(component)
        self._dags[name] = Dag(tasks, outputs, defaults, place=component.place)
        return self._dags[name]

    def _tasks(self, component: Fields) -> dict[str, Task]:
        place = component.place
        specs = {
            name: Fields.of(spec, place.then(": task {:.80}", name))
            for name, spec in component.fields("dag").mapping("tasks").items()
        }
        exits = exit_targets(specs, self._can_have_exit, place)
        tasks = {}
        for name, spec in specs.items():
            # Raises an error if the name is empty.
            place.name(name)
            if name in exits and not exits[name]:
                self.notices.append(
                    Notice(
                        "exit-task-lost",
                        f"{spec.place.spelled}: KFP never runs this exit task: of several of one"
                        " task it runs the last by name only, and none of loops, importers and"
                        " volume claims",
                    )
                )
                continue
            body, inputs = self._body(spec)
            tasks[name] = read_task(
                name,
                spec,
                body,
                depends_on=() if name in exits else dependencies(spec),
                exit_of=exits.get(name, ()),
                extra_inputs=inputs,
                dag=component,
            )
        return tasks

    def _component(self, spec: Fields) -> tuple[str, Fields]:
        """Return name and fields of a task's component, at the place of the task."""
        name = spec.fields("componentRef").name("name")
        if name not in self._components:
            raise spec.error(f"component {name!r:.80} does not exist")
        component = self._file.then(": {:.80}", name).mapping(self._components[name])
        return name, Fields(component, spec.place)

    def _body(self, spec: Fields) -> tuple[Leaf | Dag, Mapping[str, Expression]]:
        name, component = self._component(spec)
        if "dag" in component:
            return self.dag(name, component), {}
        return self._leaf(component, spec)

    def _executor(self, component: Fields) -> tuple[str, Fields]:
        """Return label and fields of a component's executor, at the place of the task."""
        label = component.text("executorLabel")
        if not label:
            raise component.error(
                "its component has neither dag nor executorLabel, so KFP cannot run it; "
                "compile the pipeline again, and give groups of nested pipelines other names"
            )
        if label not in self._executors:
            raise component.error(f"executor {label!r:.80} does not exist")
        executor = self._file.then(": executor {:.80}", label).mapping(self._executors[label])
        return label, Fields(executor, component.place)

    def _leaf(self, component: Fields, spec: Fields) -> tuple[Leaf, Mapping[str, Expression]]:
        label, executor = self._executor(component)
        if executor.get("importer") is not None:
            return importer_leaf(executor.fields("importer"), component), {}
        if executor.get("container") is None:
            kinds = ", ".join(executor.raw) or "nothing"
            raise spec.error(f"runs {kinds:.80}, which KFP on Kubernetes cannot run")
        container = executor.fields("container")
        config = self._file.then(": platform of {:.80}", label).mapping(self._configs.get(label))
        return container_leaf(container, Fields(config, spec.place), component, spec)

    def _can_have_exit(self, spec: Fields) -> bool:
        """Return whether KFP attaches an exit task to a task: only to containers and DAGs."""
        if spec.get("parameterIterator") is not None or spec.get("artifactIterator") is not None:
            return False
        _, component = self._component(spec)
        if "dag" in component:
            return True
        _, executor = self._executor(component)
        image = executor.fields("container").text("image")
        return "container" in executor and image not in DRIVER_ONLY_IMAGES
