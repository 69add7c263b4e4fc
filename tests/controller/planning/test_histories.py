"""Runs that teach the runs after them, played in memory: what is kept, and what is promised."""

import random
from datetime import timedelta
from typing import Any

import pytest

from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_controller.planning.parameters import PlanningParams
from kfp_placement_controller.planning.policy_in_force import PolicyInForce
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_engine.contract.keys import SCHEDULER_LABEL
from kfp_placement_engine.contract.placement import FirstEnds
from kfp_placement_engine.contract.resources import PipelineHistory, read_resource
from tests.controller.planning.builders import a_policy
from tests.controller.planning.played_cluster import NO_PULLS, PlayedCluster
from tests.controlplane.argo.small_workflows import NO_DEFAULTS, dag, step, task, workflow
from tests.controlplane.kubelet.kubelet import Kubelets
from tests.controlplane.kubelet.workload import Duration, Workload, WorkloadSettings
from tests.support.kubernetes import node_object

TYPICAL_SECONDS = {"first": 120, "work": 240, "last": 60}
NOISE = 0.1
RUNS, SEEDS = 15, 3
KNOWN_AFTER = 3
"""From the fourth run on promises must hold."""

LEAST_KEPT = 0.85
BEFORE = 6
"""Runs that are seen before something happens."""


class NoisyWorkload(Workload):
    """Steps take their typical time, a little more or less."""

    def __init__(self, seed: int) -> None:
        super().__init__(WorkloadSettings(driver_seconds=2, start_seconds=0))
        self._random = random.Random(seed)
        self.factor: dict[str, float] = {}

    def duration(self, pod: Any, node: Any) -> Duration:
        template = pod["metadata"]["annotations"]["workflows.argoproj.io/node-name"]
        name = next(each for each in TYPICAL_SECONDS if each in template.rpartition(".")[2])
        noise = self._random.lognormvariate(0, NOISE)
        return Duration(work=TYPICAL_SECONDS[name] * noise * self.factor.get(name, 1))


def a_run(number: int) -> dict[str, Any]:
    """Ten steps, eight of them in a loop, without a hint."""
    metadata = {"labels": {SCHEDULER_LABEL: "kfp-placement"}}
    template = step("work", metadata=metadata)
    template["container"]["resources"] = {"requests": {"cpu": "1"}}
    names = [f"item-{each}" for each in range(8)]
    tasks = dag(
        "main",
        task("first"),
        task("work", depends="first", withItems=names),
        task("last", depends="work"),
    )
    run = workflow(tasks, template)
    run["metadata"].update(name=f"nightly-{number}", generateName="nightly-")
    return run


def a_coordinator() -> Coordinator:
    return Coordinator(
        DEFAULT_SOURCES,
        policy=PolicyInForce(a_policy(**NO_PULLS)),
        params=PlanningParams(evaluation_seconds=5),
        history=True,
    )


class NoisyCluster(PlayedCluster):
    """A cluster whose runs teach later ones.

    Attributes:
        workload: what its steps take.
    """

    def __init__(self, seed: int = 0) -> None:
        nodes = (node_object(f"n{number}") for number in range(2))
        super().__init__(*nodes, coordinator=a_coordinator())
        self.workload = NoisyWorkload(seed)
        self.kubelets = Kubelets(self.workload)


def play(cluster: NoisyCluster, number: int) -> str:
    """One run, from its submission to its end."""
    cluster.now += timedelta(minutes=10)
    name = f"nightly-{number}"
    cluster.submit(a_run(number), settings=NO_DEFAULTS)
    cluster.run()
    return name


def history_of(cluster: NoisyCluster) -> PipelineHistory:
    ((_, raw),) = cluster.histories.stored.items()
    return read_resource(PipelineHistory, raw)


def first_ends(cluster: NoisyCluster, run: str) -> FirstEnds:
    ends = cluster.placement(run).spec.first_ends
    assert ends is not None
    return ends


def promise_holds(cluster: NoisyCluster, run: str) -> bool | None:
    """Whether the first promise of a run has held; None = there was none."""
    placement = cluster.placement(run)
    ends, status = placement.spec.first_ends, placement.status
    if ends is None:
        return None
    assert status is not None
    assert status.makespan_seconds is not None
    return ends.low <= status.makespan_seconds <= ends.high


def test_an_ended_run_is_kept():
    cluster = NoisyCluster()
    run = play(cluster, 0)
    history = history_of(cluster)
    assert history.spec.pipeline == "nightly"
    (past,) = history.past_runs()
    assert past.uid == "workflow-0"
    assert len(past.steps) == 10
    assert past.played_seconds is None
    assert past.seconds is not None
    assert cluster.placement(run).spec.first_ends is None
    assert cluster.placement(run).status is not None
    assert len({each.identity.iteration for each in past.steps}) == 9


def test_first_promises_hold_from_the_fourth_run_on():
    kept: list[bool | None] = []
    for seed in range(SEEDS):
        cluster = NoisyCluster(seed)
        of_seed = [promise_holds(cluster, play(cluster, number)) for number in range(RUNS)]
        assert of_seed[0] is None
        kept += of_seed[KNOWN_AFTER:]
    assert None not in kept
    assert sum(map(bool, kept)) >= LEAST_KEPT * len(kept)


def test_a_step_that_takes_longer_widens_the_next_promise_and_is_followed():
    cluster = NoisyCluster()
    for number in range(BEFORE):
        play(cluster, number)
    usual = first_ends(cluster, play(cluster, BEFORE))
    cluster.workload.factor["last"] = 3
    play(cluster, BEFORE + 1)
    widened = first_ends(cluster, play(cluster, BEFORE + 2))
    assert widened.high - widened.low > usual.high - usual.low
    runs = [play(cluster, BEFORE + 3 + number) for number in range(3)]
    assert promise_holds(cluster, runs[-1])
    expected = usual.typical + 2 * TYPICAL_SECONDS["last"]
    assert first_ends(cluster, runs[-1]).typical == pytest.approx(expected, rel=0.1)


def test_a_new_leader_goes_on_with_what_is_stored():
    """What it promises is what the one before it would have promised."""
    promised = []
    for is_handed_over in (False, True):
        cluster = NoisyCluster()
        for number in range(BEFORE):
            play(cluster, number)
        if is_handed_over:
            cluster.hand_over(a_coordinator(), 2)
        promised.append(first_ends(cluster, play(cluster, BEFORE)))
        assert len(history_of(cluster).past_runs()) == BEFORE + 1
    assert promised[0] == promised[1]


def test_a_new_leader_in_the_middle_of_a_run_keeps_its_promise():
    cluster = NoisyCluster()
    for number in range(BEFORE):
        play(cluster, number)
    run = "nightly-9"
    cluster.submit(a_run(9), settings=NO_DEFAULTS)
    cluster.run(lambda: len(cluster.pods()) >= len(TYPICAL_SECONDS) + 10 * BEFORE)
    promised = first_ends(cluster, run)
    cluster.hand_over(a_coordinator(), 2)
    cluster.run()
    assert first_ends(cluster, run) == promised
    assert history_of(cluster).past_runs()[-1].played_seconds == promised.played
