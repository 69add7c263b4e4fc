"""The past runs beside the taxi sample, as `kfp-placement history --output` would write them."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from kfp_placement_engine.contract.history.pipeline_history import (
    PipelineHistory,
    PipelineHistorySpec,
    exported,
    history_name,
    step_identity,
)
from kfp_placement_engine.contract.history.status import history_status
from kfp_placement_engine.contract.shared_parts import ObjectMetadata
from kfp_placement_engine.model.history import PastContainer, PastRun, PastStep
from kfp_placement_engine.model.run_graph import RunGraph, Step
from kfp_placement_engine.readers import read_run_file
from kfp_placement_engine.readers.text.yaml_text import yaml_text
from tests.support.samples import SAMPLES

_RUNS, _FIRST_ENDED_AT = 9, datetime(2026, 11, 17, 7, 42, 10, tzinfo=UTC)

_CLOUD, _EDGE = "nitos-cloud-node", "home-edge-node"
_SPEEDS = {_CLOUD: 1.0, _EDGE: 0.5}

_TOOK: dict[str, tuple[float, str]] = {
    "fetch": (34.0, _CLOUD),
    "fetch-2": (19.0, _CLOUD),
    "train": (1260.0, _CLOUD),
    "drop-header": (6.0, _CLOUD),
    "true-values": (5.0, _CLOUD),
    # Far less than the minute of its hint, also on a node of half the speed.
    "predict": (48.0, _EDGE),
    "evaluate": (4.5, _CLOUD),
}
"""Usual time of each step, in seconds, and the node that it ran on."""

_LONGEST_PATH = ("fetch", "train", "predict", "evaluate")

_DRIVERS_SECONDS = 30.0
"""The time of all drivers and transfers on the longest path."""

_PEAK_BYTES = {"train": 690 * 2**20, "predict": 310 * 2**20}
"""The most memory that a step usually used."""


def taxi_history() -> str:
    """The text of `samples/06_taxi/history.yaml`: always the same."""
    graph = read_run_file(str(SAMPLES / "06_taxi" / "pipeline.yaml"))
    history = PipelineHistory(
        metadata=ObjectMetadata(name=history_name(graph.name), namespace="team-a"),
        spec=PipelineHistorySpec(pipeline=graph.name),
        status=history_status(_runs(graph)),
    )
    return yaml_text(exported([history]), rows_in_a_line=True)


def _runs(graph: RunGraph) -> Iterator[PastRun]:
    rng = random.Random(1)
    planned_seconds = _DRIVERS_SECONDS + sum(_TOOK[name][0] for name in _LONGEST_PATH)
    for number in range(_RUNS):
        # The steps of one run are slow together.
        of_run = rng.lognormvariate(0, 0.025)
        took = {
            name: seconds * of_run * rng.lognormvariate(0, 0.02)
            for name, (seconds, _) in _TOOK.items()
        }
        waited = 1.06 * rng.lognormvariate(0, 0.01)
        end = _DRIVERS_SECONDS + sum(took[name] for name in _LONGEST_PATH)
        yield PastRun(
            uid=f"00000000-0000-4000-8000-{number + 1:012}",
            pipeline=graph.name,
            ended_at=_FIRST_ENDED_AT + timedelta(days=number, seconds=37 * number),
            steps=tuple(_past_step(graph, step, took[step.name], rng) for step in graph.steps),
            seconds=end * waited,
            # Nothing was known of the first run before it.
            planned_seconds=planned_seconds if number else None,
        )


def _past_step(graph: RunGraph, step: Step, seconds: float, rng: random.Random) -> PastStep:
    node = _TOOK[step.name][1]
    identity = step_identity(graph.name, step)
    past = PastStep(identity, seconds * _SPEEDS[node], node, step.input_bytes)
    if step.name not in _PEAK_BYTES:
        return past
    peak = float(round(rng.uniform(0.97, 1.03) * _PEAK_BYTES[step.name]))
    return replace(past, peak_bytes=peak, container=PastContainer(step.requests, step.image))
