"""What any user may write, however large, deep or malformed: every other run ends, and is planned.

All at once. A run that Argo can execute ends as well; where we cannot read it, a condition says so.
"""

import base64
import gzip
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.contract.placement import ConditionReason, Phase
from kfp_placement_engine.readers.argo.keys import INSTANCE_LABEL
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.end_to_end.teams import Team, team_of
from tests.controlplane.argo.crds import VERSION as ARGO_VERSION
from tests.controlplane.kubelet.workload import HINTS
from tests.controlplane.waiting import wait_until
from tests.support.installation import EXTEND, PLANNER

DEEP = "[" * 1500 + "]" * 1500
DEEPEST = "[" * 9_980 + "]" * 9_980
"""The server reads 10,000 levels, and so does everybody who reads a list of objects in Go."""

HOLE = "something deep"
"""Stands for that, since Python could not write it."""

MEMORY_LIMIT_BYTES = 2**30
"""Half of what the shipped Deployment of `plan` may take."""


@dataclass(frozen=True)
class Awkward:
    """A Workflow that somebody has written.

    Attributes:
        changed: makes it of a plain one.
        ends: what becomes of it; "" = nobody executes it.
        placement: phase that its placement comes to; None = there is none.
        reason: of some condition of its placement.
        ends_by_argo: where Argo's own controller, as KFP configures it, ends it otherwise.
        kills_argo: that controller ends by a panic over it, and with it everything that it runs.
    """

    changed: Callable[[JsonObject], Any]
    ends: str = "Succeeded"
    placement: Phase | None = Phase.SUCCEEDED
    reason: ConditionReason | None = None
    ends_by_argo: str = ""
    kills_argo: bool = False


def hints(text: str) -> Callable[[JsonObject], Any]:
    """The first step says this of itself, in an annotation of its pods."""

    def change(workflow: JsonObject) -> None:
        root = next(each for each in workflow["spec"]["templates"] if each["name"] == "root")
        task = next(each for each in root["dag"]["tasks"] if each["name"] == "s1")
        key = parameter(task["arguments"], "pod-metadata-annotation-key")
        assert key["value"] == HINTS
        parameter(task["arguments"], "pod-metadata-annotation-val")["value"] = text

    return change


def parameter(arguments: JsonObject, name: str) -> JsonObject:
    entry: JsonObject = next(each for each in arguments["parameters"] if each["name"] == name)
    return entry


def deep_component(workflow: JsonObject) -> None:
    """A component that says more than KFP knows of, and that deep."""
    for each in workflow["spec"]["arguments"]["parameters"]:
        if re.fullmatch(r"components-[0-9a-f]{64}", each["name"]):
            each["value"] = f'{each["value"][:-1]},"x":{DEEP}}}'


def deep_spec(workflow: JsonObject) -> None:
    workflow["spec"]["arguments"]["x"] = HOLE


def deep_for_ever(workflow: JsonObject) -> None:
    """Argo writes what it knows of a Workflow; this one it leaves alone, and so it stays deep."""
    deep_spec(workflow)
    held_by_nobody(workflow)


def held_by_nobody(workflow: JsonObject) -> None:
    """It goes on, for a workflow controller that does not exist."""
    workflow["metadata"]["labels"] = {INSTANCE_LABEL: "nobody"}
    workflow["status"] = {"phase": "Running"}


def large_parameter(workflow: JsonObject) -> None:
    large = {"name": "large", "value": "x" * 1_400_000}
    workflow["spec"]["arguments"]["parameters"].append(large)


def bomb(workflow: JsonObject) -> None:
    """68 kB of text; 50 MB of empty lists, which would take 1.6 GB."""
    text = b'{"x":[' + b"[]," * (50_000_000 // 3) + b"0]}"
    packed = base64.b64encode(gzip.compress(text)).decode()
    held_by_nobody(workflow)
    workflow["status"]["compressedNodes"] = packed


AWKWARD: Mapping[str, Awkward] = {
    "large-hints": Awkward(hints(json.dumps({"duration": "100ms", "x": "x" * 250_000}))),
    "deep-hints": Awkward(hints(DEEP)),
    "no-hints": Awkward(hints("{")),
    "large-annotation": Awkward(
        lambda workflow: workflow["metadata"].update(annotations={"x": "x" * 250_000})
    ),
    # Its status is above 1 MB, and KFP gives Argo no database to keep it in.
    "large-parameter": Awkward(large_parameter, ends_by_argo="Error"),
    "deep-component": Awkward(
        deep_component, "Succeeded", Phase.REFUSED, ConditionReason.MISCONFIGURED
    ),
    "deep-spec": Awkward(deep_spec),
    "deep-for-ever": Awkward(deep_for_ever, "", Phase.PLANNED),
    "no-entrypoint": Awkward(
        lambda workflow: workflow["spec"].update(entrypoint="nowhere"),
        "Error",
        Phase.REFUSED,
        ends_by_argo="Failed",
    ),
    "other-form": Awkward(
        lambda workflow: workflow["spec"].update(templates={"name": [1, None]}),
        "Failed",
        Phase.REFUSED,
        kills_argo=True,
    ),
    "bomb": Awkward(bomb, "", Phase.PLANNED, ConditionReason.STATUS_UNREADABLE),
}


@pytest.fixture(scope="module")
def submitted(installation, argo_program):
    """All of them in one namespace, and three plain ones after them: name -> run."""
    with team_of(installation) as team:
        runs = {}
        for name, awkward in AWKWARD.items():
            if awkward.kills_argo and argo_program is not None:
                continue
            workflow = chain(name, 0.1, 0.1)
            awkward.changed(workflow)
            runs[name] = submit(team, workflow)
        for number in range(3):
            runs[f"plain-{number}"] = team.submit(chain("plain", 0.1, 0.1))
        yield team, runs
        team.tidy()
    # Neither has been started again.
    for process in (PLANNER, EXTEND):
        installation.processes[process].check()
        assert installation.is_ready(process)


def submit(team: Team, workflow: JsonObject) -> str:
    """Create a Workflow as it is, be it with a status that somebody has written."""
    text = json.dumps({**workflow, "metadata": {**workflow["metadata"], "namespace": team.name}})
    if "status" not in workflow and HOLE not in text:
        return team.submit(workflow)
    body = text.replace(json.dumps(HOLE), DEEPEST).encode()
    path = team.api.path(ARGO_VERSION, "Workflow", team.name)
    return str(team.api.request("POST", path, body)["metadata"]["name"])


def test_plain_runs_beside_them_are_planned_and_end(submitted):
    team, runs = submitted
    plain = [run for name, run in runs.items() if name.startswith("plain-")]
    for run in plain:
        team.wait_for_success(run)
    wait_until(
        lambda: {phase(team, run) for run in plain} == {Phase.SUCCEEDED},
        "their placements to tell the end",
    )


@pytest.mark.parametrize("name", AWKWARD)
def test_it_ends_where_argo_can_execute_it(submitted, argo_program, name):
    team, runs = submitted
    awkward = AWKWARD[name]
    if name not in runs:
        pytest.skip("Argo's own controller ends by a panic over it")
    run, expected, placed = runs[name], awkward.ends, {awkward.placement}
    if argo_program is not None and awkward.ends_by_argo:
        expected = awkward.ends_by_argo
        # One that ends at once is over before anybody plans it.
        placed = {Phase.FAILED} if awkward.placement is Phase.SUCCEEDED else {Phase.REFUSED, None}
    if expected:
        ended = team.wait_for_end(run)
        assert ended["status"]["phase"] == expected, ended["status"].get("message")
    wait_until(
        lambda: phase(team, run) in placed,
        f"the placement to be {placed}",
        60,
        lambda: placement(team, run),
    )
    if awkward.reason is not None:
        rows = placement(team, run)["status"]["conditions"]
        assert awkward.reason in {row["reason"] for row in rows}


def test_what_is_too_deep_to_be_read_is_counted(installation, submitted):
    team, runs = submitted
    assert HOLE not in str(team.workflow(runs["deep-for-ever"]))
    assert installation.metric(PLANNER, "api_answers_cut_total") > 0


def test_the_planner_needs_no_more_memory_for_them(installation, submitted):
    team, runs = submitted
    wait_until(lambda: phase(team, runs["bomb"]) == Phase.PLANNED, "the bomb to be read")
    assert highest_memory_bytes(installation.processes[PLANNER].pid) < MEMORY_LIMIT_BYTES


def highest_memory_bytes(pid: int) -> int:
    """The most that a process has had resident."""
    text = Path(f"/proc/{pid}/status").read_text()
    (kibibytes,) = re.findall(r"VmHWM:\s+(\d+) kB", text)
    return int(kibibytes) * 1024


def placement(team: Team, run: str) -> JsonObject:
    return team.api.find(API_VERSION, "PipelinePlacement", run, team.name) or {}


def phase(team: Team, run: str) -> str | None:
    stored_phase: str | None = placement(team, run).get("status", {}).get("phase")
    return stored_phase
