"""Why a pod that another scheduler has bound is not on its planned node."""

from typing import TYPE_CHECKING

import pytest

from kfp_placement_controller.observed.namespaces import ObservedNamespace
from kfp_placement_controller.planning.cluster_state import ClusterState
from kfp_placement_controller.planning.deviations import DeviationWatch
from kfp_placement_controller.planning.gates import Cause, OpenGate
from kfp_placement_controller.runs.current_plan import CurrentPlan
from kfp_placement_controller.runs.run_reading import RunReading
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_controller.sources.argo.workflows import WorkflowIndex
from kfp_placement_controller.sources.load import Load
from kfp_placement_engine.contract.keys import PLAN_GATE
from kfp_placement_engine.contract.rows import PlannedRow
from kfp_placement_engine.model.node_rules.constraints import NOT_READY_TAINT
from kfp_placement_engine.plans.assumptions import Assumptions
from tests.controller.planning.builders import a_pod, a_policy, a_workflow, after, pod_change
from tests.support.builders import a_node, a_run, a_step

if TYPE_CHECKING:
    from kfp_placement_controller.observed.pods import ObservedPod

STOCK = "default-scheduler"
ALREADY_OVERDUE = 3600.0


class Scene:
    """A run with one step, planned on `a` (4 CPU); `b` is another node."""

    def __init__(self, *, leads: bool = True, **policy) -> None:
        self.policy = a_policy(**policy)
        self.leads = leads
        self.cluster = ClusterState(Load(DEFAULT_SOURCES))
        for name in ("a", "b"):
            self.cluster.nodes[name] = a_node(name)
        graph = a_run(a_step("work"))
        reading = RunReading(graph, WorkflowIndex(graph, "run"), {}, Assumptions())
        self.run = TrackedRun(a_workflow(), reading)
        self.plan_on("a")
        self.registry = RunRegistry(
            lambda: self.policy, DEFAULT_SOURCES, runs={self.run.key: self.run}
        )
        self.watch = DeviationWatch(self.registry, self.cluster)
        self.seen: ObservedPod | None = None

    def plan_on(self, node):
        row = PlannedRow("work", node=0, start_seconds=0, finish_seconds=10)
        self.run.put_into_force(CurrentPlan(1, after(0), {"work": row}, (node,)))

    def pod(self, seconds=1.0, **fields):
        """The pod is seen as it is now."""
        given = {"scheduler_name": STOCK, "argo_node_name": "run.work", **fields}
        pod, old = a_pod(**given), self.seen
        self.seen = pod
        self.cluster.load.change(old, pod)
        change = pod_change(pod, old)
        self.registry.pod_changed(change, after(seconds))
        self.watch.pod_changed(change, self.policy, after(seconds), leads=self.leads)
        return pod

    def gated(self):
        return self.pod(gates=(PLAN_GATE,))

    def release(self, cause, node=""):
        """Our gate is on, we decide that it comes off, and it does."""
        self.watch.released([OpenGate(self.gated(), cause, node)])
        self.pod()

    def other_pod(self, cpu):
        """Somebody else's pod takes room of the planned node."""
        other = a_pod("other", node_name="a", workflow="", requests={"cpu": cpu})
        self.cluster.load.change(None, other)

    def deviations(self):
        """[(ground, reason)] since the last call."""
        noticed = self.watch.noticed()
        for each in noticed:
            assert each.message == f"planned on a, placed on b: {each.why}"
        return [(each.reason, each.why) for each in noticed]

    def reasons(self):
        return [reason for reason, _ in self.deviations()]


@pytest.fixture
def scene():
    return Scene()


@pytest.mark.parametrize("cause", [Cause.OVERDUE, Cause.PAUSED, Cause.NOT_PLANNED, Cause.NODE_GONE])
def test_a_gate_that_came_off_without_a_node(scene, cause, golden):
    scene.release(cause)
    scene.pod(node_name="b")
    ((ground, why),) = scene.deviations()
    assert ground == cause
    golden(why)


def test_what_kept_an_overdue_pod_waiting_is_told_too(scene, golden):
    scene.release(Cause.OVERDUE)
    scene.other_pod(cpu=3500)
    scene.pod(node_name="b")
    ((ground, why),) = scene.deviations()
    assert ground == "overdue"
    golden(why)


def taken(scene):
    scene.other_pod(cpu=3001)


def lost(scene):
    del scene.cluster.nodes["a"]


def cordoned(scene):
    scene.cluster.nodes["a"] = a_node("a", unschedulable=True)


def not_ready(scene):
    scene.cluster.nodes["a"] = a_node("a", taints=(NOT_READY_TAINT,))


@pytest.mark.parametrize(
    ("before_bind", "reason", "why"),
    [
        (taken, "left-out", "not enough cpu free"),
        (lost, "left-out", "it is gone"),
        (cordoned, "left-out", "it is cordoned"),
        (not_ready, "left-out", "it is not ready"),
        (
            lambda scene: None,
            "scores",
            "it had room; default-scheduler preferred another by its own rules and scores",
        ),
    ],
)
def test_a_gate_that_came_off_in_turn(scene, before_bind, reason, why):
    scene.release(Cause.TURN, "a")
    before_bind(scene)
    scene.pod(node_name="b")
    assert scene.deviations() == [(reason, why)]


def test_room_that_is_just_enough_is_room(scene):
    scene.release(Cause.TURN, "a")
    scene.other_pod(cpu=3000)
    scene.pod(node_name="b")
    assert scene.reasons() == ["scores"]


@pytest.mark.parametrize("released_for", ["b", "c"])
def test_a_plan_that_changed_between_gate_and_bind(scene, released_for):
    scene.plan_on(released_for)
    scene.release(Cause.TURN, released_for)
    scene.plan_on("a")
    scene.pod(node_name="b")
    why = f"the pod's gate came off for {released_for}, then the plan changed"
    assert scene.deviations() == [("replanned", why)]


def test_a_gate_that_somebody_else_took_off(scene):
    scene.gated()
    scene.pod()
    scene.pod(node_name="b")
    why = "somebody other than this planner took the pod's gate off"
    assert scene.deviations() == [("by-others", why)]


def test_a_gate_that_others_took_off_by_our_rules():
    """The extender and the job `release` hold to the same deadline, people pause first."""
    late, paused = Scene(), Scene(paused=True)
    for scene in (late, paused):
        scene.gated()
        scene.pod(ALREADY_OVERDUE, node_name="b")
    assert late.reasons() == ["overdue"]
    assert paused.reasons() == ["paused"]


def test_after_a_restart_it_is_told_whether_there_was_room(golden):
    """Its gate was off when we began to watch."""
    roomy, full = Scene(), Scene()
    full.other_pod(cpu=4000)
    for scene in (roomy, full):
        scene.pod()
        scene.pod(node_name="b")
    ((ground, why),) = roomy.deviations()
    assert ground == "no-gate"
    golden(why, "roomy")
    ((ground, why),) = full.deviations()
    assert ground == "no-gate"
    golden(why, "full")


def test_pods_bound_before_we_led_are_told_without_a_guess(golden):
    scene = Scene(leads=False)
    scene.gated()
    scene.run.observe_pod(None, scene.pod(node_name="b"), after(2))
    assert scene.deviations() == []
    scene.watch.evaluate_bound(scene.run)
    ((ground, why),) = scene.deviations()
    assert ground == "not-seen"
    golden(why)


def test_an_ended_pod_is_not_looked_back_at():
    scene = Scene(leads=False)
    scene.run.observe_pod(None, scene.pod(node_name="b", phase="Succeeded"), after(2))
    scene.watch.evaluate_bound(scene.run)
    assert scene.deviations() == []


def test_a_gate_taken_off_while_another_led_is_remembered():
    scene = Scene(leads=False)
    scene.release(Cause.OVERDUE)
    scene.leads = True
    scene.pod(node_name="b")
    assert scene.reasons() == ["overdue"]


def test_it_is_told_once(scene):
    scene.release(Cause.TURN, "a")
    for phase in ("Pending", "Running", "Succeeded"):
        scene.pod(node_name="b", phase=phase)
    assert len(scene.deviations()) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"node_name": "a"},
        {"node_name": "b", "scheduler_name": "kfp-placement"},
        {"node_name": "b", "scheduler_mark": ""},
        {"node_name": "b", "workflow": "other"},
        {"node_name": "b", "argo_node_name": "run.unknown"},
        {"node_name": "b", "argo_node_name": "nonsense"},
    ],
    ids=["as planned", "the extender's", "unmarked", "no run", "no step", "malformed"],
)
def test_nothing_is_told_of(scene, fields):
    scene.release(Cause.TURN, "a")
    scene.pod(**fields)
    assert scene.deviations() == []


@pytest.mark.parametrize("all_pipelines", [False, True])
def test_where_all_pipelines_are_planned_a_step_without_mark_is_told_of(scene, all_pipelines):
    scene.watch.registry.namespaces.seen["team"] = ObservedNamespace(all_pipelines=all_pipelines)
    scene.pod(node_name="b", scheduler_mark="", unmarked_step=True)
    assert scene.reasons() == (["no-gate"] if all_pipelines else [])


def test_a_later_pod_of_the_same_name_is_another(scene):
    scene.release(Cause.OVERDUE)
    scene.pod(uid="uid-second", node_name="b")
    assert scene.reasons() == ["no-gate"]
