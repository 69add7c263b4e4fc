"""Pipelines that a test writes down step by step, compiled by KFP and marked by our SDK."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kfp import dsl

from kfp_placement import place, placed_pipeline
from kfp_placement_kube.kinds import JsonObject
from tests.support.pipelines import documents
from tests.support.runnable_workflow import runnable_workflow


def unmarked_step(name: str, *after: Any, command: tuple[str, ...] = ("true",)) -> Any:
    """A step that nobody has marked, in the pipeline that is being written.

    Args:
        name: of the step; no two of a pipeline may have the same.
        after: steps that it waits for.
        command: of its container.
    """

    def body():  # KFP would take an annotation for an output
        return dsl.ContainerSpec(image="alpine:3.20", command=list(command))

    body.__name__ = name.replace("-", "_")
    return dsl.container_component(body)().after(*after)


def step(name: str, *after: Any, command: tuple[str, ...] = ("true",), **marks: Any) -> Any:
    """A marked step in the pipeline that is being written.

    Args:
        name: of the step; no two of a pipeline may have the same.
        after: steps that it waits for.
        command: of its container.
        marks: what `place` is given; by default it takes 100 ms, half a core and 256 MiB.
    """
    task = unmarked_step(name, *after, command=command)
    return place(task, **{"duration": "100ms", "cpu": "500m", "memory": "256Mi", **marks})


def compiled(
    name: str, body: Callable[[], Any], queue: str | None = None, **options: Any
) -> JsonObject:
    """The Workflow of a pipeline.

    Args:
        name: of the pipeline.
        body: calls `step`.
        queue: RunQueue in which its runs wait; None = the usual one.
        options: of `dsl.pipeline`.
    """
    return runnable_workflow(*package_of(name, body, queue, **options))


def package_of(
    name: str, body: Callable[[], Any], queue: str | None = None, **options: Any
) -> list[JsonObject]:
    """The documents of a pipeline's package; see `compiled`."""
    return _documents(dsl.pipeline(name=name, **options)(placed_pipeline(queue=queue)(body)))


def compiled_unmarked(name: str, body: Callable[[], Any]) -> JsonObject:
    """The Workflow of a pipeline that knows nothing of us but what its body says.

    Args:
        name: of the pipeline.
        body: calls `unmarked_step`.
    """
    return runnable_workflow(*unmarked_package_of(name, body))


def unmarked_package_of(name: str, body: Callable[[], Any]) -> list[JsonObject]:
    """The documents of such a pipeline's package."""
    return _documents(dsl.pipeline(name=name)(body))


def _documents(pipeline: Any) -> list[JsonObject]:
    with tempfile.TemporaryDirectory() as folder:
        return documents(pipeline, Path(folder))


def chain(name: str, *seconds: float, **marks: Any) -> JsonObject:
    """Steps `s1`, `s2` and so on, one after the other, that take so long."""

    def body() -> None:
        last: tuple[Any, ...] = ()
        for number, each in enumerate(seconds, start=1):
            last = (step(f"s{number}", *last, duration=f"{round(each * 1000)}ms", **marks),)

    return compiled(name, body)
