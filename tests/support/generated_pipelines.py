"""Random pipelines, compiled with the real KFP SDK, and what is true of them.

The generator writes down what it asks for while it asks for it: images, resources, labels, who
waits for whom. Readers are compared with that record, never with another reading of the package.
"""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kfp import compiler, dsl, kubernetes
from kfp.dsl.pipeline_context import Pipeline

MIB = 2**20

CPU = {"100m": 100, "500m": 500, "1": 1000, "2.5": 2500, "4": 4000}
MEMORY = {"64Mi": 64 * MIB, "1Gi": 1024 * MIB, "500M": 500_000_000, "2G": 2_000_000_000}
DURATIONS = {"30s": 30.0, "20m": 1200.0, "1h30m": 5400.0}
TYPES = ("Fetch", "Transform", "Training", "Predict", "Evaluate")
PLACES = ("HOME-EDGE", "NITLAB-EDGE", "NITOS-CLOUD")


@dataclass
class TrueTask:
    """Truth about one task (of one loop iteration, if it is in a loop)."""

    path: tuple[str, ...]
    image: str
    kind: str = "container"
    requests: dict[str, int] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    duration: float | None = None
    outputs: dict[str, int] = field(default_factory=dict)
    tolerations: list[tuple[str, str, str, str]] = field(default_factory=list)
    node_selector: dict[str, str] = field(default_factory=dict)
    required_terms: int = 0
    preferred_weights: list[int] = field(default_factory=list)
    claims: set[str] = field(default_factory=set)
    attempts: int = 1
    caching: bool = True
    conditions: int = 0
    exit_task: bool = False


@dataclass
class Truth:
    """Truth about a pipeline.

    Attributes:
        tasks: the tasks, by path.
        loops: path of each loop -> number of iterations (None = known at run time), parallelism.
        waits: (DAG path, name, name of the task it waits for), names within that DAG.
    """

    tasks: list[TrueTask] = field(default_factory=list)
    loops: dict[tuple[str, ...], tuple[int | None, int]] = field(default_factory=dict)
    waits: list[tuple[tuple[str, ...], str, str]] = field(default_factory=list)


@dataclass
class GeneratedPipeline:
    """A compiled package and the truth about it."""

    package: bytes
    truth: Truth


@dataclass(eq=False)
class _Level:
    """A group of the pipeline that is being written; its name is known once that is done."""

    group: Any = None
    conditions: int = 0

    @property
    def name(self) -> str:
        """The group's name in the package: `If` is renamed when an `Else` follows."""
        return str(self.group.name)


@dataclass
class _Produced:
    """A task whose outputs can be used where its levels are a prefix of the user's."""

    task: Any
    levels: tuple[_Level, ...]


def generate(seed: int, folder: Path) -> GeneratedPipeline:
    """Write and compile the pipeline of a seed; pipelines may be in it, and pipelines in these.

    Args:
        seed: seed of the random generator.
        folder: folder that holds the package for a moment.
    """
    writer = _Writer(random.Random(seed))
    pipeline, truth = writer.pipeline(f"generated-{seed}", nested=2)
    path = folder / f"generated-{seed}.yaml"
    compiler.Compiler().compile(pipeline, str(path))
    return GeneratedPipeline(path.read_bytes(), truth)


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._count = 0

    def pipeline(self, name: str, nested: int) -> tuple[Any, Truth]:
        """A pipeline and what is true of it."""
        truth = Truth()
        inner = [self.pipeline(f"{name}-inner", nested - 1)] if nested and self._chance(0.6) else []

        def run(
            cpu: str = "2",
            memory: str = "2Gi",
            widths: list = [7, 8],  # noqa: B006 - KFP reads the default of a parameter here
            toleration: dict = {"key": "given", "operator": "Exists"},  # noqa: B006
            selector: dict = {"disk": "fast"},  # noqa: B006
            claim: str = "shared-data",
        ) -> None:
            parameters = {
                "cpu": cpu,
                "memory": memory,
                "widths": widths,
                "toleration": toleration,
                "selector": selector,
                "claim": claim,
            }
            # The SDK mixes up groups of the same name in a pipeline and one nested in it.
            for _ in range(100 * nested):
                Pipeline.get_default_pipeline().get_next_group_id()
            _Body(self._rng, truth, parameters, inner, self._name).write()

        return dsl.pipeline(name=name)(run), truth

    def _name(self) -> str:
        self._count += 1
        return f"task{self._count}"

    def _chance(self, probability: float) -> bool:
        return self._rng.random() < probability


class _Body:
    """Writes the tasks of one pipeline function."""

    def __init__(
        self, rng: random.Random, truth: Truth, parameters: dict[str, Any], inner: Any, name: Any
    ) -> None:
        self._rng = rng
        self._truth = truth
        self._parameters = parameters
        self._inner = inner
        self._name = name
        self._levels: tuple[_Level, ...] = ()
        self._items: list[Any] = []
        self._producers: list[_Produced] = []
        self._late: list[tuple[TrueTask, tuple[_Level, ...], str]] = []
        self._late_waits: list[tuple[tuple[_Level, ...], str, tuple[_Level, ...], str]] = []
        self._late_loops: list[tuple[tuple[_Level, ...], int | None, int]] = []

    def write(self) -> None:
        """Write all tasks; after that names are set and the truth is complete."""
        if self._chance(0.4):
            self._exit_handler()
        self._tasks(self._rng.randint(2, 5), depth=0)
        if self._inner and self._chance(0.9):
            self._nested()
        for task, levels, name in self._late:
            task.path = (*(level.name for level in levels), name)
            self._truth.tasks.append(task)
        for levels, width, parallelism in self._late_loops:
            self._truth.loops[tuple(level.name for level in levels)] = (width, parallelism)
        for user, user_name, producer, producer_name in self._late_waits:
            self._truth.waits.append(_wait(user, user_name, producer, producer_name))

    def _chance(self, probability: float) -> bool:
        return self._rng.random() < probability

    def _tasks(self, count: int, depth: int) -> None:
        for _ in range(count):
            kind = self._rng.random()
            if depth < 2 and kind < 0.2:
                self._loop(depth)
            elif depth < 2 and kind < 0.35 and self._usable():
                self._condition(depth)
            else:
                self._task()

    def _usable(self) -> list[_Produced]:
        """Tasks whose outputs may be used here: not those inside groups that we are not in."""
        return [each for each in self._producers if self._levels[: len(each.levels)] == each.levels]

    def _task(self, *, exit_task: bool = False, plain: bool = False) -> Any:
        name = self._name()
        usable = [] if exit_task or plain else self._usable()
        producer = self._rng.choice(usable) if usable and self._chance(0.7) else None
        item: Any = "text"
        if producer and self._chance(0.5):
            item = producer.task.outputs["value"]
        elif self._items and not exit_task:
            item = self._items[-1]
        image = f"registry.example/{name}:{self._rng.randint(1, 9)}"
        if producer is not None and self._chance(0.5):
            task = _consumer(name, image)(item=item, source=producer.task.outputs["table"])
        else:
            task = _producer(name, image)(item=item)
            if producer is not None and item is not producer.task.outputs["value"]:
                task.after(producer.task)
        truth = TrueTask((), image, exit_task=exit_task)
        truth.conditions = sum(level.conditions for level in self._levels)
        self._settings(task, truth)
        self._late.append((truth, self._levels, task.name))
        if producer is not None:
            self._wait_for(producer, self._levels, task.name)
        if not exit_task:
            self._producers.append(_Produced(task, self._levels))
        return task

    def _wait_for(self, producer: _Produced, levels: tuple[_Level, ...], name: str) -> None:
        self._late_waits.append((levels, name, producer.levels, producer.task.name))

    def _settings(self, task: Any, truth: TrueTask) -> None:
        self._resources(task, truth)
        self._constraints(task, truth)
        if self._chance(0.5):
            truth.labels["typeOfComponent"] = self._rng.choice(TYPES)
        if self._chance(0.3):
            truth.labels["OurLocation"] = self._rng.choice(PLACES)
        if self._chance(0.3):
            truth.labels["kfp-placement.dev/scheduler"] = "kfp-placement"
        for key, value in truth.labels.items():
            kubernetes.add_pod_label(task, key, value)
        if self._chance(0.4):
            text, truth.duration = self._rng.choice(list(DURATIONS.items()))
            truth.outputs = {"table": 3 * MIB}
            hints = {"v": 1, "duration": text, "outputs": {"table": "3Mi"}}
            kubernetes.add_pod_annotation(task, "kfp-placement.dev/hints", json.dumps(hints))
        if self._chance(0.3):
            retries = self._rng.randint(1, 4)
            task.set_retry(retries, backoff_duration="10s")
            truth.attempts = 1 + retries
        if self._chance(0.3):
            task.set_caching_options(False)
            truth.caching = False

    def _resources(self, task: Any, truth: TrueTask) -> None:
        # In groups the SDK forgets to hand pipeline parameters on to settings: only at the top.
        from_parameters = not self._levels and self._chance(0.3)
        if from_parameters:
            task.set_cpu_request(self._parameters["cpu"])
            task.set_memory_limit(self._parameters["memory"])
            truth.requests = {"cpu": 2000, "memory": 2048 * MIB}
        elif self._chance(0.7):
            text, amount = self._rng.choice(list(CPU.items()))
            setter = task.set_cpu_request if self._chance(0.6) else task.set_cpu_limit
            setter(text)
            truth.requests["cpu"] = amount
            text, amount = self._rng.choice(list(MEMORY.items()))
            task.set_memory_request(text)
            if self._chance(0.3):
                # The request counts, not the limit.
                task.set_memory_limit("100Gi")
            truth.requests["memory"] = amount
        if self._chance(0.2):
            count = self._rng.randint(1, 4)
            task.set_accelerator_type("nvidia.com/gpu").set_accelerator_limit(count)
            truth.requests["nvidia.com/gpu"] = count

    def _constraints(self, task: Any, truth: TrueTask) -> None:
        if self._chance(0.3):
            effect = self._rng.choice(["NoSchedule", "NoExecute"])
            kubernetes.add_toleration(
                task, key="pool", operator="Equal", value="batch", effect=effect
            )
            truth.tolerations.append(("pool", "Equal", "batch", effect))
        if self._chance(0.2):
            kubernetes.add_toleration_json(task, self._parameters["toleration"])
            truth.tolerations.append(("given", "Exists", "", ""))
        if self._chance(0.2):
            kubernetes.add_node_selector(task, "zone", "a")
            truth.node_selector = {"zone": "a"}
        elif self._chance(0.2):
            kubernetes.add_node_selector_json(task, self._parameters["selector"])
            truth.node_selector = {"disk": "fast"}
        if self._chance(0.2):
            expressions = [{"key": "cpu-kind", "operator": "In", "values": ["x86", "arm"]}]
            weight = self._rng.choice([None, 10, 90])
            kubernetes.add_node_affinity(task, match_expressions=expressions, weight=weight)
            if weight is None:
                truth.required_terms = 1
            else:
                truth.preferred_weights = [weight]
        if self._chance(0.2):
            given = self._chance(0.5)
            name = self._parameters["claim"] if given else "datasets"
            kubernetes.mount_pvc(task, pvc_name=name, mount_path="/data")
            truth.claims.add("shared-data" if given else "datasets")

    @contextmanager
    def _inside(self, group: Any, level: _Level) -> Iterator[Any]:
        with group as inner:
            level.group = group
            outer, self._levels = self._levels, (*self._levels, level)
            yield inner
            self._levels = outer

    def _loop(self, depth: int) -> None:
        usable = [each for each in self._usable() if "items" in each.task.outputs]
        kind = self._rng.choice(["static", "parameter", "output" if usable else "static"])
        parallelism = self._rng.choice([0, 0, 2])
        level = _Level()
        items: Any
        width: int | None
        if kind == "static":
            width = self._rng.randint(1, 3)
            items = [f"item {index}" for index in range(width)]
        elif kind == "parameter":
            items, width = self._parameters["widths"], 2
        else:
            producer = self._rng.choice(usable)
            items, width = producer.task.outputs["items"], None
        group = dsl.ParallelFor(items=items, parallelism=parallelism or None)
        if kind == "output":
            self._late_waits.append(
                ((*self._levels, level), "", producer.levels, producer.task.name)
            )
        with self._inside(group, level) as item:
            self._late_loops.append((self._levels, width, parallelism))
            self._items.append(item)
            # The SDK loses inputs of loops whose item nobody uses.
            self._task(plain=True)
            self._tasks(self._rng.randint(0, 2), depth + 1)
            self._items.pop()

    def _condition(self, depth: int) -> None:
        producer = self._rng.choice(self._usable())
        branches = [_Level()] if self._chance(0.5) else []
        self._levels = (*self._levels, *branches)
        level = _Level(conditions=1)
        group = dsl.If(producer.task.outputs["value"] == "yes")
        self._late_waits.append(((*self._levels, level), "", producer.levels, producer.task.name))
        with self._inside(group, level):
            self._tasks(self._rng.randint(1, 2), depth + 1)
        if branches:
            group, level = dsl.Else(), _Level(conditions=1)
            with self._inside(group, level):
                branches[0].group = Pipeline.get_default_pipeline().groups[-2]
                self._tasks(1, depth + 1)
            self._levels = self._levels[:-1]

    def _exit_handler(self) -> None:
        exit_task = self._task(exit_task=True)
        group, level = dsl.ExitHandler(exit_task), _Level()
        with self._inside(group, level):
            self._tasks(self._rng.randint(1, 3), depth=1)
        self._late_waits.append(((), exit_task.name, (level,), ""))

    def _nested(self) -> None:
        pipeline, truth = self._inner[0]
        usable = self._usable()
        task = pipeline(cpu=self._parameters["cpu"], claim=self._parameters["claim"])
        if usable and self._chance(0.7):
            producer = self._rng.choice(usable)
            task.after(producer.task)
            self._wait_for(producer, (), task.name)
        for inner in truth.tasks:
            copy = TrueTask(**{**vars(inner), "path": (task.name, *inner.path)})
            self._truth.tasks.append(copy)
        for path, loop in truth.loops.items():
            self._truth.loops[(task.name, *path)] = loop
        for dag, user, other in truth.waits:
            self._truth.waits.append(((task.name, *dag), user, other))


def _wait(
    user: tuple[_Level, ...], user_name: str, producer: tuple[_Level, ...], producer_name: str
) -> tuple[tuple[str, ...], str, str]:
    """Return which task waits for which, in the innermost DAG of both; "" is the last level."""
    first = [*(level.name for level in user), *([user_name] if user_name else [])]
    second = [*(level.name for level in producer), *([producer_name] if producer_name else [])]
    shared = 0
    while first[shared] == second[shared]:
        shared += 1
    return tuple(first[:shared]), first[shared], second[shared]


def _producer(name: str, image: str) -> Any:
    def run(
        item: str,
        value: dsl.OutputPath(str),  # type: ignore[valid-type]
        items: dsl.OutputPath(list),  # type: ignore[valid-type]
        table: dsl.Output[dsl.Dataset],
    ):
        arguments = [item, value, items, table.path]
        return dsl.ContainerSpec(image=image, command=["run"], args=arguments)

    run.__name__ = name
    return dsl.container_component(run)


def _consumer(name: str, image: str) -> Any:
    def run(
        item: str,
        source: dsl.Input[dsl.Dataset],
        value: dsl.OutputPath(str),  # type: ignore[valid-type]
        table: dsl.Output[dsl.Dataset],
    ):
        arguments = [item, source.path, value, table.path]
        return dsl.ContainerSpec(image=image, command=["run"], args=arguments)

    run.__name__ = name
    return dsl.container_component(run)
