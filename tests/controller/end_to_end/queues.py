"""RunQueues of an end-to-end test, and the runs that wait in them."""

import copy
from datetime import UTC, datetime
from typing import Any

from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.readers.argo.keys import COMPLETED_LABEL
from kfp_placement_engine.units.times import parse_time, time_text
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.teams import Team
from tests.controller.hold_cases import is_held
from tests.controlplane.exceptions import ApiError
from tests.controlplane.waiting import wait_until
from tests.support.hold_webhook import would_hold
from tests.support.installation import Installation
from tests.support.manifests import NAMESPACE, a_queue

PHASE_LABEL = "workflows.argoproj.io/phase"


def set_queue(team: Team, **spec: Any) -> None:
    """Make the queue `default` of a team, or change it, and wait until it holds new runs so."""
    queue = a_queue(team.name, **spec)
    generation = team.api.patch(queue, queue, how="apply")["metadata"]["generation"]

    def is_ready() -> bool:
        now = status(team)
        return now.get("ready") is True and now["observedGeneration"] == generation

    wait_until(is_ready, "a queue to be ready as it is now", state=lambda: status(team))
    # Where our kinds were installed a moment ago, again and again, admission learns of them later.
    wait_until(lambda: would_hold(team.api, team.name), "admission to know the queue")


def wait_until_none_is_held(team: Team) -> None:
    """Wait until a queue is not ready, and admission has seen it: from then on no run is held."""
    wait_until(lambda: status(team)["ready"] is False, "a dead one to be seen")
    conditions = {each["type"]: each["status"] for each in status(team).get("conditions", [])}
    assert conditions["Ready"] == "False"
    wait_until(lambda: not would_hold(team.api, team.name), "admission to see it")


def status(team: Team) -> JsonObject:
    queue = team.api.get(API_VERSION, "RunQueue", "default", team.name)
    return dict(queue.get("status", {}))


def are_past_deadline(installation: Installation, seconds: float) -> bool:
    """Return whether the Leases of `plan` and `queue` were last renewed longer ago than that.

    Args:
        installation: where both are dead.
        seconds: `schedulerStaleAfter` and `holdDeadline` together.
    """
    names = ("kfp-placement-planner", "kfp-placement-queue")
    leases = [
        installation.api.get("coordination.k8s.io/v1", "Lease", name, NAMESPACE) for name in names
    ]
    ages = [datetime.now(UTC) - parse_time(each["spec"]["renewTime"]) for each in leases]
    return all(age.total_seconds() > seconds for age in ages)


def phase(workflow: JsonObject) -> str:
    return str(workflow.get("status", {}).get("phase", ""))


def released(team: Team, name: str) -> None:
    wait_until(lambda: not is_held(team.workflow(name)), f"{name} to be released")


def request(team: Team, name: str) -> JsonObject:
    """The RunRequest of a run, or nothing."""
    try:
        return dict(team.api.get(API_VERSION, "RunRequest", name, team.name))
    except ApiError:
        return {}


def wait_status(team: Team, name: str) -> JsonObject:
    """What the RunRequest of a run says of its waiting."""
    return dict(request(team, name).get("status") or {})


def tried_again(failed: JsonObject) -> JsonObject:
    """What KFP's Retry makes of a failed Workflow: what has succeeded stays, the rest is as new."""
    again = copy.deepcopy(failed)
    labels = again["metadata"]["labels"]
    del labels[COMPLETED_LABEL]
    labels[PHASE_LABEL] = "Running"
    status = again["status"]
    status["phase"] = "Running"
    del status["finishedAt"]
    status.pop("message", None)
    kept = {}
    for name, node in status["nodes"].items():
        if node["phase"] in ("Succeeded", "Skipped"):
            kept[name] = node
        elif node["type"] == "DAG":
            unfinished = {key: node[key] for key in node if key not in ("message", "finishedAt")}
            kept[name] = unfinished | {"phase": "Running"}
    status["nodes"] = kept
    return again


def try_again(installation: Installation, failed: JsonObject) -> None:
    """What KFP's Retry does to a failed Workflow that is still there."""
    again = tried_again(failed)
    nodes, kept = failed["status"]["nodes"], again["status"]["nodes"]
    pods = [node["id"] for name, node in nodes.items() if name not in kept]
    for pod in installation.pods(failed["metadata"]["namespace"]):
        if pod["metadata"]["name"] in pods or pod["status"]["phase"] == "Failed":
            installation.api.delete(pod)
    installation.api.replace(again)


def wait_for_phase(team: Team, name: str, phase: str) -> None:
    """Wait until the RunRequest of a run is in a phase."""
    wait_until(lambda: wait_status(team, name).get("phase") == phase, f"{name} to be {phase}")


def wait_for_workflow(team: Team, name: str, wanted: str) -> None:
    """Wait until a Workflow is in a phase."""
    wait_until(
        lambda: phase(team.workflow(name)) == wanted,
        f"{name} to be {wanted}",
        60,
        lambda: team.workflow(name),
    )


def annotate(team: Team, name: str, what: str) -> None:
    """Ask the queue of a run for something, in a second that has just begun.

    Requests are whole seconds, and one of the second of an earlier request or decision does not
    count.
    """

    def now() -> str:
        return time_text(datetime.now(UTC))

    before = now()
    wait_until(lambda: now() > before, "the next second")
    patch = {"metadata": {"annotations": {f"kfp-placement.dev/{what}": now()}}}
    team.api.patch(request(team, name), patch)
