"""One planner in memory beside its active runs, with stored histories or without; prints JSON.

Run as a program: memory is that of a whole process. What searches is a process of its own here as
in a cluster; its plans are those that are made at once.
"""

import json
import os
import queue
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from kfp_placement_controller.actuators.search_worker import SearchWorker
from kfp_placement_controller.kinds import PIPELINE_HISTORIES
from kfp_placement_controller.loops.garbage import keep_what_is_there, look_less_often
from kfp_placement_controller.observed.histories import observe_history
from kfp_placement_controller.planning.actions import Action
from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_controller.planning.rounds import (
    PlanningRound,
    RoundFailure,
    RoundResult,
    plan_round,
)
from kfp_placement_controller.runs.parameters import PlanningParams
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_engine.contract.keys import API_VERSION, SCHEDULER_LABEL
from kfp_placement_engine.contract.resources import PlacementPolicy
from kfp_placement_kube.change import Change
from tests.controller.planning.builders import START, a_policy
from tests.controller.planning.played_cluster import NO_PULLS, PlayedCluster
from tests.controlplane.argo.small_workflows import NO_DEFAULTS, dag, step, task, workflow
from tests.controlplane.kubelet.kubelet import Kubelets
from tests.controlplane.kubelet.workload import Duration, Workload, WorkloadSettings
from tests.support.kubernetes import node_object
from tests.support.process_usage import memory_bytes

BESIDE_EACH_OTHER = 5
"""Steps of a run, each row after the one before."""

STEP_SECONDS, NOISE = 60.0, 0.2
NODES, IMAGES = 20, 20


@dataclass(frozen=True)
class HistorySizes:
    """How large.

    Attributes:
        namespaces: in which pipelines run.
        pipelines: of each namespace.
        steps: of each pipeline.
        runs: that are stored of each pipeline; none = nothing is installed.
        active: runs that go on.
        seconds: how long they are looked at.
    """

    namespaces: int = 10
    pipelines: int = 100
    steps: int = 50
    runs: int = 30
    active: int = 50
    seconds: int = 60


@dataclass(frozen=True)
class Found:
    """What was measured.

    Attributes:
        objects: PipelineHistories.
        json_bytes: of them.
        kept_bytes: of what is kept of them as text.
        start_seconds: until all are known, CPU.
        built_after_seconds: until all active runs were planned with their past; None = never.
        build_seconds: of CPU in the ticks until then.
        ticks: how many there were.
        tick_seconds: CPU, p50, p99 and the longest; of ticks that something was the reason of. In
            those between them the planner builds what it knows, some milliseconds each.
        memory: in RAM, at the end.
        most_memory: the largest it ever was.
        forecast_runs: active runs that are planned with their past.
    """

    objects: int
    json_bytes: int
    kept_bytes: int
    start_seconds: float
    built_after_seconds: float | None
    build_seconds: float
    ticks: int
    tick_seconds: tuple[float, float, float]
    memory: int
    most_memory: int
    forecast_runs: int


class _Steady(Workload):
    """Steps take a minute, a little more or less."""

    def __init__(self) -> None:
        super().__init__(WorkloadSettings(driver_seconds=2, start_seconds=0))
        self._random = random.Random(0)

    def duration(self, pod: Any, node: Any) -> Duration:
        """Drawn once, when the pod starts."""
        return Duration(work=STEP_SECONDS * self._random.lognormvariate(0, NOISE))


class _Cluster(PlayedCluster):
    """Counts what ticks take, and lets them follow each other as fast as they do in a cluster."""

    def __init__(self, coordinator: Coordinator) -> None:
        super().__init__(
            *(node_object(f"n{number}") for number in range(NODES)), coordinator=coordinator
        )
        self.kubelets = Kubelets(_Steady())
        self._answers: queue.SimpleQueue[RoundResult | RoundFailure] = queue.SimpleQueue()
        self.searcher = SearchWorker(self._answers.put, _plan_at_once)
        self.searcher.start()
        self.search = self._search
        self.place = self._any_node
        self.tick_seconds: list[float] = []
        self._is_catching_up = False
        self.built_at: datetime | None = None
        self.build_seconds = 0.0
        self._tick = coordinator.tick
        coordinator.tick = self._timed_tick  # type: ignore[method-assign]

    def play(self, seconds: float) -> None:
        """Let as much time pass."""
        last_at = self.now + timedelta(seconds=seconds)
        while self.now < last_at:
            before_at = self.now
            self.step(lambda: False)
            self._catch_up((self.now - before_at).total_seconds())
            # What tests look at; a planner keeps none of it.
            for said in (self.rounds, self.writes, self.announced, self.deviations):
                said.clear()

    def _catch_up(self, seconds: float) -> None:
        """What is left to do, the planner does until something happens."""
        until = time.monotonic() + seconds
        self._is_catching_up = True
        while self.coordinator.histories.pasts.is_building and time.monotonic() < until:
            for action in self.coordinator.tick(self.now):
                self.carry_out(action)
        self._is_catching_up = False

    def _search(self, asked: PlanningRound) -> RoundResult | RoundFailure:
        self.searcher.submit(asked)
        return self._answers.get()

    def _timed_tick(self, now: datetime) -> list[Action]:
        before = time.process_time()
        actions = self._tick(now)
        taken = time.process_time() - before
        if not self._is_catching_up:
            self.tick_seconds.append(taken)
        if self.built_at is None:
            self.build_seconds += taken
            readings = [run.reading for run in self.coordinator.registry.runs.values()]
            if readings and all(each is not None and each.past is not None for each in readings):
                self.built_at = now
        return actions

    def _any_node(self, pod: dict[str, Any]) -> str:
        """Room plays no part here."""
        number = sum(map(ord, pod["metadata"]["name"]))
        return self._planned(pod) or f"n{number % NODES}"


def _plan_at_once(asked: PlanningRound) -> RoundResult:
    return plan_round(replace(asked, options=replace(asked.options, quick=True)))


def measure(sizes: HistorySizes) -> Found:
    """All of it."""
    coordinator = Coordinator(
        DEFAULT_SOURCES,
        time.monotonic,
        policy=PlacementPolicy(spec=a_policy(**NO_PULLS)),
        params=PlanningParams(evaluation_seconds=5),
        history=sizes.runs > 0,
    )
    look_less_often()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "histories"
        _in_a_child(path, sizes)
        started = time.process_time()
        kept_bytes = _observe(coordinator, path)
        start_seconds = time.process_time() - started
    keep_what_is_there()
    cluster = _Cluster(coordinator)
    for number in range(sizes.active):
        name, namespace = _pipeline(number // sizes.namespaces), f"ns-{number % sizes.namespaces}"
        run = _run(name, sizes.steps)
        run["metadata"]["name"] = f"{name}-{number}"
        cluster.submit(run, settings=NO_DEFAULTS, namespace=namespace)
    began_at = cluster.now
    cluster.play(sizes.seconds)
    memory = memory_bytes(os.getpid())
    most_memory = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cluster.searcher.stop()
    built_at, ticks = cluster.built_at, sorted(cluster.tick_seconds)
    known = [run.reading for run in coordinator.registry.runs.values()]
    return Found(
        objects=coordinator.histories.objects,
        json_bytes=coordinator.histories.json_bytes,
        kept_bytes=kept_bytes,
        start_seconds=start_seconds,
        built_after_seconds=None if built_at is None else (built_at - began_at).total_seconds(),
        build_seconds=cluster.build_seconds,
        ticks=len(ticks),
        tick_seconds=(ticks[len(ticks) // 2], ticks[int(len(ticks) * 0.99)], ticks[-1]),
        memory=memory,
        most_memory=most_memory,
        forecast_runs=sum(each is not None and each.forecast is not None for each in known),
    )


def _observe(coordinator: Coordinator, path: Path) -> int:
    kept_bytes = 0
    with path.open("rb") as lines:
        for line in lines:
            raw = orjson.loads(line)
            metadata = raw["metadata"]
            observed = observe_history(raw)
            kept_bytes += len(observed.packed)
            key = (metadata["namespace"], metadata["name"])
            coordinator.handle(PIPELINE_HISTORIES, Change(key, None, observed), START)
    return kept_bytes


def _in_a_child(path: Path, sizes: HistorySizes) -> None:
    """Write all histories, one a line; what that takes is not the planner's."""
    child = os.fork()
    if child == 0:
        with path.open("wb") as lines:
            for number in range(sizes.namespaces * sizes.pipelines if sizes.runs else 0):
                lines.write(orjson.dumps(_history(number, sizes), option=orjson.OPT_APPEND_NEWLINE))
        os._exit(0)
    os.waitpid(child, 0)


def _history(number: int, sizes: HistorySizes) -> dict[str, Any]:
    rng = random.Random(number)
    pipeline = _pipeline(number // sizes.namespaces)
    steps = [
        (f"step-{each}", f"{rng.getrandbits(32):08x}", f"{each % IMAGES:08x}")
        for each in range(sizes.steps)
    ]
    return {
        "apiVersion": API_VERSION,
        "kind": "PipelineHistory",
        "metadata": {"name": pipeline, "namespace": f"ns-{number % sizes.namespaces}"},
        "spec": {"pipeline": pipeline},
        "status": {
            "nodes": [f"n{each}" for each in range(NODES)],
            "steps": steps,
            "runs": list(_runs(number, sizes, rng)),
            "runsSeen": sizes.runs,
        },
    }


def _runs(number: int, sizes: HistorySizes, rng: random.Random) -> Iterator[dict[str, Any]]:
    expected = STEP_SECONDS * sizes.steps / BESIDE_EACH_OTHER
    for run in range(sizes.runs):
        ended_at = START - timedelta(days=sizes.runs - run, minutes=number % 1440)
        slow = rng.lognormvariate(0, 0.1)
        yield {
            "uid": f"00000000-0000-0000-0000-{number:06d}{run:06d}",
            "endedAt": ended_at.isoformat(),
            "plannedSeconds": round(expected, 1),
            "seconds": round(expected * slow, 1),
            "steps": [
                [
                    step,
                    [
                        [
                            round(STEP_SECONDS * slow * rng.lognormvariate(0, NOISE), 1),
                            rng.randrange(NODES),
                        ]
                    ],
                ]
                for step in range(sizes.steps)
            ],
        }


def _pipeline(number: int) -> str:
    return f"pipeline-{number}"


def _run(pipeline: str, steps: int) -> dict[str, Any]:
    template = step("work", metadata={"labels": {SCHEDULER_LABEL: "kfp-placement"}})
    template["container"]["resources"] = {"requests": {"cpu": "10m"}}
    tasks = [
        task(f"step-{number}", **({"depends": f"step-{before}"} if before >= 0 else {}))
        for number, before in ((each, each - BESIDE_EACH_OTHER) for each in range(steps))
    ]
    run = workflow(dag("main", *tasks), template)
    run["metadata"]["generateName"] = f"{pipeline}-"
    return run


if __name__ == "__main__":
    print(json.dumps(asdict(measure(HistorySizes(**json.loads(sys.argv[1]))))))
