"""What may happen to simulated runs: every object through the readers, every decision."""

import json
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from kfp_placement_controller.observed.namespaces import ObservedNamespace
from kfp_placement_controller.planning import placement_object
from kfp_placement_controller.planning.actions import WritePlacement
from kfp_placement_controller.planning.placement_publisher import PlacementPublisher
from kfp_placement_controller.planning.planner import Planner
from kfp_placement_controller.planning.rounds import RoundFailure, plan_round
from kfp_placement_controller.runs.drift import MOST_PATIENCE
from kfp_placement_controller.runs.planner_parameters import PLANS_PER_EVALUATION, PlanningParams
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_engine.contract.gates import REQUIRED
from kfp_placement_engine.contract.keys import (
    HINTS_ANNOTATION,
    LOCATION_LABEL,
    PLAN_GATE,
    RUN_NAME_ANNOTATION,
    SCHEDULER_LABEL,
)
from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.model.reasons import reason_text
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import NAMESPACES, PODS
from tests.controller.planning.simulated_cluster import SimulatedCluster, a_coordinator
from tests.controlplane.argo.simulated_workflow import START
from tests.controlplane.argo.small_workflows import NO_DEFAULTS, dag, step, task, workflow
from tests.controlplane.times import write_time
from tests.support.defects import fail
from tests.support.kubernetes import node_object
from tests.support.placements import planned_nodes

PARAMS = PlanningParams(evaluation_seconds=30)
NOT_DRAINING = {
    "nodeAffinity": {
        REQUIRED: {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "draining", "operator": "DoesNotExist"}]}
            ]
        }
    }
}
ONE_RETRY = {"limit": "1", "retryPolicy": "Always"}


def a_step(name="work", seconds=60, cpu="1", **fields):
    metadata = {
        "labels": {SCHEDULER_LABEL: "kfp-placement"},
        "annotations": {HINTS_ANNOTATION: json.dumps({"v": 1, "duration": f"{seconds}s"})},
    }
    template = step(name, metadata=metadata, **fields)
    template["container"]["resources"] = {"requests": {"cpu": cpu}}
    return template


def a_chain(name="wf", *templates, **spec):
    """`first`, then `second`."""
    tasks = dag("main", task("first"), task("second", depends="first"))
    chain = workflow(tasks, *(templates or (a_step(),)), **spec)
    chain["metadata"]["name"] = name
    return chain


def a_cluster(*nodes, policy=None, opt_in=False, **options):
    coordinator = a_coordinator(policy, opt_in=opt_in)
    machines = nodes or [node_object(f"n{number}") for number in range(2)]
    return SimulatedCluster(*machines, coordinator=coordinator, **options)


@pytest.fixture
def cluster():
    return a_cluster()


def submit(cluster, manifest=None, **options):
    return cluster.submit(manifest or a_chain(), settings=NO_DEFAULTS, **options)


def submit_chain(cluster, name, **step):
    """Submit `first`, then `second`; both as `a_step` makes them."""
    return submit(cluster, a_chain(name, a_step(**step)))


def started(cluster, step="first", run="wf"):
    return lambda: cluster.tracked(run).statuses[step].started_at is not None


def says(cluster, enabled=""):
    """The namespace says by its label whether it takes part."""
    change = Change(("", "team"), None, ObservedNamespace(enabled))
    cluster.coordinator.handle(NAMESPACES, change, cluster.now)


def conditions(cluster, run="wf"):
    return {
        each.type: (each.status, each.reason) for each in cluster.placement(run).status.conditions
    }


def test_a_plain_workflow_is_a_run_too(cluster):
    submit(cluster)
    cluster.run()
    placement = cluster.placement("wf")
    assert cluster.states("wf") == {"first": "succeeded", "second": "succeeded"}
    assert placement.status.makespan_seconds == placement.spec.makespan_seconds == 120
    assert placement.metadata.owner_references[0].uid == "workflow-0"


def test_a_plan_bears_the_name_of_its_run(cluster):
    run = a_chain()
    run["metadata"]["annotations"] = named = {RUN_NAME_ANNOTATION: "Run of Tuesday"}
    submit(cluster, run)
    cluster.look()
    assert cluster.placement("wf").metadata.annotations == named


def test_an_unmarked_run_is_left_alone_and_is_load():
    cluster = a_cluster(node_object("n0"))
    submit(cluster, workflow(dag("main", task("first")), step()))
    cluster.run(lambda: bool(cluster.coordinator.cluster.load.by_node()))
    assert cluster.writes == []


def test_a_first_plan_takes_two_writes_and_comes_before_any_pod_is_bound(cluster):
    submit(cluster)
    cluster.place = lambda _pod: None
    cluster.look()
    (write,) = cluster.writes
    assert (write.is_new_plan, write.placement.spec.revision) == (True, 1)
    assert write.placement.status.phase == "Planned"


def test_a_step_that_fails_fails_the_run_and_says_so(cluster):
    submit(cluster)
    cluster.kubelets.exit_codes["wf.second*"] = 3
    cluster.run()
    assert cluster.states("wf") == {"first": "succeeded", "second": "failed"}
    assert cluster.phase("wf") == "Failed"
    status, reason = conditions(cluster)["Finished"]
    assert (status, reason) == ("True", "Failed")


def test_a_run_that_has_begun_is_running_while_its_only_step_waits_for_a_node_again(cluster):
    submit(cluster, workflow(dag("main", task("first")), a_step(retryStrategy=ONE_RETRY)))
    cluster.kubelets.exit_codes["wf.first(0)"] = 3
    attempts = iter(["n0"])
    cluster.place = lambda _pod: next(attempts, None)
    cluster.run(lambda: len(cluster.pods()) == 2)
    cluster.step()
    assert cluster.states("wf") == {"first": "pending"}
    assert cluster.phase("wf") == "Running"


def test_a_run_that_cannot_be_read_is_refused_and_others_go_on(cluster):
    bad = a_chain("bad")
    bad["spec"]["templates"][0]["dag"]["tasks"][1]["depends"] = "nobody"
    submit(cluster, bad).settle = lambda: None
    submit_chain(cluster, "good")
    cluster.run(lambda: cluster.workflows["good"].phase == "Succeeded")
    placement = cluster.placement("bad")
    assert placement.status.phase == "Refused"
    assert conditions(cluster, "bad")["Planned"] == ("False", "Misconfigured")
    assert [each.key for each in cluster.announced] == [("team", "bad")]
    assert cluster.phase("good") == "Succeeded"


def test_two_runs_are_planned_beside_each_other():
    """One node for each; a plan that did not know of the other would take the same."""
    nodes = [node_object(f"n{n}", allocatable={"cpu": "1"}) for n in range(2)]
    cluster = a_cluster(*nodes)
    submit_chain(cluster, "one")
    submit_chain(cluster, "two")
    cluster.run()
    for run in ("one", "two"):
        assert cluster.placement(run).spec.first_makespan_seconds == 120
        assert cluster.placement(run).status.makespan_seconds == pytest.approx(120, abs=2)


@pytest.mark.parametrize("ahead_seconds", [0, 5, 90])
def test_runs_keep_room_from_each_other_where_our_clock_is_behind(ahead_seconds):
    cluster = a_cluster(node_object("n0", allocatable={"cpu": "1"}))
    cluster.place = lambda _pod: None
    for name in ("a", "b"):
        simulated = submit_chain(cluster, name, seconds=30)
        submitted_at = cluster.now + timedelta(seconds=ahead_seconds)
        simulated.workflow["metadata"]["creationTimestamp"] = write_time(submitted_at)
    cluster.look()
    makespans = [cluster.placement(name).spec.first_makespan_seconds for name in ("a", "b")]
    assert makespans == [60, 120]


def test_one_run_of_a_wrong_clock_does_not_shift_the_plans_of_others():
    cluster = a_cluster(node_object("n0", allocatable={"cpu": "2"}))
    cluster.place = lambda _pod: None
    far = submit_chain(cluster, "far")
    far.workflow["metadata"]["creationTimestamp"] = write_time(cluster.now + timedelta(days=1))
    submit(cluster)
    cluster.look()
    cluster.pass_time(5)
    assert cluster.placement("wf").spec.makespan_seconds < 130


@pytest.mark.parametrize("lost", [{"spec": {"unschedulable": True}}, {"labels": {"draining": ""}}])
def test_a_lost_node_lets_waiting_steps_move(lost):
    """Also where a round replans one run, and the other does not mind the new label."""
    cluster = a_cluster(policy={"replanning": {"runsPerRound": 1}})
    submit_chain(cluster, "other")
    submit_chain(cluster, "wf", affinity=NOT_DRAINING)
    cluster.run(lambda: len(cluster.rounds) == 2)
    planned = planned_nodes(cluster.placement("wf"))["second"]
    cluster.set_node(node_object(planned, **lost))
    cluster.run(lambda: planned_nodes(cluster.placement("wf"))["second"] != planned)


@pytest.mark.parametrize("first_failed", [True, False])
def test_a_step_that_has_lost_its_node_is_planned_elsewhere(cluster, first_failed):
    """At once, long before the plan would call it overdue; its pod may fail first, or be gone."""
    long_step = a_step(seconds=3600, retryStrategy=ONE_RETRY)
    submit(cluster, workflow(dag("main", task("first")), long_step))
    cluster.run(started(cluster))

    def planned():
        return planned_nodes(cluster.placement("wf"))["first"]

    lost = planned()
    cluster.remove_node(lost)
    cluster.place = lambda _pod: None if planned() == lost else planned()
    cluster.pass_time(30)
    lost_at = cluster.now
    cluster.lose_pod(first_failed=first_failed)
    cluster.run(lambda: planned() != lost)
    assert (cluster.now - lost_at).total_seconds() <= PARAMS.debounce_limit_seconds
    cluster.run()
    placement = cluster.placement("wf")
    (row,) = placement.state_rows().rows
    assert row.state == "succeeded"
    assert placement.node_name(row.node) == planned() != lost


def test_without_a_node_nothing_is_planned_until_one_comes():
    cluster = a_cluster(node_object("n0"))
    cluster.remove_node("n0")
    submit(cluster)
    cluster.look()
    assert cluster.phase("wf") == "Planning"
    assert conditions(cluster)["Planned"] == ("False", "PendingEvaluation")
    cluster.set_node(node_object("n1"))
    cluster.run()
    assert cluster.phase("wf") == "Succeeded"


def test_a_step_that_fits_nowhere_is_said(cluster):
    cluster.place = lambda _pod: None
    submit_chain(cluster, "wf", cpu="64")
    cluster.look()
    assert conditions(cluster)["Schedulable"] == ("False", "NoMatchingNode")


@pytest.mark.parametrize("labels", [{}, {"lost": "by the change"}])
def test_a_step_that_fitted_nowhere_is_planned_again_when_a_node_may_take_it(labels):
    """Though no step that is placed gains by it, and others may not fit any more."""
    cluster = a_cluster(node_object(labels=labels, spec={"unschedulable": True}))
    cluster.place = lambda _pod: None
    submit_chain(cluster, "wf", cpu="64")
    cluster.run(lambda: len(cluster.rounds) == 1)

    def why():
        placement = cluster.placement("wf")
        return reason_text(placement.planned_rows().rows[0].reason, placement.spec.nodes)

    assert "cordoned" in why()
    cluster.set_node(node_object())
    asked_at = cluster.now
    cluster.run(lambda: "cordoned" not in why())
    assert (cluster.now - asked_at).total_seconds() <= PARAMS.debounce_limit_seconds


def test_a_step_that_never_starts_is_planned_with_again_ever_more_seldom(cluster):
    """Every plan supposes that it starts now, and ends in a write or two."""
    cluster.place = lambda _pod: None
    submit(cluster)
    submitted_at = cluster.now
    moments: list[float] = []

    def waited_long():
        placement = cluster.placements.get(("team", "wf"))
        if placement is not None and placement.spec.revision > len(moments):
            moments.append((cluster.now - submitted_at).total_seconds())
        return cluster.now > submitted_at + timedelta(minutes=20)

    cluster.run(waited_long)
    between = [after - before for before, after in pairwise(moments)]
    assert between[-1] >= PARAMS.drift_seconds * MOST_PATIENCE
    assert len(moments) < 20 * 60 / (PARAMS.drift_seconds * MOST_PATIENCE) + 6


def test_a_follower_takes_over_where_the_leader_was(cluster):
    """Another planner, which has seen everything, reads what there is and goes on."""
    submit(cluster)
    cluster.run(started(cluster))
    before = cluster.placement("wf")
    cluster.hand_over()
    cluster.run()
    after = cluster.placement("wf")
    assert after.status.phase == "Succeeded"
    assert after.spec.first_makespan_seconds == before.spec.first_makespan_seconds
    assert after.spec.revision == before.spec.revision
    assert after.spec.epoch == 2


def test_a_namespace_that_has_opted_out_is_left_alone_whichever_is_seen_first(cluster):
    submit(cluster)
    cluster.coordinator.follow()
    cluster.look()
    says(cluster, "false")
    cluster.coordinator.lead(1, [], cluster.now)
    cluster.run()
    assert cluster.writes == []


@pytest.mark.parametrize("label", ["", "false", "True", "true"])
@pytest.mark.parametrize("namespace_first", [True, False])
def test_with_opt_in_only_namespaces_that_ask_for_it_are_planned(label, namespace_first):
    cluster = a_cluster(opt_in=True)
    if namespace_first:
        says(cluster, label)
    submit(cluster)
    if not namespace_first:
        says(cluster, label)
    cluster.run()
    assert bool(cluster.writes) == (label == "true")


def test_a_namespace_that_opts_in_is_planned_from_its_next_run_on():
    cluster = a_cluster(opt_in=True)
    says(cluster)
    submit(cluster)
    cluster.run()
    assert cluster.writes == []
    says(cluster, "true")
    submit_chain(cluster, "next")
    cluster.run()
    assert cluster.phase("next") == "Succeeded"


def test_a_defect_with_one_run_refuses_it_and_no_other(cluster, monkeypatch):
    look = TrackedRun.evaluate

    def broken(run, *arguments):
        if run.key[1] == "wf":
            fail()
        return look(run, *arguments)

    monkeypatch.setattr(TrackedRun, "evaluate", broken)
    submit(cluster)
    submit_chain(cluster, "good")
    cluster.run()
    assert cluster.phase("wf") == "Refused"
    assert cluster.phase("good") == "Succeeded"


def test_a_follower_writes_nothing(cluster):
    cluster.coordinator.follow()
    submit(cluster)
    cluster.run()
    assert cluster.writes == []
    assert cluster.rounds == []


def test_what_asked_for_a_plan_keeps_no_follower_awake(cluster):
    submit(cluster)
    cluster.look()
    planner = cluster.coordinator.plans.planner
    planner.may_gain()
    assert planner.pause_seconds(cluster.monotonic()) is not None
    cluster.coordinator.follow()
    later = cluster.now + timedelta(minutes=1)
    assert cluster.coordinator.next_at(later) > later


def test_a_run_that_was_over_is_not_written_again_after_a_restart(cluster):
    submit(cluster)
    cluster.run()
    writes = len(cluster.writes)
    cluster.hand_over()
    cluster.pass_moments(3)
    assert len(cluster.writes) == writes


@pytest.mark.parametrize("restarted", [True, False])
def test_a_failed_run_that_is_tried_again_is_written_on(cluster, restarted):
    """KFP's retry: the same Workflow, no longer ended; its plan is the one to go on from."""
    tasks = [task("first"), task("second", depends="first"), task("third", depends="second")]
    submit(cluster, workflow(dag("main", *tasks), a_step()))
    cluster.kubelets.exit_codes["wf.second*"] = 3
    cluster.run()
    failed = cluster.placement("wf")
    assert failed.status.phase == "Failed"
    if restarted:
        cluster.hand_over()
        cluster.look()
        assert cluster.placement("wf") == failed
    cluster.now += timedelta(minutes=10)
    cluster.kubelets.exit_codes.clear()
    cluster.retry("wf")
    cluster.run(lambda: cluster.states("wf")["second"] == "running")
    again = cluster.placement("wf")
    assert again.status.phase == "Running"
    assert "Finished" not in conditions(cluster)
    assert again.spec.first_makespan_seconds == failed.spec.first_makespan_seconds
    cluster.run(lambda: cluster.placement("wf").spec.revision > failed.spec.revision)
    assert cluster.phase("wf") == "Running"
    cluster.run()
    assert cluster.phase("wf") == "Succeeded"


def test_an_object_that_somebody_deletes_is_written_again_while_its_run_goes_on(cluster):
    """Soon, although nothing else happens to the run for an hour."""
    submit_chain(cluster, "wf", seconds=3600)
    cluster.run(started(cluster))
    cluster.pass_moments(3)
    before = cluster.placement("wf")
    deleted_at = cluster.now
    cluster.delete_placement("wf")
    cluster.run(lambda: ("team", "wf") in cluster.placements)
    assert (cluster.now - deleted_at).total_seconds() <= PARAMS.evaluation_seconds
    assert cluster.placement("wf") == before
    writes = len(cluster.writes)
    cluster.look()
    assert len(cluster.writes) == writes


@pytest.mark.parametrize("restarted", [True, False])
def test_an_object_that_is_deleted_after_its_run_stays_away_until_that_is_tried_again(
    cluster, restarted
):
    submit(cluster)
    cluster.kubelets.exit_codes["wf.second*"] = 3
    cluster.run()
    if restarted:
        cluster.hand_over()
    cluster.delete_placement("wf")
    cluster.pass_moments(3)
    assert cluster.placements == {}
    cluster.kubelets.exit_codes.clear()
    cluster.retry("wf")
    cluster.run()
    assert cluster.phase("wf") == "Succeeded"


@pytest.mark.parametrize("restarted", [True, False])
def test_runs_that_are_over_cost_nothing_until_something_happens_to_them(
    cluster, restarted, monkeypatch
):
    for number in range(5):
        submit_chain(cluster, f"over-{number}")
    cluster.run()
    if restarted:
        cluster.hand_over()
    submit_chain(cluster, "going-on", seconds=3600)
    cluster.run(started(cluster, run="going-on"))
    looked_at: list[str] = []
    due, active = PlacementPublisher.due, vars(TrackedRun)["is_open"].fget

    def noted_due(publisher, run, *arguments):
        looked_at.append(run.key[1])
        return due(publisher, run, *arguments)

    def noted_active(run):
        looked_at.append(run.key[1])
        return active(run)

    monkeypatch.setattr(PlacementPublisher, "due", noted_due)
    monkeypatch.setattr(TrackedRun, "is_open", property(noted_active))
    cluster.pass_moments(5)
    assert set(looked_at) == {"going-on"}
    pod = next(iter(cluster.workflows["over-3"].cluster.pods))
    del cluster.workflows["over-3"].cluster.pods[pod]
    cluster.tell()
    looked_at.clear()
    cluster.coordinator.tick(cluster.now)
    assert set(looked_at) == {"going-on", "over-3"}
    looked_at.clear()
    cluster.coordinator.tick(cluster.now)
    assert set(looked_at) == {"going-on"}


def test_what_is_learned_of_a_run_after_its_end_is_written_too(cluster):
    """Argo may say that a run has ended before the watch of pods tells of its last one."""
    submit(cluster)
    cluster.run()
    cluster.pass_moments(3)
    assert not cluster.coordinator.registry.unsettled.ordered()
    writes = len(cluster.writes)
    status = cluster.workflows["wf"].workflow["status"]
    for node in status["nodes"].values():
        if node["displayName"] == "second":
            node["phase"] = "Failed"
    cluster.tell()
    cluster.pass_moments(3)
    assert len(cluster.writes) == writes + 1
    assert cluster.states("wf")["second"] == "failed"


def test_a_search_that_dies_twice_refuses_the_run_and_no_other(cluster):
    deadly = "team/wf"

    def search(asked):
        if any(run.key == deadly for run in asked.to_replan):
            return RoundFailure(asked.number, "the search process ended", died=True)
        return plan_round(asked)

    cluster.search = search
    cluster.place = lambda _pod: None
    submit(cluster)
    submit_chain(cluster, "good")
    cluster.run(lambda: bool(cluster.announced))
    assert [each.key for each in cluster.announced] == [("team", "wf")]
    assert cluster.phase("wf") == "Refused"
    assert cluster.phase("good") == "Planned"
    assert conditions(cluster, "good")["Planned"][0] == "True"


def test_a_search_that_fails_leaves_the_plan_made_at_once(cluster):
    cluster.search = lambda asked: RoundFailure(asked.number, "no", died=False)
    cluster.place = lambda _pod: None
    submit(cluster)
    cluster.run(lambda: len(cluster.rounds) > 0)
    assert cluster.placement("wf").spec.revision == 1
    assert conditions(cluster)["Planned"] == ("True", "SearchFailed")


def test_gates_open_in_the_plans_order():
    """One step at a time fits; the longer chain is planned to start first."""
    cluster = a_cluster(
        node_object("n0", allocatable={"cpu": "1"}),
        gated=True,
        policy={"actuator": "gates", "gateDeadline": "10m"},
    )
    tasks = dag("main", task("first"), task("second", depends="first"), task("third"))
    submit(cluster, workflow(tasks, a_step(seconds=30)))
    cluster.run()
    assert set(cluster.states("wf").values()) == {"succeeded"}
    placement = cluster.placement("wf")
    starts = [row.start_seconds for row in placement.state_rows().rows]
    assert sorted(starts) == pytest.approx([0, 30, 60], abs=3)
    assert placement.spec.dispatch == "ordered"


def test_a_paused_policy_opens_all_gates():
    cluster = a_cluster(
        node_object("n0", allocatable={"cpu": "1"}),
        gated=True,
        policy={"actuator": "gates", "paused": True},
    )
    submit(cluster, workflow(dag("main", task("a"), task("b")), a_step()))
    cluster.look()
    assert all(not pod["spec"].get("schedulingGates") for pod in cluster.pods())


def test_gates_come_off_in_time_whoever_leads():
    cluster = a_cluster(gated=True, policy={"actuator": "gates"})
    cluster.coordinator.follow()
    submit(cluster)
    cluster.run(lambda: any(not pod["spec"].get("schedulingGates") for pod in cluster.pods()))
    assert 59 <= (cluster.now - START).total_seconds() <= 61


def a_cluster_that_places_elsewhere():
    """A run whose pods the stock scheduler binds to other nodes than planned."""
    cluster = a_cluster(gated=True, policy={"actuator": "gates"})
    cluster.place = lambda pod: "n1" if cluster.planned_node(pod) == "n0" else "n0"
    submit(cluster)
    return cluster


def test_pods_that_the_stock_scheduler_puts_elsewhere_are_told_of():
    cluster = a_cluster_that_places_elsewhere()
    cluster.run()
    why = "it had room; default-scheduler preferred another by its own rules and scores"
    first, second = cluster.deviations
    assert first.endswith(f": {why}")
    assert second.endswith(f": {why}")
    cluster.hand_over()
    cluster.look()
    assert len(cluster.deviations) == 2


def test_a_new_leader_tells_of_pods_that_were_bound_before(golden):
    cluster = a_cluster_that_places_elsewhere()
    cluster.run(started(cluster))
    cluster.deviations.clear()
    cluster.hand_over()
    cluster.look()
    (message,) = cluster.deviations
    golden(message)
    assert "before this planner led" in message


def test_statuses_are_written_in_turn():
    """A hundred steps that end within seconds take few writes."""
    tasks = [task(f"s{number}", "work") for number in range(40)]
    cluster = a_cluster(node_object("n0", allocatable={"cpu": "100", "pods": "200"}))
    submit(cluster, workflow(dag("main", *tasks), a_step(seconds=5, cpu="10m")))
    cluster.run()
    assert cluster.placement("wf").status.progress == "40/40"
    assert len(cluster.writes) < 12


def test_what_was_planned_first_is_what_happens(cluster):
    """With its overheads learned from earlier runs a first plan is right to 5 %."""
    errors = []
    for name in "abcd":
        submit_chain(cluster, name)
        cluster.run()
        placement = cluster.placement(name)
        actual = placement.status.makespan_seconds
        errors.append(abs(placement.spec.first_makespan_seconds - actual) / actual)
    assert max(errors) <= 0.05


def many_steps(cluster):
    tasks = [task(f"s{n}", depends=f"s{n - 8}") if n >= 8 else task(f"s{n}") for n in range(40)]
    submit(cluster, workflow(dag("main", *tasks), a_step(seconds=5, cpu="10m")))


def test_ended_steps_lose_their_rows_where_all_do_not_fit(monkeypatch):
    monkeypatch.setattr(placement_object, "HARD_LIMIT_BYTES", placement_object.OTHER_BYTES + 1850)
    cluster = a_cluster(node_object("n0", allocatable={"cpu": "100"}))
    many_steps(cluster)
    cluster.run()
    placement = cluster.placement("wf")
    assert placement.status.folded_steps > 0
    assert placement.status.folded_steps + len(placement.spec.steps) == 40
    assert placement.status.counts.succeeded == 40
    assert len(placement.status.steps) == len(placement.spec.steps)
    assert conditions(cluster)["RowsComplete"] == ("False", "TooLarge")
    assert placement.spec.revision < 10


def test_a_run_whose_rows_can_never_fit_is_refused(monkeypatch):
    monkeypatch.setattr(placement_object, "HARD_LIMIT_BYTES", placement_object.OTHER_BYTES + 300)
    cluster = a_cluster(node_object("n0", allocatable={"cpu": "100"}))
    many_steps(cluster)
    cluster.look()
    assert cluster.phase("wf") == "Refused"
    assert "split the pipeline" in cluster.announced[0].why


def test_where_argo_keeps_its_nodes_to_itself_pods_alone_are_followed(cluster):
    cluster.offload_nodes = True
    submit(cluster)
    cluster.run()
    assert cluster.states("wf") == {"first": "succeeded", "second": "succeeded"}
    assert conditions(cluster)["RowsComplete"] == ("False", "StatusUnreadable")


def test_of_many_new_runs_the_first_are_written_before_the_last_are_planned(cluster):
    for number in range(PLANS_PER_EVALUATION + 2):
        submit_chain(cluster, f"wf-{number}")
    assert len(_planned(cluster)) == PLANS_PER_EVALUATION
    assert cluster.coordinator.next_at(cluster.now) == cluster.now
    assert len(_planned(cluster)) == PLANS_PER_EVALUATION + 2
    assert cluster.coordinator.next_at(cluster.now) > cluster.now


def test_nothing_is_written_of_a_run_before_its_plan(cluster):
    """Each of many new runs costs one write, however long it has to wait for its turn."""
    for number in range(PLANS_PER_EVALUATION + 2):
        submit_chain(cluster, f"wf-{number}")
    cluster.tell()
    for expected in (PLANS_PER_EVALUATION, 2):
        actions = cluster.coordinator.tick(cluster.now)
        writes = [each for each in actions if isinstance(each, WritePlacement)]
        assert [len(write.placement.spec.steps) for write in writes] == [2] * expected
        for write in writes:
            cluster.coordinator.publisher.written(write, cluster.now)


def test_runs_that_cannot_be_planned_keep_no_other_waiting(cluster, monkeypatch):
    for number in range(PLANS_PER_EVALUATION):
        submit_chain(cluster, f"bad-{number}")

    def fails_for_bad_ones(asked):
        if any("bad" in run.key for run in asked.to_replan):
            raise PlanningError("no node at all")
        return plan_round(asked)

    monkeypatch.setattr(f"{Planner.__module__}.plan_round", fails_for_bad_ones)
    assert _planned(cluster) == set()
    submit_chain(cluster, "good")
    assert _planned(cluster) == {"good"}


def _planned(cluster):
    """The runs that have a plan after the next look."""
    cluster.tell()
    cluster.coordinator.tick(cluster.now)
    return {run.key.name for run in cluster.coordinator.registry.planned()}


@pytest.mark.parametrize(
    ("gates", "trip", "what"),
    [
        ((), "89ms", "limit"),
        ((), "9ms", "node"),
        ((PLAN_GATE,), "89ms", "limit"),
        ((PLAN_GATE,), "9ms", "plan"),
    ],
)
def test_a_step_that_no_node_may_take_for_its_limit_waits_for_one_within_it(gates, trip, what):
    cluster = a_cluster(*(node_object(f"n{n}", labels={"HOME-EDGE": trip}) for n in range(2)))
    limited = a_step()
    limited["metadata"]["labels"][LOCATION_LABEL] = "HOME-EDGE"
    hints = json.dumps({"v": 1, "duration": "60s", "maxLatency": "20ms"})
    limited["metadata"]["annotations"][HINTS_ANNOTATION] = hints
    submit(cluster, workflow(dag("main", task("first")), limited))
    cluster.place = lambda _pod: None
    cluster.run(lambda: cluster.tracked("wf").pods.executor("first"))
    run = cluster.tracked("wf")
    pod = run.pods.executor("first").pod
    unscheduled_pod = replace(
        pod, gates=gates, unscheduled=("Unschedulable", "0/2 nodes are available")
    )
    change = Change((pod.namespace, pod.name), pod, unscheduled_pod)
    cluster.coordinator.handle(PODS, change, cluster.now)
    cluster.coordinator.tick(cluster.now)
    built = placement_object.placement_of(run, placement_object.PlacementState(), 1, cluster.now)
    (row,) = built.placement.state_rows().rows
    assert row is not None
    assert row.waiting is not None
    assert row.waiting.what == what
