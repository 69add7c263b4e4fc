"""Pipelines without marks, in namespaces that plan them all: simulated, and pod by pod."""

import json
from functools import partial
from typing import Any

import pytest

from kfp_placement import place
from kfp_placement_controller.kinds import PLACEMENT_METADATA
from kfp_placement_controller.observed.namespaces import ObservedNamespace
from kfp_placement_controller.observed.placed_runs import observe_placed_run
from kfp_placement_controller.sources.argo.source import ArgoSource
from kfp_placement_controller.sources.argo.workflow_object import WORKFLOWS
from kfp_placement_controller.watches.planned_pipelines import PlannedPipelines
from kfp_placement_engine.contract.keys import PIPELINES_LABEL
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import NAMESPACES, PODS
from tests.controller.end_to_end.small_pipelines import compiled_unmarked, unmarked_step
from tests.controller.planning.builders import START, a_pod
from tests.controller.planning.simulated_cluster import SimulatedCluster, a_coordinator
from tests.support.kubernetes import node_object

TEAM = ("", "team")
ALL = ObservedNamespace(all_pipelines=True)


class UnmarkedCluster(SimulatedCluster):
    """A cluster in memory, with the watch's own reader of runs."""

    def __init__(self, *, queues: bool = False, says: ObservedNamespace = ALL) -> None:
        super().__init__(node_object("n0"), coordinator=a_coordinator(queues=queues))
        self.pipelines = PlannedPipelines(reads_unplanned=queues)
        self.read[WORKFLOWS] = partial(self.pipelines.read, ArgoSource())
        self.says(says)

    def says(self, namespace: ObservedNamespace) -> None:
        """The namespace of all runs says this."""
        change = Change(TEAM, None, namespace)
        self.pipelines.changed(NAMESPACES, change)
        self.coordinator.handle(NAMESPACES, change, self.now)

    def see_placements(self) -> None:
        """What has been written is seen by its watch."""
        for key, placement in self.placements.items():
            raw = json.loads(json.dumps(placement.to_object()))
            change = Change(key, None, observe_placed_run(raw))
            self.pipelines.changed(PLACEMENT_METADATA, change)

    def begin(self, workflow: Any, name: str = "run") -> None:
        """Submit a run by this name."""
        workflow["metadata"]["name"] = name
        self.submit(workflow)

    def is_planned(self, name: str = "run") -> bool:
        return ("team", name) in self.placements

    def label(self, name: str = "run") -> str:
        """What the run's object says of its steps."""
        return (self.placement(name).metadata.labels or {}).get(PIPELINES_LABEL, "")


def a_run(**place_second: Any) -> Any:
    """Two steps without marks; the second may be placed."""

    def body() -> None:
        second = unmarked_step("second", unmarked_step("first"))
        if place_second:
            place(second, **place_second)

    return compiled_unmarked("made-up", body)


def marks(cluster: UnmarkedCluster) -> dict[str, str]:
    """What each step asks for, as the planner has read it."""
    reading = cluster.tracked("run").reading
    return {step.name: step.scheduler for step in reading.graph.steps}


@pytest.mark.parametrize("queues", [False, True])
def test_a_run_without_marks_is_planned_from_its_submission_to_its_end(queues):
    cluster = UnmarkedCluster(queues=queues)
    cluster.begin(a_run())
    cluster.run()
    assert (cluster.label(), cluster.phase("run")) == ("all", "Succeeded")
    assert cluster.states("run") == {"first": "succeeded", "second": "succeeded"}
    assert set(marks(cluster).values()) == {"kfp-placement"}


@pytest.mark.parametrize(
    ("says", "queues"),
    [
        (ObservedNamespace(), False),
        (ObservedNamespace(), True),
        # It takes no part.
        (ObservedNamespace("false", all_pipelines=True), False),
    ],
)
def test_where_nobody_asks_for_it_the_same_run_is_left_alone(says, queues):
    cluster = UnmarkedCluster(queues=queues, says=says)
    cluster.begin(a_run())
    cluster.run()
    assert cluster.writes == []


def test_a_step_that_opts_out_is_not_marked():
    cluster = UnmarkedCluster()
    cluster.begin(a_run(scheduler="default-scheduler"))
    cluster.look()
    assert marks(cluster) == {"first": "kfp-placement", "second": ""}


def test_a_run_all_of_whose_steps_opt_out_is_not_planned():
    def body() -> None:
        place(unmarked_step("only"), scheduler="default-scheduler")

    cluster = UnmarkedCluster()
    cluster.begin(compiled_unmarked("out", body))
    cluster.run()
    assert cluster.writes == []


def test_steps_of_a_marked_run_all_count():
    cluster = UnmarkedCluster()
    cluster.begin(a_run(type="Training"))
    cluster.look()
    assert set(marks(cluster).values()) == {"kfp-placement"}


@pytest.mark.parametrize("queues", [False, True])
def test_a_label_that_goes_ends_it_for_new_runs_and_planned_ones_go_on(queues):
    cluster = UnmarkedCluster(queues=queues)
    cluster.begin(a_run())
    cluster.look()
    assert cluster.is_planned()
    cluster.see_placements()
    cluster.says(ObservedNamespace())
    cluster.begin(a_run(), "later")
    cluster.run()
    assert cluster.phase("run") == "Succeeded"
    assert not cluster.is_planned("later")


def test_another_planner_goes_on_with_it():
    cluster = UnmarkedCluster()
    cluster.begin(a_run())
    cluster.look()
    cluster.see_placements()
    cluster.says(ObservedNamespace())
    before = cluster.placement("run")
    cluster.hand_over()
    cluster.run()
    after = cluster.placement("run")
    assert (after.spec.epoch, cluster.phase("run"), cluster.label()) == (2, "Succeeded", "all")
    assert after.spec.first_makespan_seconds == before.spec.first_makespan_seconds


@pytest.mark.parametrize("queues", [False, True])
def test_a_label_that_goes_before_there_is_a_plan_leaves_none(queues):
    cluster = UnmarkedCluster(queues=queues)
    cluster.begin(a_run())
    cluster.coordinator.follow()
    cluster.look()
    assert ("team", "run") in cluster.coordinator.registry.runs
    cluster.says(ObservedNamespace())
    cluster.run()
    assert ("team", "run") not in cluster.coordinator.registry.runs
    cluster.coordinator.lead(1, [], cluster.now)
    cluster.look()
    assert cluster.writes == []


# Pods: what asks for our scheduler is the same as for admission.


def asking(*pods: Any, namespace: ObservedNamespace | None = None) -> list[str]:
    """Names of the pods that ask for our scheduler."""
    registry = a_coordinator().registry
    if namespace is not None:
        registry.namespaces.seen["team"] = namespace
    for pod in pods:
        registry.pod_changed(Change(("team", pod.name), None, pod), START)
    return [pod.name for pod in registry.marked_pods()]


MARKED = a_pod("marked")
STEP = a_pod("step", scheduler_mark="", unmarked_step=True)
DRIVER = a_pod("driver", scheduler_mark="")


def test_unmarked_steps_ask_for_our_scheduler_where_their_namespace_does():
    assert asking(MARKED, STEP, DRIVER) == ["marked"]
    assert asking(MARKED, STEP, DRIVER, namespace=ObservedNamespace()) == ["marked"]
    assert asking(MARKED, STEP, DRIVER, namespace=ALL) == ["marked", "step"]


def test_those_of_a_planned_run_do_so_to_its_end():
    """They were given to our scheduler when they were made, and must not wait for a dead one."""
    cluster = UnmarkedCluster()
    cluster.begin(a_run())
    cluster.look()
    registry = cluster.coordinator.registry
    uid = cluster.tracked("run").observed.uid
    pod = a_pod("step", workflow_uid=uid, scheduler_mark="", unmarked_step=True)
    cluster.coordinator.handle(PODS, Change(("team", "step"), None, pod), cluster.now)
    for says in (ALL, ObservedNamespace()):
        cluster.says(says)
        assert registry.mark_of(pod) == "kfp-placement"
