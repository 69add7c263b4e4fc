"""The demand that a RunRequest names: that of the reference, whenever something happens."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from kfp_placement_controller.planning.round_builder import RoundBuilder
from kfp_placement_engine.contract.keys import HINTS_ANNOTATION
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.step_state import ENDED_STATES
from kfp_placement_engine.plans.plan import Plan
from tests.controller.planning.test_recordings import LABELLED, recorded_workflow
from tests.controller.planning.test_run_requests import QueuedCluster
from tests.controller.planning.test_scenarios import a_step
from tests.controlplane.argo.small_workflows import dag, task, workflow
from tests.support.kubernetes import node_object
from tests.support.reference_demand import comparable, reference_demand

if TYPE_CHECKING:
    from kfp_placement_engine.model.demand import Demand
    from kfp_placement_engine.model.run_graph import RunGraph

ROOM = {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}


class Demands:
    """The demands of one run from now to its end, each compared with the reference's.

    Attributes:
        changes: those that differ from the one before, in order.
        running: how many steps ran at the moments of comparison.
        ended: how many had ended.
    """

    def __init__(self, cluster: QueuedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
        self.changes: list[Demand] = []
        self.running: set[int] = set()
        self.ended: set[int] = set()
        self._cluster = cluster
        self._planned: tuple[Plan, RunGraph] | None = None
        plan_alone = RoundBuilder.plan_alone

        def kept(builder: RoundBuilder, key: RunKey, *rest: Any) -> Plan:
            plan = plan_alone(builder, key, *rest)
            self._planned = plan, rest[-1]
            return plan

        monkeypatch.setattr(RoundBuilder, "plan_alone", kept)

    def compare(self, run: str, states: Mapping[str, str]) -> None:
        """Compare what the RunRequest of a run names, while its steps have these states."""
        demand = self._cluster.spec(run).demand
        assert self._planned is not None
        ended = {name for name, state in states.items() if state in ENDED_STATES}
        running = {name for name, state in states.items() if state == "running"}
        requested = demand.to_demand()
        expected = reference_demand(*self._planned, ended, running)
        assert comparable(requested) == comparable(expected), states
        self.running.add(len(running))
        self.ended.add(len(ended))
        if not self.changes or requested != self.changes[-1]:
            self.changes.append(requested)


def with_workers() -> Any:
    """`first`, then two at once, of which the shorter makes workers, then `last`."""
    hints = {"v": 1, "duration": "40s", "workers": {"count": 2, "requests": {"cpu": "500m"}}}
    gang = a_step("gang", cpu="250m")
    gang["metadata"]["annotations"] = {HINTS_ANNOTATION: json.dumps(hints)}
    graph = dag(
        "main",
        task("first", template="large"),
        task("left", template="gang", depends="first"),
        task("right", template="small", depends="first"),
        task("last", template="small", depends="left && right"),
    )
    made = workflow(graph, a_step("large", cpu="1500m"), gang, a_step("small", 90))
    made["metadata"]["name"] = "wf"
    return made


def argo_states(workflow: Mapping[str, Any]) -> dict[str, str]:
    """The states of the steps of a Workflow without loops, as its nodes tell them."""
    nodes = workflow["status"].get("nodes", {}).values()
    return {node["displayName"]: node["phase"].lower() for node in nodes if node["type"] == "Pod"}


def test_a_plain_run_with_workers(monkeypatch):
    """The peak of the two at once, until the one with workers has ended."""
    cluster = QueuedCluster()
    demands = Demands(cluster, monkeypatch)
    cluster.submit_and_settle(with_workers())
    demands.compare("wf", {})
    cluster.release()

    def is_over() -> bool:
        if not cluster.spec().end:
            demands.compare("wf", argo_states(cluster.simulated.workflows["wf"].workflow))
        return bool(cluster.spec().end)

    cluster.simulated.run(is_over)
    assert [each.peak["cpu"] for each in demands.changes] == [2250, 1000]
    assert [len(each.gangs) for each in demands.changes] == [2, 0]
    assert (demands.running, demands.ended) == ({0, 1, 2}, {0, 1, 2, 3})


def states(cluster: QueuedCluster, run: str) -> dict[str, str]:
    """The states of the steps of a run with loops and drivers, as the planner knows them."""
    tracked = cluster.coordinator.registry.runs[RunKey("team", run)]
    return {name: status.state for name, status in tracked.statuses.items()}


@pytest.mark.parametrize("name", LABELLED)
def test_a_run_of_kubeflow_pipelines(monkeypatch, name):
    """With drivers, loops that turn out otherwise, branches that are not taken, and GPUs."""
    cluster = QueuedCluster(*(node_object(f"n{number}", allocatable=ROOM) for number in range(3)))
    demands = Demands(cluster, monkeypatch)
    manifest = recorded_workflow(name)
    run = manifest["metadata"]["name"]
    cluster.submit_and_settle(manifest, held=False)

    def is_over() -> bool:
        if not cluster.spec(run).end:
            demands.compare(run, states(cluster, run))
        return bool(cluster.spec(run).end)

    cluster.simulated.run(is_over)
    assert len(demands.changes) > 1
    assert len(demands.ended) > 1
    assert max(demands.running) > 0
