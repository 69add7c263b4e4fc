"""Runs made up by seed, of seconds, compiled by the real SDKs to Workflows that can be executed."""

import inspect
import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kfp import compiler, dsl

from kfp_placement import place
from kfp_placement_engine.contract.keys import SCHEDULER_LABEL
from kfp_placement_kube.kinds import JsonObject
from tests.support.runnable_workflow import read_package

UNMARKED_LABEL = "example.com/not-marked"
"""Stands where the mark was, so that an unmarked run is the same run in all else."""

PLACES = ("NITOS-CLOUD", "NITLAB-EDGE", "HOME-EDGE")


@dataclass(frozen=True)
class StepShape:
    """A step that is made up.

    Attributes:
        name: of the task.
        type: of the step.
        seconds: on a node of speed 1.
        cpu_milli: requested.
        output_bytes: of its only output.
        after: names of the steps whose outputs it reads.
        location: of its users.
    """

    name: str
    type: str
    seconds: float
    cpu_milli: int
    output_bytes: int = 0
    after: tuple[str, ...] = ()
    location: str = ""


def taxi_like(rng: random.Random) -> Iterator[StepShape]:
    """As in the thesis: two or three tables, models trained on them, predictions at places."""
    tables = [f"fetch-{number}" for number in range(rng.randint(2, 3))]
    for table in tables:
        yield StepShape(table, "Fetch", rng.uniform(1, 2), 500, _mebibytes(rng, 10, 30))
    for number, place_name in enumerate(rng.sample(PLACES, rng.randint(2, 3))):
        table = rng.choice(tables)
        clean, train = f"clean-{number}", f"train-{number}"
        yield StepShape(
            clean, "Transform", rng.uniform(0.5, 1), 500, _mebibytes(rng, 5, 20), (table,)
        )
        yield StepShape(
            train, "Training", rng.uniform(3, 6), 1500, _mebibytes(rng, 2, 10), (clean,)
        )
        yield StepShape(
            f"predict-{number}", "Predict", rng.uniform(1, 2), 1000, 0, (train,), place_name
        )


def fan_out(rng: random.Random) -> Iterator[StepShape]:
    """One table, many equal-ranking pieces of work of different size, two of each joined."""
    yield StepShape("split", "Fetch", 1.0, 500)
    width = rng.randint(6, 8)
    for number in range(width):
        cpu = rng.choice((500, 1000, 1500, 2000))
        yield StepShape(f"work-{number}", "Training", rng.uniform(2, 6), cpu, 0, ("split",))
    for number in range(0, width - 1, 2):
        parts = (f"work-{number}", f"work-{number + 1}")
        yield StepShape(f"join-{number}", "Transform", rng.uniform(0.5, 1.5), 500, 0, parts)


def trainings(rng: random.Random) -> Iterator[StepShape]:
    """Two rounds of long trainings that a fast node does far sooner, with short steps between."""
    before: tuple[str, ...] = ()
    for stage in range(2):
        yield StepShape(f"prepare-{stage}", "Transform", 0.5, 500, 0, before)
        before = tuple(f"train-{stage}-{number}" for number in range(rng.randint(4, 5)))
        for name in before:
            yield StepShape(name, "Training", rng.uniform(2.5, 4.5), 2000, 0, (f"prepare-{stage}",))


def workflow(name: str, steps: Sequence[StepShape]) -> JsonObject:
    """The Workflow that KFP makes of a run, all steps marked.

    Args:
        name: of the pipeline.
        steps: each after those that it reads from.
    """

    def run() -> None:
        tasks: dict[str, dsl.PipelineTask] = {}
        for step in steps:
            sources = {
                f"source_{position}": tasks[producer].outputs["result"]
                for position, producer in enumerate(step.after)
            }
            tasks[step.name] = _component(step)(**sources)
            place(
                tasks[step.name],
                type=step.type,
                location=step.location or None,
                duration=f"{1000 * step.seconds:.0f}ms",
                outputs={"result": step.output_bytes},
                cpu=f"{step.cpu_milli}m",
                memory="256Mi",
            )

    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "pipeline.yaml")
        compiler.Compiler().compile(dsl.pipeline(name=name)(run), str(package))
        return read_package(package)


def unmarked(marked: JsonObject) -> JsonObject:
    """The same run for the default scheduler: only the mark is missing."""
    changed: JsonObject = json.loads(json.dumps(marked).replace(SCHEDULER_LABEL, UNMARKED_LABEL))
    return changed


def _mebibytes(rng: random.Random, least: int, most: int) -> int:
    return rng.randint(least, most) * 2**20


def _component(step: StepShape) -> Any:
    """A component with as many inputs as the step reads."""

    def run(*given: Any) -> dsl.ContainerSpec:
        arguments = [each.path for each in given]
        return dsl.ContainerSpec(image="python:3.12", command=["work"], args=arguments)

    wanted: dict[str, Any] = {
        f"source_{position}": dsl.Input[dsl.Dataset] for position in range(len(step.after))
    }
    wanted["result"] = dsl.Output[dsl.Dataset]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind, annotation=wanted[name]) for name in wanted]
    )
    run.__name__ = step.name.replace("-", "_")
    return dsl.container_component(run)
