"""Components and packages for tests of the SDK."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from google.protobuf import json_format
from kfp import compiler, dsl

HINTS = "kfp-placement.dev/hints"
MARK = {"kfp-placement.dev/scheduler": "kfp-placement"}
UNPLANNED = {"kfp-placement.dev/unplanned": "true"}
CHANNEL = "{{channel:task=;name=where;type=String;}}"


def id_of(value: object) -> str:
    """The id of a test's parameter: an error by its name."""
    return value.__name__ if isinstance(value, type) else str(value)


class Channel:
    """Looks like a channel of KFP where only its text is looked at."""

    def __str__(self) -> str:
        """Return a channel as KFP writes it."""
        return CHANNEL


@dsl.component(base_image="python:3.12")
def fetch(rows: int, table: dsl.Output[dsl.Dataset]):
    """Write rows."""
    with open(table.path, "w") as stream:
        stream.write("1\n" * rows)


@dsl.component(base_image="python:3.12")
def train(table: dsl.Input[dsl.Dataset], model: dsl.Output[dsl.Model]):
    """Count the rows."""
    with open(table.path) as source, open(model.path, "w") as target:
        target.write(str(len(source.readlines())))


@dsl.component(base_image="python:3.12")
def predict(model: dsl.Input[dsl.Model]) -> int:
    """Return the count."""
    with open(model.path) as stream:
        return int(stream.read())


@dsl.component(base_image="python:3.12")
def work(item: int) -> int:
    """Return the item, and do almost nothing else."""
    return item


@dsl.component(base_image="python:3.12")
def tidy(item: int) -> int:
    """Return the item after other steps have ended."""
    return item


@dsl.container_component
def echo(text: str):
    """A container that prints."""
    return dsl.ContainerSpec(image="alpine:3.20", command=["echo"], args=[text])


def platform_spec(pipeline: Any) -> dict[str, Any]:
    """The platform part of a compiled pipeline, as a plain dict."""
    return json_format.MessageToDict(pipeline.platform_spec)


def metadata(pipeline: Any) -> dict[str, Any]:
    """Executor -> pod metadata of a compiled pipeline."""
    platforms = platform_spec(pipeline).get("platforms", {})
    executors = platforms.get("kubernetes", {}).get("deploymentSpec", {}).get("executors", {})
    return {name: config.get("podMetadata", {}) for name, config in executors.items()}


def pod(hints: str, labels: dict[str, str]) -> dict[str, Any]:
    """The pod metadata of a step with these hints, as they are written, and these labels."""
    return {"annotations": {HINTS: hints}, "labels": labels}


def work_metadata(pipeline: Any) -> dict[str, Any]:
    """The pod metadata of the step `work`."""
    pod_metadata: dict[str, Any] = metadata(pipeline)["exec-work"]
    return pod_metadata


def resources(pipeline: Any, executor: str = "exec-work") -> dict[str, Any]:
    """The resources of one executor in the package."""
    spec = json_format.MessageToDict(pipeline.pipeline_spec)
    container = spec["deploymentSpec"]["executors"][executor]["container"]
    return {
        key: value
        for key, value in container.get("resources", {}).items()
        if key.startswith("resource") or key == "accelerator"
    }


def documents(pipeline: Any, folder: Path) -> list[Any]:
    """The documents of the compiled package."""
    path = folder / "package.yaml"
    compiler.Compiler().compile(pipeline, str(path))
    return list(yaml.safe_load_all(path.read_text()))


def one_step(mark: Callable[[Any], Any], component: Any = None, **arguments: Any) -> Any:
    """A pipeline of one step, which `mark` is called with."""

    @dsl.pipeline(name="one-step")
    def pipeline(rows: int = 1, where: str = "X"):
        mark((component or work)(**(arguments or {"item": 1})))

    return pipeline
