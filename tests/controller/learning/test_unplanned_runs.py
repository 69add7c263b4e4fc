"""Pipelines that nobody plans teach, simulated in memory with the watch's own readers."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import yaml

from kfp_placement_controller.kinds import PIPELINE_HISTORIES
from kfp_placement_controller.learning import unplanned_runs
from kfp_placement_controller.learning.ended_pipelines import EndedPipeline
from kfp_placement_controller.observed.histories import observe_history
from kfp_placement_controller.observed.namespaces import Namespaces, ObservedNamespace
from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_controller.sources.argo.source import ArgoSource
from kfp_placement_controller.sources.argo.workflow_object import WORKFLOWS
from kfp_placement_controller.watches.ended_pipelines import EndedPipelines
from kfp_placement_controller.watches.planned_pipelines import PlannedPipelines
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import NAMESPACES
from tests.controller.end_to_end.small_pipelines import compiled_unmarked, unmarked_step
from tests.controller.planning import simulated_cluster
from tests.controller.planning.builders import START, after
from tests.controller.planning.simulated_cluster import SimulatedCluster
from tests.controlplane.kubelet.drivers import DriverChoices
from tests.controlplane.kubelet.kubelet import Kubelets
from tests.controlplane.kubelet.workload import Workload, WorkloadSettings
from tests.support.data import data_path
from tests.support.defects import fail
from tests.support.kubernetes import node_object

TEAM = ("", "team")
OTHERS = 5


def a_coordinator(*, opt_in: bool = False, history: bool = True) -> Coordinator:
    return simulated_cluster.a_coordinator(evaluation_seconds=5, opt_in=opt_in, history=history)


class UnplannedCluster(SimulatedCluster):
    """A cluster whose watch reads runs as `plan` does."""

    def __init__(self, *, opt_in: bool = False, history: bool = True) -> None:
        super().__init__(
            node_object("n0"), coordinator=a_coordinator(opt_in=opt_in, history=history)
        )
        self.handed_over: list[EndedPipeline] = []
        self.place = lambda _pod: "n0"
        self.ended = EndedPipelines(PlannedPipelines(), self._tell, Namespaces(opt_in=opt_in))
        self.read[WORKFLOWS] = partial(self.ended.read, ArgoSource())

    def says(self, namespace: ObservedNamespace) -> None:
        """The namespace of all runs says this."""
        change = Change(TEAM, None, namespace)
        self.ended.changed(NAMESPACES, change)
        self.coordinator.handle(NAMESPACES, change, self.now)

    def submit_unmarked(
        self, name: str = "run", workflow: Any = None, choices: DriverChoices | None = None
    ) -> None:
        """A run without a mark begins."""
        run = workflow or a_run()
        run["metadata"]["name"] = name
        self.kubelets = Kubelets(Workload(WorkloadSettings(driver_seconds=2)), choices)
        self.submit(run, choices=choices)

    def settle(self) -> None:
        """All runs end, and what they teach is written."""
        self.run()
        self.pass_time(60)

    def teach(
        self, name: str = "run", workflow: Any = None, choices: DriverChoices | None = None
    ) -> None:
        """A run without a mark, from its beginning to what is learned of it."""
        self.submit_unmarked(name, workflow, choices)
        self.settle()

    def _tell(self, run: EndedPipeline) -> None:
        self.handed_over.append(run)
        self.coordinator.pipeline_ended(run)


@pytest.fixture
def cluster():
    return UnplannedCluster()


def a_run() -> Any:
    """Two steps of KFP that nobody has marked."""

    def body() -> None:
        unmarked_step("second", unmarked_step("first"))

    return compiled_unmarked("nightly", body)


def test_a_run_that_nobody_plans_teaches_its_steps_and_gets_no_plan(cluster):
    cluster.teach()
    history = cluster.history()
    (past,) = history.past_runs()
    assert history.spec.pipeline == "nightly"
    assert past.uid == "workflow-0"
    assert {each.identity.step: each.node for each in past.steps} == {"first": "n0", "second": "n0"}
    assert all((each.seconds or 0) > 0 and each.identity.component for each in past.steps)
    assert past.seconds is not None
    assert cluster.writes == []
    assert cluster.rounds == []
    assert not cluster.coordinator.registry.runs


def test_it_is_learned_from_once_however_often_its_object_changes(cluster):
    cluster.teach()
    workflow = cluster.workflows["run"].workflow
    workflow["metadata"].setdefault("labels", {})["pipeline/persistedFinalState"] = "true"
    cluster.is_changed = True
    cluster.settle()
    assert len(cluster.handed_over) == 1
    assert len(cluster.history().past_runs()) == 1


def test_a_label_on_a_run_does_not_bring_back_a_history_that_somebody_has_deleted(cluster):
    """Also where the planner has found it written when it started."""
    cluster.teach()
    ((key, raw),) = cluster.histories.stored.items()
    started = UnplannedCluster()
    kept = observe_history(raw)
    started.ended.changed(PIPELINE_HISTORIES, Change(key, None, kept))
    started.ended.changed(PIPELINE_HISTORIES, Change(key, kept, None))
    started.ended.read(ArgoSource(), cluster.workflows["run"].workflow)
    assert cluster.handed_over
    assert started.handed_over == []


def test_a_planner_that_starts_learns_from_what_is_there_still():
    cluster = UnplannedCluster(history=False)
    cluster.teach()
    assert not cluster.histories.stored
    ended_pipelines = list(cluster.handed_over)
    cluster.hand_over(a_coordinator())
    for each in ended_pipelines:
        cluster.coordinator.pipeline_ended(each)
    cluster.settle()
    (past,) = cluster.history().past_runs()
    assert len(past.steps) == 2


def test_one_that_only_follows_knows_it_when_it_leads(cluster):
    cluster.coordinator.follow()
    cluster.teach()
    assert not cluster.histories.stored
    cluster.coordinator.lead(2, [], cluster.now)
    cluster.settle()
    assert len(cluster.history().past_runs()) == 1


@pytest.mark.parametrize(
    ("opt_in", "says"),
    [(False, ObservedNamespace("false")), (True, ObservedNamespace()), (True, None)],
)
def test_a_namespace_that_takes_no_part_teaches_nothing(opt_in, says):
    cluster = UnplannedCluster(opt_in=opt_in)
    cluster.says(says or ObservedNamespace("no"))
    cluster.teach()
    assert cluster.handed_over == []
    assert not cluster.histories.stored


def test_one_that_asks_to_take_part_teaches():
    cluster = UnplannedCluster(opt_in=True)
    cluster.says(ObservedNamespace("true"))
    cluster.teach()
    assert len(cluster.histories.stored) == 1


def test_a_run_that_is_deleted_before_its_end_teaches_nothing(cluster):
    cluster.submit_unmarked()
    cluster.run(lambda: any(pod["status"]["phase"] == "Succeeded" for pod in cluster.pods()))
    del cluster.workflows["run"]
    cluster.is_changed = True
    cluster.settle()
    assert cluster.handed_over == []
    assert not cluster.histories.stored


def test_workflows_that_are_no_pipelines_are_left_alone(cluster):
    run = a_run()
    run["spec"] = {"entrypoint": "main", "templates": [{"name": "main", "container": {}}]}
    raw = {**run, "status": {"phase": "Succeeded", "finishedAt": "2026-01-05T08:00:00Z"}}
    assert ArgoSource().pipeline_end(raw) is None
    assert cluster.handed_over == []


@pytest.mark.parametrize("phase", [{}, ["Succeeded"], 7, None])
def test_a_phase_that_is_not_a_text_ends_nothing(phase):
    assert ArgoSource().pipeline_end({**a_run(), "status": {"phase": phase}}) is None


LOOPS = DriverChoices(iteration_counts={"for-loop-2": 5})


def loops() -> Any:
    """KFP's own pipeline of loops, of which one has its width only at run time."""
    text = data_path("kfp-2.17.0", "workflows", "pipeline_with_loops.yaml").read_text("utf-8")
    return yaml.load(text, yaml.CSafeLoader)


def loop_width(cluster: UnplannedCluster, name: str) -> tuple[int, int]:
    """How wide the loop is planned, and how many runs that rests on."""
    reading = cluster.tracked(name).reading
    (loop,) = (each for each in reading.graph.groups if each.name == "for-loop-2")
    return loop.width, loop.learned_width.runs if loop.learned_width else 0


def test_a_loop_is_planned_as_wide_as_it_was_in_the_runs_before(cluster):
    for number in range(2):
        cluster.teach(f"run-{number}", loops(), LOOPS)
    first, second = cluster.history().past_runs()
    widths = first.loops
    assert widths["for-loop-2"] == 5
    assert first.loops == second.loops
    cluster.says(ObservedNamespace(all_pipelines=True))
    cluster.submit_unmarked("run-2", loops(), LOOPS)
    cluster.step(lambda: bool(cluster.coordinator.registry.runs))
    assert loop_width(cluster, "run-2") == (5, 2)


def test_a_run_tells_of_its_loop_what_past_runs_cannot(cluster):
    cluster.teach("run-0", loops(), LOOPS)
    cluster.says(ObservedNamespace(all_pipelines=True))
    cluster.submit_unmarked("run-1", loops(), DriverChoices(iteration_counts={"for-loop-2": 2}))
    cluster.step(lambda: bool(cluster.coordinator.registry.runs))
    assert loop_width(cluster, "run-1") == (5, 1)
    cluster.settle()
    assert loop_width(cluster, "run-1") == (2, 0)


def test_a_loop_that_was_empty_and_has_one_iteration_now_is_not_taken_for_empty(cluster):
    """It was planned with one, as it might run; samples were without."""
    for number in range(3):
        empty = DriverChoices(iteration_counts={"for-loop-2": 0})
        cluster.teach(f"run-{number}", loops(), empty)
    cluster.says(ObservedNamespace(all_pipelines=True))
    cluster.submit_unmarked("run-3", loops(), DriverChoices(iteration_counts={"for-loop-2": 1}))
    cluster.step(lambda: bool(cluster.coordinator.registry.runs))
    assert loop_width(cluster, "run-3") == (1, 3)
    cluster.run(lambda: loop_width(cluster, "run-3") == (1, 0))
    assert cluster.states("run-3")["for-loop-2[0].print-struct"] == "pending"


def test_what_came_from_the_cache_teaches_nothing(cluster):
    cluster.teach("run", a_run(), DriverChoices(cached=frozenset({"first"})))
    (past,) = cluster.history().past_runs()
    assert [each.identity.step for each in past.steps] == ["second"]


def waiting(number: int, size: int = 100, namespace: str = "team") -> EndedPipeline:
    key = RunKey(namespace, f"r{number}")
    return EndedPipeline(key, WORKFLOWS, after(number), b"x" * size)


def test_what_waits_to_be_learned_from_is_bounded(monkeypatch):
    monkeypatch.setattr(unplanned_runs, "MOST_BYTES", 100 * OTHERS)
    runs = a_coordinator().learning.unplanned
    for number in range(2 * OTHERS):
        runs.add(waiting(number), START.timestamp())
    due_runs = runs.due(after(10).timestamp())
    assert [each.key.name for each in due_runs] == [
        f"r{number}" for number in range(OTHERS, 2 * OTHERS)
    ]
    assert runs.pause_seconds(after(10).timestamp()) is None


def test_who_has_most_that_waits_loses_some_first(monkeypatch, caplog):
    monkeypatch.setattr(unplanned_runs, "MOST_BYTES", 10_000)
    runs = a_coordinator().learning.unplanned
    for number in range(OTHERS):
        runs.add(waiting(number), START.timestamp())
    for number in range(10 * OTHERS):
        runs.add(waiting(100 + number, 1_000, "greedy"), START.timestamp())
    due_runs = []
    while runs.pause_seconds(after(1_000).timestamp()) is not None:
        due_runs += runs.due(after(1_000).timestamp())
    assert [each.key.namespace for each in due_runs[:4]] == ["team", "greedy"] * 2
    assert [each.key.namespace for each in due_runs].count("team") == OTHERS
    assert len(due_runs) == OTHERS + 9
    assert due_runs[-1].key.name == f"r{99 + 10 * OTHERS}"
    assert len(caplog.messages) == 1
    assert "namespace greedy: more runs have ended" in caplog.messages[0]


def test_a_run_that_is_heard_of_twice_with_one_end_stops_nothing():
    coordinator = a_coordinator()
    coordinator.monotonic = lambda: 0.0
    for size in (100, 101):
        coordinator.pipeline_ended(waiting(1, size))
    coordinator.monotonic = lambda: 10.0
    coordinator.tick(after(10))
    assert coordinator.learning.unplanned.pause_seconds(10.0) is None


def test_a_defect_in_what_waits_holds_up_no_plan(monkeypatch, caplog):
    coordinator = a_coordinator()
    for name in ("due", "add"):
        monkeypatch.setattr(coordinator.learning.unplanned, name, fail)
    coordinator.pipeline_ended(waiting(1))
    coordinator.tick(after(10))
    assert len(caplog.messages) == 1


def test_only_a_few_are_learned_from_between_two_decisions(monkeypatch):
    monkeypatch.setattr(unplanned_runs, "MOST_BYTES_AT_ONCE", 150)
    runs = a_coordinator().learning.unplanned
    for number in range(3):
        runs.add(waiting(number), START.timestamp())
    assert runs.due(START.timestamp()) == []  # their pods may not have been heard of
    assert [len(runs.due(after(10).timestamp())) for _ in range(3)] == [2, 1, 0]


def test_what_cannot_be_read_teaches_nothing_and_stops_nothing(cluster):
    cluster.coordinator.pipeline_ended(waiting(1))
    cluster.teach()
    assert len(cluster.histories.stored) == 1


def test_who_writes_old_ends_keeps_no_other_run_from_being_learned_from(cluster):
    """A Workflow a second that says it ended years ago, each before the one before."""
    cluster.teach()
    (pipeline,) = cluster.handed_over
    unplanned, now = cluster.coordinator.learning.unplanned, cluster.now
    victim = replace(pipeline, key=RunKey("team", "victim"), ended_at=now)
    unplanned.add(victim, now.timestamp())
    learned: list[str] = []
    for second in range(5):
        at = now + timedelta(seconds=second)
        old = now - timedelta(days=365, seconds=second)
        unplanned.add(
            replace(pipeline, key=RunKey("team", f"old-{second}"), ended_at=old), at.timestamp()
        )
        learned += [
            each.key.name for each in unplanned.due((at + timedelta(milliseconds=100)).timestamp())
        ]
    assert learned[:2] == ["old-0", "victim"]
    assert learned[2:] == ["old-1", "old-2", "old-3"]
