"""The lead case on a real control plane: the default scheduler, then gates, and both time lines."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from kfp_placement_engine.contract.keys import SCHEDULER_LABEL, STORE_BANDWIDTH_LABEL
from kfp_placement_engine.plans.comparison import ScheduledStep
from kfp_placement_engine.render.text_time_line import time_lines
from kfp_placement_kube.kinds import JsonObject
from tests.controller.cluster_bench.recorder import Recorder, SeenPod
from tests.controller.cluster_bench.runs import UNMARKED_LABEL, unmarked
from tests.controller.demonstration import Say
from tests.controlplane import objects
from tests.controlplane.exceptions import ControlPlaneError
from tests.support.installation import Installation
from tests.support.renderings import schedule_of
from tests.support.runnable_workflow import read_package
from tests.support.samples import SAMPLES
from tests.support.taxi_cluster import with_durations

SAMPLE = "04_unequal_steps"
LOOK_SECONDS = 0.1
TIMEOUT_SECONDS = 600.0
STORE_BYTES_PER_SECOND = 125e6
"""Assumed bandwidth of a node that states none, before it is scaled."""


@dataclass(frozen=True)
class TimedRun:
    """A run that has ended.

    Attributes:
        seconds: from its submission to its end.
        steps: where and when each step ran.
    """

    seconds: float
    steps: tuple[ScheduledStep, ...]


def lead_nodes(shorter: int) -> list[JsonObject]:
    """The nodes of the sample's Cluster file; transfers are as much shorter as the steps."""
    text = (SAMPLES / SAMPLE / "cluster.yaml").read_text("utf-8")
    (group,) = yaml.safe_load(text)["nodes"]
    room = {"cpu": str(group["cpu"]), "memory": group["memory"]}
    labels = {STORE_BANDWIDTH_LABEL: f"{STORE_BYTES_PER_SECOND * shorter:.0f}"}
    return [
        objects.node(f"{group['name']}-{number}", room, labels, images=group["images"])
        for number in range(1, group["count"] + 1)
    ]


def lead_workflow(shorter: int) -> JsonObject:
    """The sample's run, shortened."""
    return with_durations(read_package(SAMPLES / SAMPLE / "pipeline.yaml"), 1 / shorter)


class LeadCase:
    """Runs the sample on an installation with gates.

    Args:
        installation: where.
        recorder: what watches it.
        shorter: steps take such a part of their time.
        say: prints a line.
    """

    def __init__(
        self, installation: Installation, recorder: Recorder, shorter: int, say: Say
    ) -> None:
        self._installation = installation
        self._recorder = recorder
        self._workflow = lead_workflow(shorter)
        self._say = say

    def by_default(self, namespace: str) -> TimedRun:
        """Run the sample without marks: the default scheduler places it."""
        return self._run(unmarked(self._workflow), namespace)

    def with_gates(self, namespace: str, submitted: Say = lambda run: None) -> TimedRun:
        """Run the sample as it is; `submitted` is told its name."""
        return self._run(self._workflow, namespace, submitted)

    def _run(
        self, workflow: JsonObject, namespace: str, submitted: Say = lambda run: None
    ) -> TimedRun:
        started = time.monotonic()
        run = self._installation.submit(workflow, namespace)
        submitted(run)
        seen, shown_steps = self._recorder.run((namespace, run)), set[str]()
        while seen.ended_at is None:
            if time.monotonic() > started + TIMEOUT_SECONDS:
                raise ControlPlaneError(f"{run} does not end: {self._installation.logs()}")
            for step in sorted(self._started(namespace, started), key=lambda s: s.start_seconds):
                if step.name not in shown_steps:
                    shown_steps.add(step.name)
                    self._say(f"{step.start_seconds:8.1f} s  {step.name:12}on {step.node}")
            time.sleep(LOOK_SECONDS)
        if seen.phase != "Succeeded":
            raise ControlPlaneError(f"{run} has {seen.phase.lower()}: {self._installation.logs()}")
        ended = seen.ended_at - started
        self._say(f"{ended:8.1f} s  the run has succeeded")
        return TimedRun(ended, tuple(self._started(namespace, started)))

    def _started(self, namespace: str, since: float) -> Iterator[ScheduledStep]:
        """The steps whose pods run or have run."""
        for pod in self._recorder.pods(namespace):
            if pod.is_executor and pod.running_at is not None:
                end = pod.ended_at or time.monotonic()
                yield ScheduledStep(pod.step(), pod.node, pod.running_at - since, end - since)


def verdict(default: TimedRun, gates: TimedRun) -> list[str]:
    """Both time lines, and how far the second is ahead."""
    change = 1 - gates.seconds / default.seconds
    lines = time_lines(
        (
            schedule_of(f"The default scheduler: {default.seconds:.1f} s", default.steps),
            schedule_of(f"Gates, by the plan: {gates.seconds:.1f} s", gates.steps),
        )
    )
    word = "earlier" if change >= 0 else "later"
    return ["", *lines, "", f"Gates end {abs(change):.1%} {word} than the default scheduler."]


def _is_executor(pod: SeenPod) -> bool:
    labels = pod.latest["metadata"].get("labels") or {}
    return SCHEDULER_LABEL in labels or UNMARKED_LABEL in labels
