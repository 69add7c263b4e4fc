"""A cluster in memory whose runs teach later ones: what its steps take is noisy."""

import random
from datetime import timedelta
from typing import Any

from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_engine.contract.keys import SCHEDULER_LABEL
from kfp_placement_engine.contract.placement import FirstEnds
from tests.controller.planning import simulated_cluster
from tests.controller.planning.simulated_cluster import SimulatedCluster
from tests.controlplane.argo.small_workflows import NO_DEFAULTS, dag, step, task, workflow
from tests.controlplane.kubelet.kubelet import Kubelets
from tests.controlplane.kubelet.workload import Duration, Workload, WorkloadSettings
from tests.support.kubernetes import node_object
from tests.support.scraping import own_metric

TYPICAL_SECONDS = {"first": 120, "work": 240, "last": 60}
NOISE = 0.1
ITERATIONS = 2


class NoisyWorkload(Workload):
    """Steps take their typical time, a little more or less.

    Attributes:
        factor: by which steps take longer, by name.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(WorkloadSettings(driver_seconds=2, start_seconds=0))
        self._seed = seed
        self.factor: dict[str, float] = {}

    def duration(self, pod: Any, node: Any) -> Duration:
        """The same for a step of a run, whatever else is there."""
        template = pod["metadata"]["annotations"]["workflows.argoproj.io/node-name"]
        name = next(each for each in TYPICAL_SECONDS if each in template.rpartition(".")[2])
        noise = random.Random(f"{self._seed} {template}").lognormvariate(0, NOISE)
        return Duration(work=TYPICAL_SECONDS[name] * noise * self.factor.get(name, 1))


def a_run(name: str, iterations: int = ITERATIONS) -> dict[str, Any]:
    """Steps in a row, one of them a loop, without a hint.

    Args:
        name: of the run.
        iterations: of the loop.
    """
    metadata = {"labels": {SCHEDULER_LABEL: "kfp-placement"}}
    template = step("work", metadata=metadata)
    template["container"]["resources"] = {"requests": {"cpu": "1"}}
    names = [f"item-{each}" for each in range(iterations)]
    tasks = dag(
        "main",
        task("first"),
        task("work", depends="first", withItems=names),
        task("last", depends="work"),
    )
    run = workflow(tasks, template)
    run["metadata"].update(name=name, generateName="nightly-")
    return run


def a_coordinator() -> Coordinator:
    """One that learns."""
    return simulated_cluster.a_coordinator(evaluation_seconds=5, history=True)


class NoisyCluster(SimulatedCluster):
    """A cluster of two nodes whose runs teach later ones.

    Attributes:
        iterations: of the loop of each run.
        workload: what its steps take.
    """

    def __init__(
        self, seed: int = 0, coordinator: Coordinator | None = None, iterations: int = ITERATIONS
    ) -> None:
        nodes = (node_object(f"n{number}") for number in range(2))
        super().__init__(*nodes, coordinator=coordinator or a_coordinator())
        self.iterations = iterations
        self.workload = NoisyWorkload(seed)
        self.kubelets = Kubelets(self.workload)

    def begin_run(self, number: int, namespace: str = "team") -> str:
        """A run is submitted, ten minutes after whatever was before; returns its name."""
        self.now += timedelta(minutes=10)
        name = f"nightly-{number}" if namespace == "team" else f"nightly-{namespace}-{number}"
        run = a_run(name, self.iterations)
        self.submit(run, settings=NO_DEFAULTS, namespace=namespace)
        return name

    def simulate_run(self, number: int, namespace: str = "team") -> str:
        """Simulate a run from its submission to its end; return its name."""
        name = self.begin_run(number, namespace)
        self.run()
        return name

    def hand_over(self, successor: Coordinator | None = None, epoch: int = 2) -> None:
        """Another planner that learns leads from now on."""
        super().hand_over(successor or a_coordinator(), epoch)

    def first_ends(self, run: str) -> FirstEnds:
        """What was promised first of a run."""
        ends = self.placement(run).spec.first_ends
        assert ends is not None
        return ends


def promises_counted() -> dict[str, float]:
    """How many first promises have been compared with the ends of their runs, by outcome."""
    outcomes = ("early", "kept", "late")
    return {each: own_metric("run_promises_total", outcome=each) for each in outcomes}


def cluster_with_past(runs: int, **options: Any) -> NoisyCluster:
    """A noisy cluster in which so many runs have ended."""
    cluster = NoisyCluster(**options)
    for number in range(runs):
        cluster.simulate_run(number)
    return cluster
