"""Marked components and pipelines still run under kfp.local."""

import pytest
from kfp import dsl

from kfp_placement import place, placed, placed_pipeline
from tests.support.local_runs import WITHOUT_RESOURCES, local_runner
from tests.support.pipelines import fetch, predict, train, work

pytestmark = WITHOUT_RESOURCES


@pytest.fixture(autouse=True)
def _local(tmp_path, monkeypatch):
    with local_runner(tmp_path, monkeypatch):
        yield


def test_a_marked_pipeline_runs():
    training = placed(type="Training", duration="20m", cpu=1, outputs={"model": "1Mi"})(train)

    @dsl.pipeline(name="local")
    @placed_pipeline(location="HOME-EDGE")
    def pipeline(rows: int = 3) -> int:
        table = fetch(rows=rows).outputs["table"]
        model = place(training(table=table), priority=1).outputs["model"]
        return place(predict(model=model), type="Predict", max_latency=20).output

    assert pipeline(rows=5).output == 5


def test_marked_loops_and_conditions_run():
    pytest.importorskip("kfp.local.orchestrator", reason="kfp runs no loops here before 2.15")

    @dsl.pipeline(name="local")
    @placed_pipeline
    def pipeline(rows: int = 3) -> int:
        with dsl.ParallelFor(items=[1, 2]) as item:
            place(work(item=item), type="Transform")
        with dsl.If(rows > 1):
            work(item=rows)
        return work(item=rows).output

    assert pipeline(rows=2).output == 2


def test_a_marked_component_runs_alone():
    task = placed(type="Transform", cpu=1)(work)(item=4)
    assert task.output == 4
    assert place(task, type="Predict", location="HOME-EDGE") is task


def test_wrong_values_fail_for_what_runs_locally_too():
    with pytest.raises(ValueError, match="location = 'A B'"):
        place(work(item=1), location="A B")
