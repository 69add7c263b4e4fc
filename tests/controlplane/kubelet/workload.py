"""Time that a pod takes on a node, by the stand-in's own reckoning.

Everything comes from pods: a step's duration and outputs from its hints, what it reads from the
command line of its driver, which names the producers, and their drivers, which carry their hints.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.controlplane.kubelet.amounts import amount
from tests.controlplane.kubelet.drivers import Json, read_object
from tests.controlplane.kubelet.packages import Package, driver_arguments

HINTS = "kfp-placement.dev/hints"
SPEED = "kfp-placement.dev/speed"
STORE_BANDWIDTH = "kfp-placement.dev/store-bandwidth"
NODE_NAME = "workflows.argoproj.io/node-name"
WORKFLOW = "workflows.argoproj.io/workflow"

_UNITS = {"ms": 0.001, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"([\d.]+)(ms|us|µs|ns|s|m|h|d)")
_ATTEMPT = re.compile(r"\(\d+\)$")


@dataclass(frozen=True)
class WorkloadSettings:
    """Times of pods that have no hints.

    Attributes:
        driver_seconds: a KFP driver, whatever its node.
        step_seconds: a step without a duration, on a node of speed 1.
        spread: standard deviation of the logarithm of such a step's time, from pod to pod.
        start_seconds: time from admission to the first container.
    """

    driver_seconds: float = 0.5
    step_seconds: float = 1.0
    spread: float = 0.0
    start_seconds: float = 0.2


@dataclass(frozen=True)
class Duration:
    """Times of a pod's reading, work and writing, which follow each other, in seconds."""

    read: float = 0.0
    work: float = 0.0
    write: float = 0.0

    @property
    def running(self) -> float:
        """Time in phase Running."""
        return self.read + self.work + self.write


def seconds_of(text: Any) -> float:
    """A duration as Go writes it, or a bare number of seconds."""
    try:
        return float(text)
    except ValueError:
        return sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(str(text)))


def main_container(pod: Mapping[str, Any]) -> Json:
    """The container `main`, else the last."""
    containers = pod["spec"]["containers"]
    return next((entry for entry in containers if entry["name"] == "main"), containers[-1])


def is_driver(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod is a KFP driver."""
    return (main_container(pod).get("command") or [""])[-1] == "driver"


def annotation(pod: Mapping[str, Any], key: str) -> str:
    """An annotation of a pod, or ""."""
    return str((pod["metadata"].get("annotations") or {}).get(key, ""))


def _without_attempt(name: str) -> str:
    return _ATTEMPT.sub("", name)


class Workload:
    """Times of pods, read from the pods themselves."""

    def __init__(self, settings: WorkloadSettings | None = None) -> None:
        self.settings = settings or WorkloadSettings()
        self._drivers: dict[tuple[str, str], dict[str, str]] = {}

    def learn(self, pod: Mapping[str, Any], packages: Mapping[str, Package] = {}) -> None:
        """Read a driver's command line; other pods say nothing about others.

        Args:
            pod: any pod.
            packages: packages that drivers of KFP 3 read, by the name of Workflow or pipeline.
        """
        name = annotation(pod, NODE_NAME)
        workflow = (pod["metadata"].get("labels") or {}).get(WORKFLOW, "")
        key = (workflow, _without_attempt(name))
        if name and is_driver(pod) and key not in self._drivers:
            line = main_container(pod).get("args") or []
            self._drivers[key] = driver_arguments(line, name, packages)

    def duration(self, pod: Mapping[str, Any], node: Mapping[str, Any]) -> Duration:
        """Return the times of a pod on a node."""
        labels = node["metadata"].get("labels") or {}
        if is_driver(pod):
            return Duration(work=self.settings.driver_seconds)
        hints = read_object(annotation(pod, HINTS))
        work = seconds_of(hints.get("duration", self._usual_seconds(pod)))
        bandwidth = float(amount(labels.get(STORE_BANDWIDTH, 0)))
        read = self._input_bytes(pod) / bandwidth if bandwidth else 0.0
        write = _output_bytes(hints) / bandwidth if bandwidth else 0.0
        return Duration(read, work / float(labels.get(SPEED, 1)), write)

    def _usual_seconds(self, pod: Mapping[str, Any]) -> float:
        """Run time without a hint: the same whenever it is asked for."""
        noise = Random(pod["metadata"].get("uid")).gauss(0, 1) if self.settings.spread else 0.0
        return self.settings.step_seconds * math.exp(self.settings.spread * noise)

    def _input_bytes(self, pod: Mapping[str, Any]) -> float:
        workflow = (pod["metadata"].get("labels") or {}).get(WORKFLOW, "")
        parts = annotation(pod, NODE_NAME).rsplit(".executor", 1)
        if len(parts) != 2:
            return 0.0
        driver = f"{_without_attempt(parts[0])}-driver"
        task = read_object(self._drivers.get((workflow, driver), {}).get("task", ""))
        around = driver.rpartition(".")[0]
        artifacts = (task.get("inputs") or {}).get("artifacts") or {}
        sources = list(artifacts.values())
        return sum(self._source_bytes(workflow, around, source) for source in sources)

    def _source_bytes(self, workflow: str, around: str, source: Mapping[str, Any]) -> float:
        """The size of one artifact; one handed down is looked up where it comes from."""
        produced = source.get("taskOutputArtifact")
        if produced:
            driver = f"{around}.{produced.get('producerTask', '')}-driver"
            config = read_object(
                self._drivers.get((workflow, driver), {}).get("kubernetes_config", "")
            )
            annotations = (config.get("podMetadata") or {}).get("annotations") or {}
            outputs = read_object(annotations.get(HINTS, "")).get("outputs") or {}
            return float(amount(outputs.get(produced.get("outputArtifactKey", ""), 0)))
        name = source.get("componentInputArtifact")
        outer, _, group = _without_attempt(around).rpartition(".")
        if not name or not outer:
            return 0.0
        task = read_object(
            self._drivers.get((workflow, f"{outer}.{group}-driver"), {}).get("task", "")
        )
        artifacts = (task.get("inputs") or {}).get("artifacts") or {}
        return self._source_bytes(workflow, outer, artifacts[name]) if name in artifacts else 0.0


def _output_bytes(hints: Mapping[str, Any]) -> float:
    return float(sum(amount(size) for size in (hints.get("outputs") or {}).values()))
