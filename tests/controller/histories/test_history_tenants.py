"""Namespaces that share images, names and nodes learn nothing of each other; secrets stay out."""

import json
import math
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client import REGISTRY, generate_latest

from kfp_placement_controller.histories.actions import WriteHistory
from kfp_placement_controller.learning import kept_promises
from kfp_placement_controller.metrics import PROMISE_COVERAGE
from kfp_placement_controller.planning.actions import Action, WritePlacement
from kfp_placement_controller.planning.rounds import PlanningRound
from tests.controller.planning.builders import START
from tests.controller.planning.noisy_cluster import (
    ITERATIONS,
    NoisyCluster,
    a_run,
    promises_counted,
)
from tests.controller.planning.test_run_requests import QueuedCluster
from tests.controlplane.argo.small_workflows import NO_DEFAULTS
from tests.support.scraping import own_metric

RUNS = 5
SECRET = "hunter2"


def after_runs(other: str = "", runs: int = RUNS) -> NoisyCluster:
    """Runs of `team`, and in between, with the same names and images, those of another."""
    cluster = NoisyCluster()
    for number in range(runs):
        cluster.now = START + timedelta(hours=2 * number)
        cluster.simulate_run(number)
        if other:
            cluster.workload.factor = {"work": 7.0, "last": 3.0}
            cluster.simulate_run(number, other)
            cluster.workload.factor = {}
    return cluster


def objects_of(cluster: NoisyCluster, namespace: str) -> dict[str, Any]:
    """Every history and placement of a namespace."""
    histories = {
        key[1]: raw for key, raw in cluster.histories.stored.items() if key[0] == namespace
    }
    placements = {
        key[1]: each.to_object() for key, each in cluster.placements.items() if key[0] == namespace
    }
    return {"histories": histories, "placements": placements}


def test_objects_of_a_namespace_are_the_same_with_and_without_another():
    alone, beside = after_runs(), after_runs("other")
    ours, theirs = objects_of(alone, "team"), objects_of(beside, "team")
    assert ours["histories"] == theirs["histories"]
    assert ours["placements"] == theirs["placements"]
    assert len(beside.history("other").past_runs()) == RUNS
    assert beside.first_ends(f"nightly-{RUNS - 1}")


def test_a_namespace_that_has_seen_nothing_gets_nothing_from_another():
    cluster = after_runs()
    cluster.simulate_run(0, "other")
    placement = cluster.placement("nightly-other-0")
    assert placement.spec.first_ends is None
    assert [run.uid for run in cluster.history("other").past_runs()] == ["other-0"]


class WatchedCluster(QueuedCluster):
    """Keeps all that is said of runs beside their objects."""

    def __init__(self, simulated: NoisyCluster) -> None:
        super().__init__(simulated=simulated)
        self.actions: list[str] = []

    def carry_out(self, action: Action) -> None:
        """Note it, except for searches, which nobody else sees."""
        if not isinstance(action, PlanningRound | WriteHistory | WritePlacement):
            self.actions.append(repr(action))
        super().carry_out(action)


def with_secrets(run: dict[str, Any]) -> dict[str, Any]:
    """In what its steps are given, loop over, and run, and in names of these."""
    run = json.loads(json.dumps(run).replace("item-", f"{SECRET}-item-"))
    container = run["spec"]["templates"][1]["container"]
    container.update(
        command=["sh", "-c", f"echo {SECRET}-command"],
        args=[f"{SECRET}-argument"],
        env=[{"name": f"{SECRET}_NAME", "value": f"{SECRET}-value"}],
    )
    parameter = {"name": f"{SECRET}-parameter", "value": f"{SECRET}-default"}
    run["spec"]["arguments"] = {"parameters": [parameter]}
    annotations = run["metadata"].setdefault("annotations", {})
    annotations["example.com/note"] = f"{SECRET}-annotation"
    return run


def test_secrets_are_in_no_object_event_or_metric(caplog):
    """Of what steps are given, loop over, and run digests alone are kept, except for the image."""
    simulated = NoisyCluster()
    cluster = WatchedCluster(simulated)
    for number in range(RUNS):
        simulated.now += timedelta(minutes=10)
        run = with_secrets(a_run(f"nightly-{number}"))
        simulated.submit(run, settings=NO_DEFAULTS)
        simulated.run()
    refused = with_secrets(a_run("refused"))
    refused["spec"]["templates"][0]["dag"]["tasks"][1]["depends"] = "nobody"
    workflow = simulated.submit(refused, settings=NO_DEFAULTS)
    workflow.settle = lambda: None  # type: ignore[method-assign]
    cluster.submit(with_secrets(a_run("waiting")))
    cluster.settle()
    assert simulated.first_ends(f"nightly-{RUNS - 1}")
    requests = {each.key.name: each.spec.model_dump(mode="json") for each in cluster.writes}
    assert "waiting" in requests
    texts = {
        "objects": json.dumps(objects_of(simulated, "team")),
        "requests": json.dumps(requests),
        "events": "\n".join(cluster.actions),
        "metrics": generate_latest(REGISTRY).decode(),
        "log": caplog.text,
    }
    assert "nightly" in texts["objects"]
    assert simulated.announced
    assert "kfp_placement_histories" in texts["metrics"]
    assert [name for name, text in texts.items() if SECRET in text] == []


def test_promises_are_counted(monkeypatch):
    monkeypatch.setattr(kept_promises, "LEAST_RUNS", 2)
    before = promises_counted()
    errors = own_metric("promise_error_count")
    own = own_metric("steps_forecast_total", level="iteration")
    unknown = own_metric("steps_forecast_total", level="none")
    cluster = after_runs()
    cluster.workload.factor = {"work": 10.0}
    cluster.simulate_run(RUNS)
    cluster.workload.factor = {"work": 0.01}
    cluster.simulate_run(RUNS + 1)
    after = promises_counted()
    counted = {outcome: count - before[outcome] for outcome, count in after.items()}
    promised = sum(each.spec.first_ends is not None for each in cluster.placements.values())
    assert counted["late"] >= 1
    assert counted["early"] >= 1
    assert sum(counted.values()) == promised
    assert own_metric("promise_error_count") - errors == promised
    coverage = own_metric("promise_coverage")
    assert coverage == pytest.approx(counted["kept"] / promised)
    assert own_metric("promise_shortfall") == pytest.approx(0.9 - coverage, abs=1e-5)
    steps = ITERATIONS + 2
    assert own_metric("steps_forecast_total", level="none") - unknown == steps
    assert own_metric("steps_forecast_total", level="iteration") - own >= steps
    cluster.hand_over()
    cluster.run(lambda: True)
    assert promises_counted() == after


def test_a_promise_is_counted_once_though_its_history_is_deleted():
    cluster = after_runs()
    before = promises_counted()
    (key,) = cluster.histories.stored
    del cluster.histories.stored[key]
    cluster.tell()
    for workflow in cluster.workflows.values():
        labels = workflow.workflow["metadata"].setdefault("labels", {})
        labels["pipeline/persistedFinalState"] = "true"
    cluster.tell()
    cluster.pass_time(60)
    assert promises_counted() == before
    assert not cluster.histories.stored


def test_who_leads_no_more_tells_no_coverage():
    PROMISE_COVERAGE.set(0.5)
    cluster = NoisyCluster()
    cluster.coordinator.follow()
    assert math.isnan(own_metric("promise_coverage"))
