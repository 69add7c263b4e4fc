"""What a tenant can do to begin runs out of turn, or to take more than the quota of their queue.

The tenant may edit its namespace and do everything with the Workflows there.
"""

import contextlib
import copy
import itertools
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

import pytest

from kfp_placement_controller.queueing.statuses.publisher import NOT_STOPPED
from kfp_placement_engine.contract.keys import (
    API_VERSION,
    ENABLED_LABEL,
    PREEMPTED_ANNOTATION,
    PREEMPTED_LABEL,
    QUEUE_INSTANCE,
)
from kfp_placement_engine.readers.argo.keys import (
    ARTIFACT_FINALIZER,
    COMPLETED_LABEL,
    INSTANCE_LABEL,
)
from kfp_placement_engine.readers.argo.workflow_nodes import node_id
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.queues import (
    annotate,
    phase,
    released,
    request,
    set_queue,
    wait_for_phase,
    wait_for_workflow,
    wait_status,
)
from tests.controller.end_to_end.small_pipelines import compiled, step
from tests.controller.end_to_end.teams import LASTING_SECONDS, Team
from tests.controller.hold_cases import is_held
from tests.controlplane import housekeeping, objects
from tests.controlplane.api import Api
from tests.controlplane.argo.small_workflows import dag, task
from tests.controlplane.exceptions import ApiError
from tests.controlplane.waiting import wait_until
from tests.support.hidden_demands import requests, work
from tests.support.installation import Installation
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
    pods_of,
    wait_for_message,
    wait_for_pod,
)

RUNS = "argoproj.io"


STATUS_IS_KEPT = "a queue counts with how far this run is"


def test_only_what_ends_without_a_pod_leaves_its_queue_unadmitted(team, tenant):
    stopped = {"shutdown": "Stop"}
    late = {"activeDeadlineSeconds": 0}
    hooked = dag("main", task("only", hooks={"exit": {"template": "work"}}))
    begun = {"nodes": {"wf": {"id": "wf", "name": "wf", "type": "Pod", "phase": "Succeeded"}}}
    create(tenant, team, "later", shutdown="later")
    create(tenant, team, "stopped-with-handler", onExit="work", **stopped)
    create(tenant, team, "stopped-with-hook", hooked, work(), **stopped)
    create(tenant, team, "late-with-handler", onExit="work", **late)
    create(tenant, team, "late-with-agent", {"name": "call", "http": {"url": "http://x"}}, **late)
    create(tenant, team, "long-letters", shutdown="Terminate", **{"\u017fhutdown": ""})
    collected = a_run(team, "collected", shutdown="Terminate", artifactGC={"strategy": "Never"})
    tenant.create({**collected, "status": begun})
    artifact = {"name": "o", "s3": {"key": "k"}, "artifactGC": {"strategy": "OnWorkflowCompletion"}}
    node = {**begun["nodes"]["wf"], "outputs": {"artifacts": [artifact]}}
    by_status = a_run(team, "collected-by-status", shutdown="Terminate")
    tenant.create({**by_status, "status": {"nodes": {"wf": node}}})
    names = ["later", "stopped-with-handler", "stopped-with-hook", "late-with-handler"]
    names += ["late-with-agent", "long-letters", "collected", "collected-by-status"]
    gains_nothing(team, *names)


def test_what_is_terminated_ends_without_a_pod(team, tenant, argo_program):
    """By KFP and, where Argo itself decides, by Argo's own words."""
    ways: dict[str, JsonObject] = {"late": {"activeDeadlineSeconds": 0}}
    if argo_program is not None:
        ways |= {"stopped": {"shutdown": "Stop"}, "terminated": {"shutdown": "Terminate"}}
    for name, way in ways.items():
        handler = {"onExit": "work"} if name == "terminated" else {}
        made = create(tenant, team, name, **handler)
        tenant.patch(made, {"spec": way})
    for name in ways:
        assert phase(team.wait_for_end(name)) == "Failed"
    assert team.pods() == []


def test_a_termination_cannot_be_taken_back_while_the_run_is_let_go(team, tenant):
    made = create(tenant, team, "back", suspend=True)
    made = tenant.patch(made, {"spec": {"activeDeadlineSeconds": 0, "shutdown": "Terminate"}})
    released(team, "back")
    for spec in ({"shutdown": None}, {"shutdown": "Stop"}, {"activeDeadlineSeconds": 100}):
        denies(tenant, made, {"spec": spec}, IS_KEPT)
    assert team.pods() == []


def test_an_admitted_run_is_not_rewritten(team, tenant):
    set_queue(team, quota={"resources": [{"name": "cpu", "amount": "1"}]})
    tasks = dag("main", task("first", "wait"), task("last", depends="first"))
    made = admitted(team, tenant, "runs", tasks, work(seconds=LASTING_SECONDS, name="wait"), work())
    large = {"spec": {"templates": [tasks, work(name="wait"), work("3")]}}
    denies(tenant, made, large, IS_KEPT)
    denies(tenant, made, {"spec": {"podSpecPatch": "{}"}}, IS_KEPT)
    stored = {"storedTemplates": {"namespaced/t/work": work("3")}}
    denies(tenant, made, {"status": stored}, STATUS_IS_KEPT)
    team.end_step("runs")
    team.wait_for_success("runs")
    containers = [each for pod in team.pods() for each in pod["spec"]["containers"]]
    mains = [each for each in containers if each["name"] == "main"]
    assert {each["resources"]["requests"]["cpu"] for each in mains} == {"100m"}


KINDS_OF_VALUES: tuple[Any, ...] = (None, [], ["x"], 5, "x", True)
READ_BY_ADMISSION = [
    "metadata.labels",
    "metadata.annotations",
    "metadata.finalizers",
    "spec",
    "spec.suspend",
    "spec.shutdown",
    "spec.activeDeadlineSeconds",
    "status",
    "status.phase",
    "status.nodes",
    "status.storedTemplates",
    "status.storedWorkflowTemplateSpec",
]


def with_value(item: JsonObject, path: str, value: Any) -> JsonObject:
    """A copy of an object in which a field has some value."""
    changed = copy.deepcopy(item)
    *outer, last = path.split(".")
    inside = changed
    for key in outer:
        inside = inside.setdefault(key, {})
    inside[last] = value
    return changed


def test_no_kind_of_value_makes_admission_overlook_a_change(team, tenant):
    """Admission is ignored where it fails, so no value of a field may make it fail."""
    set_queue(team, quota=ONE_CPU)
    odd = [(path, value) for path in READ_BY_ADMISSION for value in KINDS_OF_VALUES]
    for path, value in odd:
        with contextlib.suppress(ApiError):
            new = with_value(a_run(team, "new"), path, value)
            assert is_held(tenant.create(new, dryRun="All")), (path, value)
    create(tenant, team, "held", work("3"))
    wait_for_phase(team, "held", "Waiting")
    admitted(team, tenant, "begun", work(seconds=600.0))
    for name, (path, value) in itertools.product(("held", "begun"), odd):
        patch = with_value(FORBIDDEN, path, value)
        refuses(partial(tenant.patch, team.workflow(name), patch))
        refuses(partial(replace, team, tenant, name, path, value))


FORBIDDEN: JsonObject = {
    "spec": {"podSpecPatch": requests("3")},
    "status": {"nodes": {"x": {"id": "x", "name": "x", "type": "Pod", "phase": "Succeeded"}}},
}
"""Changes of a run that has not ended, each of which is refused."""


def replace(team: Team, tenant: Api, name: str, path: str, value: Any) -> None:
    """Write a whole Workflow with what is forbidden, and some value of a field."""
    now = team.workflow(name)
    status = now.get("status", {})
    nodes = status.get("nodes", {}) | FORBIDDEN["status"]["nodes"]
    changed = {"spec": now["spec"] | FORBIDDEN["spec"], "status": {**status, "nodes": nodes}}
    tenant.replace(with_value({**now, **changed}, path, value))


def refuses(write: Callable[[], object]) -> None:
    """Check that a write is refused, whoever else writes the object at that time."""
    status = HTTPStatus.CONFLICT
    while status == HTTPStatus.CONFLICT:
        with pytest.raises(ApiError) as refused:
            write()
        status = HTTPStatus(refused.value.status)
    assert status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)


def test_of_a_pause_nothing_changes_but_that_it_ends(team, tenant):
    """People resume what pauses, and need to write its step for that."""
    set_queue(team, quota={"resources": [{"name": "cpu", "amount": "4"}]}, holdDeadline="10s")
    pause = {"name": "pause", "suspend": {"duration": "600"}}
    tasks = dag("main", task("a", "pause"), task("b", "pause"), task("c", depends="a"))
    made = admitted(team, tenant, "pauses", tasks, pause, work("3", seconds=600.0))

    def pauses() -> dict[str, str]:
        nodes = team.workflow("pauses")["status"].get("nodes", {})
        kinds = {key: node for key, node in nodes.items() if node["type"] == "Suspend"}
        # Argo may be set so that it tries each step again.
        return {node["displayName"].removesuffix("(0)"): key for key, node in kinds.items()}

    wait_until(lambda: {"a", "b"} == pauses().keys(), "both to pause", 60)
    first, second = (pauses()[name] for name in ("a", "b"))
    ended = {"phase": "Succeeded", "finishedAt": "2026-01-05T08:00:01Z"}
    changes: tuple[JsonObject, ...] = (
        {"name": "pauses.c", **ended},
        {"id": node_id("pauses", "pauses.c"), **ended},
        {"type": "Pod"},
        {"templateName": "work"},
        {"boundaryID": "x"},
        {"children": ["x"]},
        {"outputs": {"artifacts": []}},
        {"taskResultSynced": False},
    )
    for change in changes:
        denies(tenant, made, {"status": {"nodes": {second: change}}}, STATUS_IS_KEPT)
    create(tenant, team, "next", work("3"))
    wait_for_message(team, "next", "lacks 2 cpu of the quota")
    tenant.patch(made, {"status": {"nodes": {first: ended}}})
    wait_for_pod(team, "pauses")
    assert demanded_cpu(team, "pauses") == 3000
    assert is_held(team.workflow("next"))


def test_no_write_is_too_large_to_be_checked(team, tenant):
    """A check that costs too much would let the write pass."""
    set_queue(team, quota={"runs": 1})
    pause = {"name": "pause", "suspend": {"duration": "600"}}
    loop = dag("main", task("a", "pause", withSequence={"count": "100"}), task("b"))
    made = admitted(team, tenant, "wide", loop, pause, work(seconds=600.0))

    def nodes() -> dict[str, JsonObject]:
        status: JsonObject = team.workflow("wide")["status"]
        return status.get("nodes", {})

    def paused() -> list[str]:
        return [key for key, node in nodes().items() if node["type"] == "Suspend"]

    wait_until(lambda: len(paused()) == 100, "all to pause", 120)
    wait_for_pod(team, "wide")
    messages = {key: {"message": "go on"} for key in paused()}
    many = dict(list(messages.items())[:31])
    (pod,) = (key for key, node in nodes().items() if node["type"] == "Pod")
    for changes in (messages | {pod: {"phase": "Failed"}}, many):
        denies(tenant, made, {"status": {"nodes": changes}}, STATUS_IS_KEPT)
    few = dict(list(messages.items())[:30])
    tenant.patch(made, {"status": {"nodes": few}})


def test_a_run_that_is_given_to_another_controller_keeps_its_place(team, tenant):
    set_queue(team, quota={"runs": 1})
    made = admitted(team, tenant, "given", work(seconds=600.0))
    wait_for_pod(team, "given")
    for instance in ("other", None):
        tenant.patch(made, {"metadata": {"labels": {INSTANCE_LABEL: instance}}})
        create(tenant, team, f"after-{instance or 'none'}")
        wait_for_phase(team, f"after-{instance or 'none'}", "Waiting")
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        assert pods_of(team, "given")
        assert is_held(team.workflow("after-other"))
        assert is_held(team.workflow("after-none"))
        time.sleep(0.2)


def test_a_run_whose_end_its_owner_writes_keeps_its_place_until_its_pods_end(team, tenant):
    set_queue(team, quota={"runs": 1})
    made = admitted(team, tenant, "ends", work(seconds=LASTING_SECONDS))
    wait_for_pod(team, "ends")
    denies(tenant, made, {"status": {"phase": "Failed"}}, "only Argo changes its status")
    tenant.patch(made, {"metadata": {"labels": {COMPLETED_LABEL: "true"}}})
    create(tenant, team, "next")
    wait_for_phase(team, "next", "Waiting")
    time.sleep(SECONDS)
    assert is_held(team.workflow("next"))
    team.end_step("ends")
    while pods_of(team, "ends"):
        assert is_held(team.workflow("next")) or not pods_of(team, "ends")
        time.sleep(0.2)
    team.wait_for_success("next")


def test_a_run_that_its_owner_ends_and_begins_again_waits_as_what_it_has_become(team, tenant):
    cpu = {"resources": [{"name": "cpu", "amount": "2"}]}
    set_queue(team, quota=cpu, holdDeadline="1s")
    made = admitted(team, tenant, "again", work("1", seconds=LASTING_SECONDS))
    wait_for_pod(team, "again")
    made = tenant.patch(made, {"metadata": {"labels": {COMPLETED_LABEL: "true"}}})
    made = tenant.patch(made, {"spec": {"templates": [work("3")]}})
    for field in ("storedTemplates", "storedWorkflowTemplateSpec"):
        stored = {"status": {field: {"x": work()}}}
        denies(tenant, made, stored, "only Argo stores templates")
    made = tenant.patch(made, {"metadata": {"labels": {COMPLETED_LABEL: None}}})
    assert is_held(made)
    wait_for_phase(team, "again", "Waiting")
    create(tenant, team, "beside", work("1500m"))
    wait_for_phase(team, "beside", "Waiting")
    wait_for_message(team, "beside", "lacks 500m cpu of the quota")
    housekeeping.delete_pods(team.api, team.name)
    team.wait_for_success("beside")
    wait_for_message(team, "again", "needs 1 cpu more than the whole quota")
    assert is_held(team.workflow("again"))


def test_a_status_that_its_creator_writes_lets_nothing_begin(team, tenant):
    ended = {"phase": "Succeeded", "finishedAt": "2026-01-05T08:00:00Z", "nodes": {"x": {}}}
    begun = {"phase": "Running", "startedAt": "2026-01-05T08:00:00Z"}
    for name, status in {"ended": ended, "begun": begun}.items():
        tenant.create({**a_run(team, name), "status": status})
    held = a_run(team, "held")
    held["metadata"]["labels"] = {INSTANCE_LABEL: QUEUE_INSTANCE}
    tenant.create({**held, "status": begun})
    gains_nothing(team, "ended", "begun", "held")
    denies(tenant, held, {"metadata": {"labels": {INSTANCE_LABEL: None}}}, "waits in a queue")
    denies(tenant, held, {"metadata": {"labels": {INSTANCE_LABEL: "x"}}}, "waits in a queue")


def test_a_new_run_has_nothing_that_only_argo_writes(team, tenant):
    step_nodes = {f"n{number}": {"id": "x", "name": "x"} for number in range(301)}
    statuses: tuple[JsonObject, ...] = (
        {"storedWorkflowTemplateSpec": {"entrypoint": "work", "templates": [work()]}},
        {"storedTemplates": {"namespaced/t/work": work()}},
        {"compressedNodes": "H4sIAAAAAAAA"},
        {"offloadNodeStatusVersion": "fnv:1"},
        {"artifactGCStatus": {"strategiesProcessed": {}}},
        {"synchronization": {"mutex": {}}},
        {"nodes": step_nodes},
    )
    for status in statuses:
        with pytest.raises(ApiError, match="only Argo writes into the status"):
            tenant.create({**a_run(team, "new"), "status": status})
    for labels in ({}, {COMPLETED_LABEL: "true"}):
        run = a_run(team, "new")
        run["metadata"] |= {"labels": labels, "finalizers": [ARTIFACT_FINALIZER]}
        with pytest.raises(ApiError, match="only Argo adds the finalizer"):
            tenant.create(run)
    made = create(tenant, team, "later")
    added = {"metadata": {"finalizers": [ARTIFACT_FINALIZER]}}
    denies(tenant, made, added, "only Argo adds the finalizer")
    assert team.pods() == []


def test_a_run_is_held_however_it_is_written(team, tenant):
    """Admission lets begin whatever it cannot change; so there must be nothing that it cannot."""
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    same = {"name": "same", "value": "x"}
    forms: dict[str, JsonObject] = {
        "deep": {"note": deep},
        "large": {"note": "x" * 1_300_000},
        "odd": {"templates": [{**work(), "container": {"env": [same, same]}}, "x", None, 5]},
        "empty": {"templates": None, "entrypoint": None},
    }
    for name, spec in forms.items():
        run = a_run(team, name)
        run["metadata"]["labels"] = None if name == "odd" else {}
        assert is_held(tenant.create({**run, "spec": {**run["spec"], **spec}})), name
    unnamed = a_run(team, "")
    unnamed["metadata"] = {"generateName": "unnamed-", "namespace": team.name}
    assert is_held(tenant.create(unnamed))
    gains_nothing(team, "deep", "large", "odd", "empty")


def test_another_controller_exempts_a_run_only_if_the_queue_names_it(team, tenant):
    for name in ("mine", ""):
        run = a_run(team, f"of-{name or 'none'}")
        run["metadata"]["labels"] = {INSTANCE_LABEL: name}
        assert is_held(tenant.create(run))
    gains_nothing(team, "of-mine", "of-none")
    set_queue(team, quota={"runs": 0}, exemptInstanceIDs=["mine"])
    run = a_run(team, "exempt")
    run["metadata"]["labels"] = {INSTANCE_LABEL: "mine"}

    def is_exempt() -> bool:
        return not is_held(team.api.create(copy.deepcopy(run), dryRun="All"))

    wait_until(is_exempt, "admission to know the controller")
    tenant.create(run)
    assert is_held(tenant.patch(run, {"metadata": {"labels": {INSTANCE_LABEL: None}}}))


def priorities(queueing: Installation, team: Team, tenant: Api) -> tuple[str, str]:
    """A run that has made room for another, and that other one."""
    set_queue(team, quota={"resources": [{"name": "cpu", "amount": "2"}]})

    def three(priority: int) -> JsonObject:
        def body() -> None:
            marks: dict[str, Any] = {"cpu": "1500m", "priority": priority}
            first = step("first", duration=f"{LASTING_SECONDS:g}s", **marks)
            middle = step("middle", first, duration="8s", **marks)
            step("last", middle, duration="100ms", **marks)

        return compiled("high" if priority else "low", body)

    low = team.submit(three(0))
    team.wait_for_step(low)
    high = team.submit(three(10))
    wait_until(lambda: team.workflow(low)["spec"].get("suspend"), "the first to stop", 60)
    team.end_step(low)
    wait_until(lambda: not is_held(team.workflow(high)), "the second to begin", 60)
    return low, high


def test_a_preempted_run_is_not_resumed_beside_its_preemptor(queueing, team, tenant):
    low, high = priorities(queueing, team, tenant)
    made = team.workflow(low)
    denies(tenant, made, {"spec": {"suspend": None}}, "its queue has stopped this run")
    labels, annotations = {PREEMPTED_LABEL: None}, {PREEMPTED_ANNOTATION: None}
    unmarked = {"metadata": {"labels": labels, "annotations": annotations}}
    denies(tenant, made, {**unmarked, "spec": {"suspend": None}}, "only its queue marks a run")
    # As Argo's server does for a tenant that may resume runs there.
    team.api.patch(made, {"spec": {"suspend": None}})
    wait_until(lambda: team.workflow(low)["spec"].get("suspend") is True, "it to stop again")
    team.end_step(high)
    while not team.workflow(high).get("status", {}).get("finishedAt"):
        assert len([*pods_of(team, low)]) <= 1
        assert not team.workflow(low)["status"].get("finishedAt")
        time.sleep(0.5)
    team.wait_for_success(high)
    team.wait_for_success(low)


def test_nobody_forges_a_preemption_to_keep_room_for_a_run(team, tenant):
    made = create(tenant, team, "waits")
    forged = a_run(team, "forged", suspend=True)
    marks = {"annotations": {PREEMPTED_ANNOTATION: made["metadata"]["uid"]}}
    forged["metadata"] |= marks
    with pytest.raises(ApiError, match="only its queue marks a run as preempted"):
        tenant.create(forged)
    denies(tenant, made, {"metadata": marks}, "only its queue marks a run as preempted")
    gains_nothing(team, "waits")


@pytest.mark.parametrize("is_suspended", [False, True])
def test_marks_that_argo_writes_stop_no_run_and_keep_no_room(team, tenant, is_suspended):
    """Argo writes what a spec asks for, and admission lets it."""
    large = create(tenant, team, "large", work("2"))
    marks = {
        "annotations": {PREEMPTED_ANNOTATION: large["metadata"]["uid"]},
        "labels": {PREEMPTED_LABEL: "true"},
    }
    one = work("1", seconds=600.0)
    create(tenant, team, "forged", one, workflowMetadata=marks, suspend=is_suspended)
    wait_for_phase(team, "forged", "Waiting")
    annotate(team, "forged", "admit")
    wait_for_marks(team, "forged")
    set_queue(team, quota={"resources": [{"name": "cpu", "amount": "2"}]}, holdDeadline="1s")
    # Were room kept for the large one, the small one behind it would wait.
    create(tenant, team, "small", work("1", seconds=600.0))
    wait_for_workflow(team, "small", "Running")
    wait_for_message(team, "large", "lacks 2 cpu of the quota")
    wait_until(lambda: wait_status(team, "forged").get("notes") == [NOT_STOPPED], "the note", 60)
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        assert is_held(team.workflow("large"))
        assert bool(team.workflow("forged")["spec"].get("suspend")) == is_suspended
        assert wait_status(team, "forged")["phase"] == "Admitted"
        time.sleep(0.2)


def wait_for_marks(team: Team, name: str) -> None:
    """Wait until a run goes on, marked as if its queue had stopped it."""

    def has_marks() -> bool:
        metadata = team.workflow(name)["metadata"]
        both = metadata.get("annotations", {}).keys() | metadata.get("labels", {}).keys()
        return {PREEMPTED_ANNOTATION, PREEMPTED_LABEL} <= both

    wait_until(has_marks, f"marks of {name}", 60)


def test_a_run_that_is_made_again_under_its_name_waits_again(team, tenant):
    set_queue(team, quota={"runs": 1}, holdDeadline="1s")
    made = admitted(team, tenant, "same", work(seconds=LASTING_SECONDS))
    wait_for_pod(team, "same")
    set_queue(team, quota={"runs": 0}, holdDeadline="1s")
    tenant.delete(made)
    housekeeping.delete_pods(team.api, team.name)
    assert is_held(create(tenant, team, "same", work("3")))
    gains_nothing(team, "same")


def test_tenants_write_nothing_that_queues_decide_by(team, tenant):
    create(tenant, team, "waits")
    wait_for_phase(team, "waits", "Waiting")
    ask = {"metadata": {"annotations": {"kfp-placement.dev/admit": "2026-01-05T08:00:00Z"}}}
    queue = team.api.get(API_VERSION, "RunQueue", "default", team.name)
    namespace = objects.an_object("v1", "Namespace", team.name)
    stated = request(team, "waits")
    for item, patch in (
        (stated, ask),
        (stated, {"spec": {"demand": None}}),
        (queue, {"spec": {"quota": {"runs": 9}}}),
        (namespace, {"metadata": {"labels": {ENABLED_LABEL: "false"}}}),
    ):
        with pytest.raises(ApiError) as refused:
            tenant.patch(item, patch)
        assert refused.value.status == 403
    for item in (stated, queue):
        with pytest.raises(ApiError) as refused:
            tenant.patch(item, {"status": {"phase": "Admitted", "ready": False}}, part="status")
        assert refused.value.status == 403
    gains_nothing(team, "waits")
