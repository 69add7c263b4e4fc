"""The samples run on this machine with kfp.local, and do what they say."""

import json

import pytest

from tests.support.local_runs import WITHOUT_RESOURCES, local_runner
from tests.support.samples import load_sample

pytestmark = WITHOUT_RESOURCES


@pytest.fixture
def artifacts(tmp_path, monkeypatch):
    """Pipelines that are called run here; the folder is where their artifacts go."""
    with local_runner(tmp_path, monkeypatch):
        yield tmp_path / "artifacts"


def test_first_hints_finds_the_slope(artifacts):
    assert load_sample("01_first_hints").first_hints(rows=50).output == pytest.approx(2.0)


def test_the_best_of_seven_models_predicts(artifacts):
    run = load_sample("04_unequal_steps").unequal_steps(rows=400, x=0.8)
    assert run.output == pytest.approx(3 * 0.8**2 - 0.8, abs=0.1)
    models = [json.loads(path.read_text()) for path in artifacts.glob("*/*/model")]
    (best,) = [json.loads(path.read_text()) for path in artifacts.glob("*/choose/best")]
    assert len(models) == 7
    assert best == min(models, key=lambda model: model["error"])


def test_taxi_predicts_better_than_the_mean(artifacts):
    run = load_sample("06_taxi").taxi()
    outputs = {path.parent.name: path for path in artifacts.glob("*/*/executor_output.json")}
    assert set(outputs) == {
        "fetch",
        "fetch-2",
        "train",
        "drop-header",
        "true-values",
        "predict",
        "evaluate",
    }
    result = json.loads(outputs["evaluate"].read_text())
    metrics = result["artifacts"]["metrics"]["artifacts"][0]["metadata"]
    assert run.output == metrics["rmse"]
    assert metrics["rmse"] < 0.9 * metrics["rmse_of_the_mean"]


def test_taxi_gives_the_same_result_every_time(artifacts):
    taxi = load_sample("06_taxi").taxi
    assert len({taxi(rows=50, iterations=5).output for _ in range(2)}) == 1
