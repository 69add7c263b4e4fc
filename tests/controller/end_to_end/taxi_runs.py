"""Runs of the taxi sample, and whose pod is whose."""

import re
from collections.abc import Callable
from pathlib import Path

from kfp import compiler

from kfp_placement_engine.contract.keys import SCHEDULER_LABEL
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.teams import Team
from tests.controlplane.argo.state import ANNOTATION_NODE_NAME
from tests.support.runnable_workflow import read_package
from tests.support.samples import SAMPLES, load_sample
from tests.support.taxi_cluster import with_durations

STEPS = {"fetch", "fetch-2", "train", "drop-header", "true-values", "predict", "evaluate"}
FACTOR = 1 / 400
"""Training takes 3 s on the cloud's node and 6 s at the edge."""

SLOW_FACTOR = 1 / 20
"""Training takes a minute, and what comes before it no longer than a few seconds."""


def taxi(factor: float = FACTOR) -> JsonObject:
    """The sample as its package is committed."""
    return with_durations(read_package(SAMPLES / "06_taxi" / "pipeline.yaml"), factor)


def taxi_for(location: str, folder: Path) -> JsonObject:
    """The sample for users elsewhere, compiled as its readers would."""
    package = folder / f"{location}.yaml"
    compiler.Compiler().compile(load_sample("06_taxi").taxi_for(location), str(package))
    return with_durations(read_package(package), FACTOR)


def step_of(pod: JsonObject) -> str:
    """The step of an executor pod, by how KFP names its levels."""
    name = pod["metadata"]["annotations"][ANNOTATION_NODE_NAME]
    # Every level has its number of attempts behind it.
    match = re.fullmatch(r"[^.]+\.root\.([a-z0-9-]+)\.executor", re.sub(r"\(\d+\)", "", name))
    assert match, name
    return match[1]


def is_marked(pod: JsonObject) -> bool:
    """Whether a pod asks for our scheduler."""
    return SCHEDULER_LABEL in pod["metadata"].get("labels", {})


def executors(
    team: Team, is_one: Callable[[JsonObject], bool] = is_marked
) -> dict[str, JsonObject]:
    """The pods of steps by step: those that are marked, or what else tells them."""
    return {step_of(pod): pod for pod in team.pods() if is_one(pod)}


def bound(team: Team) -> dict[str, str]:
    """The nodes of steps that have one."""
    pods = executors(team)
    return {
        step: pod["spec"]["nodeName"] for step, pod in pods.items() if pod["spec"].get("nodeName")
    }


def schedulers_at_end(
    team: Team, run: str, is_one: Callable[[JsonObject], bool] = is_marked
) -> dict[str, str]:
    """Wait for a run's end, which must be a good one; returns the scheduler of every step."""
    team.wait_for_success(run)
    pods = executors(team, is_one)
    return {step: pod["spec"]["schedulerName"] for step, pod in pods.items()}


def is_refused(pod: JsonObject) -> bool:
    """Whether a kubelet had no room for it."""
    return str(pod["status"].get("reason", "")).startswith("OutOf")
