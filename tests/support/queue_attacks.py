"""Runs by which a tenant attacks its queue, and what they gain."""

import time
from typing import Any

import pytest

from kfp_placement_engine.units.quantities import parse_resource
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.queues import (
    phase,
    released,
    request,
    wait_for_phase,
    wait_status,
)
from tests.controller.end_to_end.teams import Team
from tests.controller.hold_cases import is_held
from tests.controlplane.api import Api
from tests.controlplane.argo import small_workflows
from tests.controlplane.exceptions import ApiError
from tests.controlplane.waiting import wait_until
from tests.support.hidden_demands import work

SECONDS = 3.0
"""Time in which whatever an attack releases would begin; the queue decides within 0.1 s."""


def a_run(team: Team, name: str, *templates: JsonObject, **spec: Any) -> JsonObject:
    """A Workflow of the team whose entrypoint is its first template."""
    templates = templates or (work(),)
    made = small_workflows.workflow(*templates, entrypoint=templates[0]["name"], **spec)
    made["metadata"] = {"name": name, "namespace": team.name}
    del made["status"]
    return made


def create(tenant: Api, team: Team, name: str, *templates: JsonObject, **spec: Any) -> JsonObject:
    return tenant.create(a_run(team, name, *templates, **spec))


def admitted(team: Team, tenant: Api, name: str, *templates: JsonObject, **spec: Any) -> JsonObject:
    """A run that its queue has let begin, and that Argo has begun."""
    create(tenant, team, name, *templates, **spec)
    released(team, name)
    wait_until(lambda: phase(team.workflow(name)) == "Running", f"{name} to run", 60)
    return team.workflow(name)


def wait_for_pod(team: Team, name: str) -> None:
    wait_until(lambda: pods_of(team, name), f"a pod of {name}", 60)


def pods_made_of(team: Team, *names: str) -> list[JsonObject]:
    """The pods of runs at one moment, whether they have ended or not."""
    label = "workflows.argoproj.io/workflow"
    return [pod for pod in team.pods() if pod["metadata"]["labels"].get(label) in names]


def pods_of(team: Team, *names: str) -> list[JsonObject]:
    """The pods of runs at one moment that take something."""
    live = ("Pending", "Running")
    return [pod for pod in pods_made_of(team, *names) if pod["status"]["phase"] in live]


def gains_nothing(team: Team, *names: str) -> None:
    """Check that runs wait, and go on to do so, with no pod of them."""
    for name in names:
        wait_for_phase(team, name, "Waiting")
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        for name in names:
            assert is_held(team.workflow(name)), name
        assert team.pods() == []
        time.sleep(0.2)


def wait_for_message(team: Team, name: str, part: str) -> None:
    """Wait until the RunRequest of a run says something."""

    def says() -> bool:
        return part in str(wait_status(team, name).get("message"))

    wait_until(says, f"{name}: {part}", 60, lambda: request(team, name))


def denies(account: Api, item: JsonObject, patch: JsonObject, sentence: str) -> None:
    """Check that a patch is refused with a sentence."""
    with pytest.raises(ApiError, match=sentence) as refused:
        account.patch(item, patch)
    assert refused.value.status == 422


IS_KEPT = "a queue counts with what this run says that it needs"


ONE_CPU = {"resources": [{"name": "cpu", "amount": "1"}]}


def demanded_cpu(team: Team, name: str) -> int:
    """Thousandths of a CPU that a run may take at once, by its RunRequest."""
    demand = request(team, name)["spec"]["demand"]
    amounts = demand.get("most") or demand["peak"]
    return sum(parse_resource("cpu", each["amount"]) for each in amounts if each["name"] == "cpu")
