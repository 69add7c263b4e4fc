"""PipelineHistories with made-up runs, always the same."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kfp_placement_engine.contract.history.pipeline_history import (
    PipelineHistory,
    PipelineHistorySpec,
    history_name,
    step_identity,
)
from kfp_placement_engine.contract.history.status import history_status
from kfp_placement_engine.contract.shared_parts import ObjectMetadata
from kfp_placement_engine.model.history import PastContainer, PastRun, PastStep, StepIdentity
from kfp_placement_engine.model.run_graph import RunGraph

MIB, GIB = 2**20, 2**30


def past_run(
    pipeline: str,
    number: int,
    ended_at: datetime,
    steps: Mapping[str, Sequence[float]],
    seconds: float | None = None,
    planned_seconds: float | None = None,
    input_bytes: float | None = None,
) -> PastRun:
    """A run that has ended; of a step in a loop there is a time for each iteration."""
    past_steps = tuple(
        PastStep(
            StepIdentity(pipeline, path, f"{index:08x}" if len(times) > 1 else "", "c0ffee", "1e5"),
            time,
            "node-1",
            input_bytes,
        )
        for path, times in steps.items()
        for index, time in enumerate(times)
    )
    uid = f"{pipeline[:40]}-{number}"
    return PastRun(uid, pipeline, ended_at, past_steps, seconds, planned_seconds)


def history_object(runs: Sequence[PastRun], namespace: str = "team-a", **spec: Any) -> Any:
    """The object of the pipeline of these runs, as the API server prints it."""
    return a_history(runs[0].pipeline, runs, namespace, **spec)


def a_history(
    pipeline: str, runs: Sequence[PastRun], namespace: str = "team", **spec: Any
) -> dict[str, Any]:
    """The object of a pipeline, which may have no runs, as the API server prints it."""
    return PipelineHistory(
        metadata=ObjectMetadata(name=history_name(pipeline), namespace=namespace),
        spec=PipelineHistorySpec(pipeline=pipeline, **spec),
        status=history_status(runs),
    ).to_object()


def taxi_runs(last_ended_at: datetime, count: int = 9) -> list[PastRun]:
    """Runs of the taxi sample, a day apart: its training takes some 20 minutes, by its inputs."""
    return [
        past_run(
            "taxi",
            number,
            last_ended_at - timedelta(days=count - 1 - number),
            {
                "fetch": [33 + number % 3],
                "train": [1188 + 7 * (number % 4)],
                "for-loop-1[*].score": [40 + number % 2, 80 + number % 3, 120],
            },
            seconds=1375 + 10 * (number % 5),
            planned_seconds=1300,
            input_bytes=50 * MIB,
        )
        for number in range(count)
    ]


def with_memory(
    runs: Sequence[PastRun],
    step: str,
    *,
    peak: float | None = None,
    killed: float | None = None,
    asked: float | None = None,
) -> list[PastRun]:
    """The runs, in which a step used, was killed with and asked for that many GiB."""
    amounts = zip(("peak_bytes", "killed_bytes"), (peak, killed), strict=True)
    used: dict[str, Any] = {name: each * GIB for name, each in amounts if each is not None}
    if asked is not None:
        used["container"] = PastContainer({"memory": round(asked * GIB)})
    changed = []
    for run in runs:
        others = [each for each in run.steps if each.identity.step != step]
        own = [each for each in run.steps if each.identity.step == step]
        own = own or [PastStep(StepIdentity(run.pipeline, step))]
        steps = (*others, *(replace(each, **used) for each in own))
        changed.append(replace(run, steps=steps))
    return changed


def runs_of(
    graph: RunGraph, count: int = 9, *, factor: float = 1.0, **steps: float
) -> list[PastRun]:
    """Past runs of a pipeline: its steps took what its hints say, each a bit more or less.

    Args:
        graph: the pipeline, as read.
        count: number of runs.
        factor: real times as a multiple of the planned ones.
        steps: other run times, in seconds.
    """
    rng = random.Random(graph.name)
    seconds = {step.name: step.duration_seconds or 60.0 for step in graph.steps} | steps
    runs = []
    for number in range(count):
        steps_of_run = tuple(
            PastStep(
                step_identity(graph.name, step),
                seconds[step.name] * rng.lognormvariate(0, 0.05),
                "node-1",
                step.input_bytes,
                tuple(step.arguments.values()),
            )
            for step in graph.steps
        )
        ended_at = datetime(2026, 11, 1, tzinfo=UTC) + timedelta(days=number)
        runs.append(
            PastRun(
                f"run-{number}",
                graph.name,
                ended_at,
                steps_of_run,
                planned_seconds=1000.0,
                seconds=1000.0 * factor * rng.lognormvariate(0, 0.03),
            )
        )
    return runs


def history_file(path: Path, *objects: Any) -> Path:
    """A file of these objects, as `kubectl get -o json` prints them."""
    document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    path.write_text(json.dumps(document), "utf-8")
    return path
