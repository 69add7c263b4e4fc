"""Runs that Argo holds back: nobody waits for steps that cannot start, and they come back."""

from math import inf

import pytest

from kfp_placement_controller.runs.overheads import RunningCentre
from kfp_placement_controller.runs.tracked_run import HoldWatch
from tests.controller.planning.builders import a_workflow, after
from tests.controller.planning.simulated_cluster import SimulatedCluster, a_coordinator
from tests.controller.planning.test_recordings import a_cluster, recorded_workflow
from tests.controller.planning.test_scenarios import a_step, started, submit, submit_chain
from tests.controlplane.argo.small_workflows import dag, task, workflow
from tests.controlplane.kubelet.workload import WorkloadSettings
from tests.support.kubernetes import node_object
from tests.support.placements import planned_nodes
from tests.support.taxi_cluster import with_durations

HOLDS = ("suspended", "Pending", "")


def a_small_cluster(*, gated):
    actuator = "gates" if gated else "extender"
    node = node_object("n0", allocatable={"cpu": "1"})
    coordinator = a_coordinator({"actuator": actuator}, evaluation_seconds=1)
    return SimulatedCluster(node, coordinator=coordinator, gated=gated)


def submit_held(cluster, how):
    submit_chain(cluster, "held", seconds=60)
    hold_back(cluster, how)


def hold_back(cluster, how):
    """The run `held`, until `go_on`."""
    if how == "suspended":
        cluster.suspend("held")
    else:
        cluster.postpone("held", how)


def go_on(cluster, how):
    if how == "suspended":
        cluster.suspend("held", suspended=False)
    else:
        cluster.begin("held")


def ended(cluster, run):
    def has_ended():
        statuses = cluster.tracked(run).statuses.values()
        return bool(statuses) and all(each.ended for each in statuses)

    return has_ended


def starts(cluster, run, since):
    statuses = cluster.tracked(run).statuses
    return {
        name: (each.started_at - since).total_seconds()
        for name, each in statuses.items()
        if each.started_at is not None
    }


def planned_reason(cluster, run):
    (condition,) = [
        each for each in cluster.placement(run).status.conditions if each.type == "Planned"
    ]
    return condition.status, condition.reason, condition.message


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("how", HOLDS)
def test_nobody_waits_for_a_run_that_is_held_back(how, gated):
    cluster = a_small_cluster(gated=gated)
    submit_held(cluster, how)
    cluster.pass_time(30)
    begun_at = cluster.now
    submit_chain(cluster, "wf", seconds=300)
    cluster.run(ended(cluster, "wf"))
    assert cluster.placement("wf").spec.first_makespan_seconds == 600
    assert starts(cluster, "wf", begun_at) == {"first": 0, "second": 300}


@pytest.mark.parametrize("how", HOLDS)
def test_a_run_that_goes_on_is_planned_anew_and_has_its_turns_again(how):
    """`wf` has taken the node meanwhile: the plan counts on that, not on the time before."""
    cluster = a_small_cluster(gated=True)
    submit_held(cluster, how)
    cluster.pass_time(30)
    submit_chain(cluster, "wf", seconds=300)
    cluster.pass_time(100)
    revision = cluster.placement("held").spec.revision
    assert starts(cluster, "held", cluster.now) == {}
    go_on(cluster, how)
    cluster.look()
    placement = cluster.placement("held")
    assert placement.spec.revision == revision + 1
    at = (cluster.now - placement.spec.submitted_at).total_seconds()
    rows = [row.start_seconds - at for row in placement.planned_rows().rows]
    assert rows[0] >= 200  # `wf` has its node for so long still
    cluster.run()
    assert cluster.states("held") == {"first": "succeeded", "second": "succeeded"}


def test_what_runs_keeps_its_room_while_the_rest_is_held_back():
    cluster = a_small_cluster(gated=True)
    submit_chain(cluster, "held", seconds=60)
    cluster.run(started(cluster, run="held"))
    begun_at = cluster.now
    cluster.pass_time(10)
    cluster.suspend("held")
    submit_chain(cluster, "wf", seconds=30)
    cluster.run(ended(cluster, "wf"))
    assert cluster.placement("wf").spec.first_makespan_seconds == 110
    assert starts(cluster, "wf", begun_at) == {"first": 60, "second": 90}


def test_a_pod_that_is_there_keeps_its_turn():
    """Argo holds back what it has not made yet, nothing else."""
    cluster = a_small_cluster(gated=True)
    submit_chain(cluster, "other", seconds=30)
    cluster.run(started(cluster, run="other"))
    submit_chain(cluster, "held", seconds=600)
    cluster.pass_time(2)
    cluster.suspend("held")
    run = cluster.tracked("held")
    cluster.look()
    assert run.held
    assert (run.awaits_pod("first"), run.awaits_pod("second")) == (False, True)
    planned = cluster.coordinator.registry.open_run(run.key)
    assert [
        room.node for room in planned.reserved(cluster.now, planned.running_pods(cluster.now)).rooms
    ] == ["n0"]


def test_others_may_gain_by_the_room_of_a_run_that_is_held_back():
    """Two steps that both went to one node spread over two."""
    cluster = a_small_cluster(gated=False)
    cluster.set_node(node_object("n1", allocatable={"cpu": "1"}))
    cluster.place = lambda _pod: None
    submit_chain(cluster, "held", seconds=600)
    cluster.postpone("held", "")
    pair = workflow(dag("main", task("a"), task("b")), a_step())
    submit(cluster, pair)
    cluster.pass_time(6)
    assert len(set(planned_nodes(cluster.placement("wf")).values())) == 1
    cluster.postpone("held", "Pending")
    cluster.pass_time(3)
    assert set(planned_nodes(cluster.placement("wf")).values()) == {"n0", "n1"}


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("suspended", "spec.suspend is set"),
        ("Pending", "Argo lets it wait (phase Pending)"),
        ("", "Argo has not begun it"),
    ],
)
def test_a_run_that_is_held_back_says_so(how, why):
    cluster = a_small_cluster(gated=False)
    submit_held(cluster, how)
    cluster.pass_time(30)
    status, reason, message = planned_reason(cluster, "held")
    assert (status, reason) == ("True", "Suspended")
    assert message.endswith(why)
    go_on(cluster, how)
    cluster.run(started(cluster, run="held"))
    assert planned_reason(cluster, "held")[:2] == ("True", "Replanned")


@pytest.mark.parametrize("how", HOLDS)
def test_time_that_a_run_is_held_back_is_not_learned_as_that_of_drivers(how):
    cluster = a_cluster(settings=WorkloadSettings(driver_seconds=1, start_seconds=0.5))
    learned = cluster.coordinator.plans.learned["team"]
    learned.driver = RunningCentre(least=1)
    run = with_durations(recorded_workflow("taxi"), 0.03)
    run["metadata"]["name"] = "held"
    cluster.submit(run)
    hold_back(cluster, how)
    cluster.pass_time(180)
    go_on(cluster, how)
    cluster.run(lambda: learned.start.value is not None)
    assert learned.driver.value == 1.5


def looked(hold, seconds, *, begin_seconds=10, **workflow):
    state = a_workflow(**workflow).state
    goes_on = hold.evaluate(state, after(seconds), seconds, begin_seconds)
    return bool(hold.why), goes_on


def test_a_new_run_is_not_held_back():
    hold = HoldWatch()
    assert looked(hold, 1000) == (False, False)  # however old it is by the API server's clock
    assert looked(hold, 1009) == (False, False)
    assert looked(hold, 1011) == (True, False)
    assert looked(hold, 1012, phase="Running") == (False, True)
    assert looked(hold, 1013, phase="Running") == (False, False)
    assert hold.last_at == after(1011)


def test_a_run_with_pods_whose_phase_comes_late_is_not_held_back():
    hold = HoldWatch()
    looked(hold, 0)
    assert looked(hold, 60, begin_seconds=inf) == (False, False)


def test_a_run_that_has_ended_is_not_held_back():
    hold = HoldWatch()
    assert looked(hold, 0, suspended=True) == (True, False)
    assert looked(hold, 1, suspended=True, phase="Failed")[0] is False
