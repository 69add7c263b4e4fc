"""What a tenant can do so that a run takes more than its queue counts."""

import time
from typing import Any

import pytest

from kfp_placement_engine.units.quantities import parse_resource
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.queues import (
    annotate,
    phase,
    request,
    set_queue,
    wait_for_phase,
    wait_status,
)
from tests.controller.end_to_end.teams import Team
from tests.controller.hold_cases import is_held
from tests.controlplane import objects
from tests.controlplane.argo import small_workflows
from tests.controlplane.argo.small_workflows import dag, task
from tests.controlplane.exceptions import ApiError
from tests.controlplane.waiting import wait_until
from tests.support.attacks import planner_memory_bytes, run_of_steps
from tests.support.hidden_demands import ANSWER, FORGED, HIDDEN, TAKES_MORE, WAIT, requests, work
from tests.support.manifests import a_queue
from tests.support.queue_attacks import (
    IS_KEPT,
    ONE_CPU,
    SECONDS,
    a_run,
    admitted,
    create,
    demanded_cpu,
    denies,
    gains_nothing,
    pods_made_of,
    pods_of,
    wait_for_message,
)

LARGE_STEPS, LARGE_RUNS = 6_000, 20
MOST_MEMORY_BYTES = 300e6
TIMEOUT_SECONDS = 600.0


def test_what_cannot_be_read_waits_for_a_demand_that_its_queue_states(team, tenant):
    set_queue(team, quota={"resources": [{"name": "cpu", "amount": "1"}]}, holdDeadline="1s")
    elsewhere = {"name": "t", "template": "work"}
    reference = a_run(team, "reference", workflowTemplateRef={"name": "t"})
    del reference["spec"]["templates"], reference["spec"]["entrypoint"]
    tenant.create(reference)
    create(tenant, team, "task", dag("main", {"name": "only", "templateRef": elsewhere}))
    create(
        tenant,
        team,
        "steps",
        dag("main", task("all", withSequence={"count": "10001"})),
        work(),
    )
    hook = {"running": {"template": "large", "expression": "true"}}
    create(tenant, team, "hooked", work(), work("3", name="large"), hooks=hook)
    names = ["reference", "task", "steps", "hooked"]
    gains_nothing(team, *names)
    for name in names:
        assert "spec.unreadable of its RunQueue" in wait_status(team, name)["message"]
    two = {"resources": [{"name": "cpu", "amount": "2"}]}
    team.api.patch(a_queue(team.name), {"spec": {"unreadable": two}})
    for name in names:
        wait_for_message(team, name, "cpu more than the whole quota")
    gains_nothing(team, *names)


def test_a_run_that_hides_what_it_needs_waits(queueing, team, tenant):
    """Each begins with pods of 3 CPU, or comes to that, if it is let go."""
    set_queue(team, quota=ONE_CPU, holdDeadline="10s")
    for name, (templates, spec) in HIDDEN.items():
        create(tenant, team, name, *templates, **spec)
    gains_nothing(team, *HIDDEN)
    for name in HIDDEN:
        assert request(team, name)["spec"].get("problem") or demanded_cpu(team, name) >= 3000, name
    assert all(process.running for process in queueing.processes.values())


def test_a_run_is_not_rewritten_after_its_demand_was_made(team, tenant):
    """Whoever may rewrite it changes its demand, too."""
    made = create(tenant, team, "grows", work("100m"))
    wait_for_phase(team, "grows", "Waiting")
    large = {"spec": {"templates": [work("3")]}}
    denies(tenant, made, large, IS_KEPT)
    team.api.patch(made, large)
    peak = {"name": "cpu", "amount": "3"}
    wait_until(lambda: peak in request(team, "grows")["spec"]["demand"]["peak"], "the demand")
    set_queue(team, quota={"resources": [{"name": "cpu", "amount": "2"}]}, holdDeadline="1s")
    gains_nothing(team, "grows")


def from_template(team: Team, name: str, **spec: Any) -> JsonObject:
    """A run of WorkflowTemplate `t`, which is not made here."""
    return {**a_run(team, name), "spec": {"workflowTemplateRef": {"name": "t"}, **spec}}


def test_a_stored_spec_that_argo_would_join_again_hides_what_a_run_needs(team, tenant):
    """An engine may write the status of a new run: KFP's API copies Workflows of its users."""
    set_queue(team, quota={"resources": [{"name": "cpu", "amount": "1"}]}, holdDeadline="1s")
    templates = [work(name="small"), work("3", name="big")]
    stored = {"entrypoint": "small", "templates": templates}
    forms: dict[str, JsonObject] = {
        "entry": {"entrypoint": "big"},
        "resumed": {"entrypoint": "big", "suspend": False},
        "handled": {"onExit": "big"},
        "collected": {"artifactGC": {"podSpecPatch": "{}"}},
    }
    for name, spec in forms.items():
        run = from_template(team, name, **spec)
        with pytest.raises(ApiError, match="only Argo writes into the status"):
            tenant.create({**run, "status": {"storedWorkflowTemplateSpec": stored}})
        team.api.create({**run, "status": {"storedWorkflowTemplateSpec": stored}})
    for name in forms:
        wait_for_message(team, name, "spec.unreadable of its RunQueue")
    gains_nothing(team, *forms)


def test_a_spec_that_argo_itself_has_stored_is_read_without_doubt(team, tenant):
    """Whatever the run's own spec says, and also once its owner has suspended and resumed it."""
    library = small_workflows.workflow(work("0.5", seconds=600.0))
    arguments = {"parameters": [{"name": "text", "value": "1"}]}
    library |= {"kind": "WorkflowTemplate", "metadata": {"name": "t", "namespace": team.name}}
    del library["status"]
    library["spec"] |= {"entrypoint": "work", "arguments": arguments}
    tenant.create(library)
    own = {"parameters": [{"name": "text", "value": 0.5}]}
    more = {"podMetadata": {"labels": {"team": "own"}}, "tolerations": [{"key": "own"}]}
    made = tenant.create(from_template(team, "honest", arguments=own, **more))
    wait_for_phase(team, "honest", "Waiting")
    annotate(team, "honest", "admit")

    def is_read() -> bool:
        stated = request(team, "honest")["spec"]
        return not stated.get("problem") and {"name": "cpu", "amount": "500m"} in stated.get(
            "demand", {}
        ).get("peak", [])

    for suspend in (None, True, None):
        tenant.patch(made, {"spec": {"suspend": suspend}})
        wait_until(is_read, "its demand", 60, lambda: team.workflow("honest"))
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            assert is_read()
            time.sleep(0.2)


def test_pods_that_delete_artifacts_and_are_patched_hide_what_a_run_needs(team, tenant):
    set_queue(team, quota={"resources": [{"name": "cpu", "amount": "1"}]}, holdDeadline="1s")
    artifact = {"name": "o", "path": "/o", "s3": {"key": "x"}}
    makes = {**work(), "outputs": {"artifacts": [artifact]}}
    collects = {"strategy": "OnWorkflowCompletion", "podSpecPatch": requests("3")}
    create(tenant, team, "collected", makes, artifactGC=collects)
    wait_for_message(team, "collected", "artifactGC.podSpecPatch")
    gains_nothing(team, "collected")


def test_steps_that_argo_would_run_are_not_believed_to_have_ended(team, tenant):
    set_queue(team, quota=ONE_CPU, holdDeadline="10s")
    for name, ((templates, spec), nodes) in FORGED.items():
        run = a_run(team, name, *templates, **spec)
        tenant.create({**run, "status": {"phase": "Running", "nodes": nodes}})
    gains_nothing(team, *FORGED)
    for name in FORGED:
        assert demanded_cpu(team, name) == 3000, name


def test_large_runs_do_not_begin_before_the_planner_has_read_them(queueing, team, tenant):
    """The tenant gains nothing: all wait for their turn, in little memory."""
    set_queue(team, quota={"runs": 0}, holdDeadline="1s")
    unknown = {f"large-{number}" for number in range(LARGE_RUNS)}
    for name in sorted(unknown):
        tenant.create(run_of_steps(LARGE_STEPS, name, team.name))
    began, largest = time.monotonic(), 0
    while unknown:
        assert time.monotonic() - began < TIMEOUT_SECONDS, unknown
        for name in sorted(unknown):
            if request(team, name).get("spec", {}).get("demand"):
                assert is_held(team.workflow(name)), name
                unknown.discard(name)
        largest = max(largest, planner_memory_bytes(queueing))
        time.sleep(0.5)
    gains_nothing(team, "large-0")
    assert largest < MOST_MEMORY_BYTES, largest


@pytest.mark.parametrize("name", TAKES_MORE)
def test_what_a_run_takes_beyond_its_demand_is_limited_by_a_resource_quota(
    team, tenant, name, argo_program
):
    """The tenant gains nothing: its pods wait for each other, and its run ends nevertheless."""
    # A quota of CPU would keep these runs waiting.
    set_queue(team, quota={"runs": 1}, holdDeadline="60s")
    limit_cpu(team, "1")
    (templates, spec), supplied = TAKES_MORE[name]
    if supplied and argo_program is None:
        pytest.skip("the stand-in of Argo knows no supplied values (--argo-controller)")
    made = create(tenant, team, name, *templates, **spec)

    def pauses() -> dict[str, JsonObject]:
        nodes = team.workflow(name).get("status", {}).get("nodes", {})
        return {key: node for key, node in nodes.items() if node["type"] == "Suspend"}

    wait_until(lambda: len(pauses()) == (3 if name == "pauses" else 1), "all to pause", 60)
    ended = {"phase": "Succeeded", "finishedAt": "2026-01-05T08:00:01Z"}
    resumed = {key: ended | ({"outputs": supplied} if supplied else {}) for key in pauses()}
    tenant.patch(made, {"status": {"nodes": resumed}})
    until = time.monotonic() + TIMEOUT_SECONDS
    while not team.workflow(name)["status"].get("finishedAt"):
        assert requested_cpu(team, name) <= 1000
        assert time.monotonic() < until, team.workflow(name)["status"]
        time.sleep(0.2)
    assert phase(team.workflow(name)) == "Succeeded"
    assert len(team.pods()) >= 3


def test_what_is_known_only_at_run_time_takes_no_more_than_the_quota(team, tenant, argo_program):
    """Twelve items of a loop that is planned with three, supplied while another run waits."""
    if argo_program is None:
        pytest.skip("the stand-in of Argo knows no supplied values (--argo-controller)")
    set_queue(team, quota={"resources": [{"name": "cpu", "amount": "3"}]}, holdDeadline="60s")
    loop = task("all", "one", depends="w", withParam=ANSWER)
    one = work("900m", name="one", seconds=1.0)
    tasks = dag("main", task("w", "w"), loop, parallelism=3)
    made = admitted(team, tenant, "wide", tasks, WAIT, one)
    create(tenant, team, "next", work("900m"))
    wait_for_message(team, "next", "lacks 600m cpu of the quota")

    def pauses() -> list[str]:
        nodes = team.workflow("wide")["status"].get("nodes", {})
        return [key for key, node in nodes.items() if node["type"] == "Suspend"]

    wait_until(pauses, "it to pause", 60)
    items = {"name": "x", "value": str([*range(12)]), "valueFrom": {"supplied": {}}}
    supplied = {"phase": "Succeeded", "outputs": {"parameters": [items]}}
    tenant.patch(made, {"status": {"nodes": dict.fromkeys(pauses(), supplied)}})
    until, most = time.monotonic() + TIMEOUT_SECONDS, 0
    while phase(team.workflow("next")) != "Succeeded":
        assert time.monotonic() < until, team.workflow("wide")["status"]
        most = max(most, requested_cpu(team, "wide", "next"))
    assert len(pods_made_of(team, "wide")) == 12
    assert 900 <= most <= 3000


def limit_cpu(team: Team, amount: str) -> None:
    """Give a namespace a ResourceQuota, and a default for containers that request nothing."""
    default = {"type": "Container", "defaultRequest": {"cpu": "10m"}}
    for kind, spec in (
        ("LimitRange", {"limits": [default]}),
        ("ResourceQuota", {"hard": {"requests.cpu": amount}}),
    ):
        team.api.create(objects.an_object("v1", kind, "all", team.name, spec=spec))
    wait_until(
        lambda: team.api.get("v1", "ResourceQuota", "all", team.name).get("status", {}).get("hard"),
        "the ResourceQuota to be in force",
    )


def requested_cpu(team: Team, *names: str) -> int:
    """Thousandths of a CPU that the live pods of runs request at one moment."""
    return sum(
        parse_resource("cpu", each["resources"].get("requests", {}).get("cpu", "0"))
        for pod in pods_of(team, *names)
        for each in pod["spec"]["containers"]
    )
