"""What is particular to Kueue, on Kueue itself: checks, flavors, Workloads that others change."""

from datetime import timedelta

import pytest

from tests.controller.queueing.backend_worlds import CHECK, conditions
from tests.controlplane.kueue.running import KUEUE_VERSION
from tests.controlplane.waiting import wait_until


def counts(pod_sets):
    return {each["name"]: each["count"] for each in pod_sets}


def wait_until_given_back(world, run, units):
    """Act until the Workload of a run has given back these units of its quota."""

    def is_given():
        return counts(world.workload(run)["status"].get("reclaimablePods", ())) == units

    world.act_until(is_given, f"{run} to give back {units}")


def test_a_workload_holds_units_of_the_peak_and_each_step_that_ends_gives_some_back(on_kueue):
    world = on_kueue(cpu="40", gpu="2")
    world.submit_run("run", cpu="6", memory="8Gi", gpu="2")
    world.wait_for("run begins")
    units = counts(world.workload("run")["spec"]["podSets"])
    assert units == {"run": 1, "nvidia-com-gpu": 2, "cpu": 120, "memory": 128}
    world.need("run", cpu="3", memory="8Gi")
    wait_until_given_back(world, "run", {"nvidia-com-gpu": 2, "cpu": 60})


def test_a_run_is_planned_for_the_nodes_of_its_flavor_before_it_begins(on_kueue):
    world = on_kueue(cpu="4")
    world.submit_run("run", cpu="3")
    world.wait_for("run begins")
    labels = [{"key": "pool", "value": "large"}]
    assert world.written["run"]["assignedNodes"] == [{"labels": labels}]
    (check,) = world.workload("run")["status"]["admissionChecks"]
    assert (check["name"], check["state"]) == (CHECK, "Ready")


@pytest.fixture
def refused(on_kueue):
    """A world with a run that fits no node of its flavor."""
    world = on_kueue(cpu="4")
    world.refused = "step a: no node of the pool has 3 cpu"
    world.submit_run("large", cpu="3")
    world.wait_for_message("large", world.refused)
    world.wait_for_condition("large", "QuotaReserved", "False")
    assert world.workload("large")["spec"]["active"] is False
    world.refused = ""
    return world


def test_a_run_that_fits_no_node_of_its_flavor_gives_its_quota_back(refused):
    refused.submit_run("other", cpu="4")
    refused.wait_for("other begins")


def test_a_run_that_was_refused_begins_once_its_flavor_is_of_nodes_that_can_take_it(refused):
    flavor = refused.api.get(KUEUE_VERSION, "ResourceFlavor", refused.name)
    refused.api.patch(flavor, {"spec": {"nodeLabels": {"pool": "larger"}}})
    refused.wait_for("large begins")
    labels = [{"key": "pool", "value": "larger"}]
    assert refused.written["large"]["assignedNodes"] == [{"labels": labels}]


@pytest.mark.parametrize("how", ["deleted", "active again"])
def test_a_run_that_was_refused_is_tried_again_when_somebody_says_so(refused, how):
    before = refused.workload("large")
    if how == "deleted":
        refused.api.delete(before)
    else:
        refused.api.patch(before, {"spec": {"active": True}})
        refused.say("large", unschedulable="")
    refused.wait_for("large begins")
    uid = refused.workload("large")["metadata"]["uid"]
    assert (uid != before["metadata"]["uid"]) == (how == "deleted")


def test_a_run_that_requests_nothing_begins_where_runs_are_not_counted(on_kueue):
    world = on_kueue(cpu="4", runs=None)
    world.submit_run("plain", pods="1")
    world.wait_for("plain begins")
    world.submit_run("other", cpu="1")
    world.wait_for("other begins")
    world.need("other", pods="1")
    world.end_run("plain")
    wait_until_given_back(world, "other", {"cpu": 100})
    world.wait_for_condition("plain", "Finished")


def test_a_workload_that_somebody_deletes_is_made_again_and_its_run_goes_on(on_kueue):
    world = on_kueue(cpu="4")
    world.submit_run("run", cpu="3")
    world.wait_for("run begins")
    world.api.delete(world.workload("run"))
    wait_until(lambda: world.workload("run") is None, "its Workload to be gone")
    world.wait_for_condition("run", "Admitted")


def test_a_workload_that_somebody_changes_is_put_right(on_kueue):
    world = on_kueue(cpu="4")
    world.submit_run("first", cpu="4", priority=9)
    world.wait_for("first begins")
    world.submit_run("waits", cpu="3")
    world.wait_until_refused("waits")
    before = world.workload("waits")["spec"]
    world.api.patch(world.workload("waits"), {"spec": {"priority": 100000, "queueName": "other"}})
    world.act_until(lambda: world.workload("waits")["spec"] == before, "the spec from before")


def test_nothing_is_left_of_a_run_that_is_deleted_and_of_one_that_ends_no_quota(on_kueue):
    world = on_kueue(cpu="4")
    for name in ("deleted", "ended"):
        world.submit_run(name, cpu="1")
        world.wait_for(f"{name} begins")
    world.delete_run("deleted")
    world.end_run("ended")
    world.act_until(lambda: world.workload("deleted") is None, "its Workload to be gone")
    world.wait_for_condition("ended", "Finished")


def test_while_no_planner_leads_the_check_is_not_active(on_kueue, monkeypatch):
    world = on_kueue(cpu="4")

    def wait_until_active(status):
        def is_shown():
            check = world.api.get(KUEUE_VERSION, "AdmissionCheck", CHECK)
            return conditions(check) == {"Active": status}

        world.act_until(is_shown, f"the check's condition Active={status}")

    wait_until_active("True")
    with monkeypatch.context() as patching:
        patching.setattr(world, "renew", lambda: None)
        world.ahead += timedelta(minutes=1)
        wait_until_active("False")
    wait_until_active("True")


def test_a_queue_without_its_local_queue_says_so_and_its_runs_wait(on_kueue):
    world = on_kueue(cpu="4")
    local = world.api.get(KUEUE_VERSION, "LocalQueue", world.name, "team")
    world.api.delete(local)
    world.submit_run("run", cpu="1")
    problem = f"there is no LocalQueue {world.name} in namespace team"
    world.wait_for_message("run", problem)
    assert world.message("run") == f"1st of 1, waits for Kueue: {problem}"
    condition = world.queue().status.condition("BackendReady")
    assert (condition.status, condition.message) == ("False", f"nobody new begins: {problem}")
    world.api.create({**local, "metadata": {"name": world.name, "namespace": "team"}})
    world.wait_for("run begins")


def test_runs_of_a_cluster_queue_that_is_stopped_stop_and_go_on_once_it_is_not(on_kueue):
    world = on_kueue(cpu="4")
    world.submit_run("run", cpu="3")
    world.wait_for("run begins")
    queue = world.api.get(KUEUE_VERSION, "ClusterQueue", world.name)
    world.api.patch(queue, {"spec": {"stopPolicy": "HoldAndDrain"}})
    world.wait_for("run stops")
    world.wait_for_condition("run", "QuotaReserved", "False")
    world.api.patch(queue, {"spec": {"stopPolicy": "None"}})
    world.wait_for("run goes on")
