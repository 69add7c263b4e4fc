"""Run times that follow an argument of a step, simulated in memory."""

import json
from datetime import timedelta
from typing import Any

import pytest
from kfp import dsl

from kfp_placement import place
from kfp_placement_engine.contract.rows import PlannedRow
from tests.controller.end_to_end.small_pipelines import compiled
from tests.controller.planning.noisy_cluster import a_coordinator
from tests.controller.planning.simulated_cluster import SimulatedCluster
from tests.controlplane.kubelet.kubelet import Kubelets
from tests.controlplane.kubelet.workload import Workload, WorkloadSettings
from tests.support.kubernetes import node_object

SECONDS_OF_EPOCH = 10
EPOCHS = (5, 10, 20, 8)
MORE_EPOCHS = 40
KEY = "918273645546372819"


@dsl.container_component
def train(epochs: int, key: str, rate: float = 0.001):  # KFP takes an annotation for an output
    """Take some epochs."""
    return dsl.ContainerSpec(image="alpine:3.20", command=["train"], args=[key])


def a_run(name: str, epochs: int) -> Any:
    """A run with these epochs, and a key of digits."""

    def body(epochs: int = epochs, key: str = KEY):
        place(train(epochs=epochs, key=key), cpu="500m", memory="256Mi")

    run = compiled("nightly", body)
    run["metadata"]["name"] = name
    return run


class Trained:
    """Runs of one pipeline, one after the other; an epoch takes ten seconds.

    Attributes:
        last: name of the last one.
        rows: what was planned of the training of each.
    """

    def __init__(self) -> None:
        self.cluster = SimulatedCluster(node_object("n0"), coordinator=a_coordinator())
        self.last = ""
        self.rows: list[PlannedRow] = []
        self._runs = 0

    def simulate_run(self, epochs: int) -> PlannedRow:
        """Submit a run and let it end; what was planned of its training."""
        cluster, name = self.cluster, f"run-{self._runs}"
        self.last = name
        self._runs += 1
        cluster.now += timedelta(minutes=10)
        settings = WorkloadSettings(
            driver_seconds=2, step_seconds=SECONDS_OF_EPOCH * epochs, start_seconds=0
        )
        cluster.kubelets = Kubelets(Workload(settings))
        cluster.submit(a_run(name, epochs))
        cluster.run()
        (row,) = cluster.placement(name).planned_rows().rows
        assert row is not None
        self.rows.append(row)
        return row


@pytest.fixture(scope="module")
def trained():
    case = Trained()
    for epochs in (*EPOCHS, MORE_EPOCHS):
        case.simulate_run(epochs)
    return case


def test_a_run_with_more_epochs_is_planned_for_as_many(trained):
    kept = [[each.arguments for each in run.steps] for run in trained.cluster.history().past_runs()]
    assert kept[: len(EPOCHS)] == [[(epochs, 0.001)] for epochs in EPOCHS]
    row = trained.rows[len(EPOCHS)]
    assert (row.duration_basis.by_argument, row.duration_basis.runs) == ("epochs", len(EPOCHS))
    assert row.start_seconds is not None
    assert row.finish_seconds is not None
    taken = row.finish_seconds - row.start_seconds
    assert taken == pytest.approx(MORE_EPOCHS * SECONDS_OF_EPOCH, rel=0.05)


def test_promises_hold_and_follow_once_the_first_runs_are_outvoted(trained):
    """Those took other times than was expected of them, which is in the factor of whole runs."""
    for epochs in (12, 30, 6, 25, 40, 15, 20, 9):
        trained.simulate_run(epochs)
        placement = trained.cluster.placement(trained.last)
        ends, status = placement.spec.first_ends, placement.status
        assert ends.low <= status.makespan_seconds <= ends.high
    assert ends.typical == pytest.approx(9 * SECONDS_OF_EPOCH, rel=0.1)


def test_a_planner_that_starts_knows_the_same(trained):
    trained.cluster.hand_over(a_coordinator())
    row = trained.simulate_run(15)
    assert row.duration_basis.by_argument == "epochs"


def test_a_text_of_digits_is_in_no_object(trained):
    """What people give as text may be a secret."""
    placements = [each.to_object() for each in trained.cluster.placements.values()]
    text = json.dumps([*placements, *trained.cluster.histories.stored.values()])
    assert "nightly" in text
    assert KEY not in text
    assert KEY[:12] not in text
