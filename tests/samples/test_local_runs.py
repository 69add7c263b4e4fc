"""The samples run on this machine with kfp.local, and do what they say."""

import importlib.util
import json

import pytest

from tests.support.checkout import ROOT
from tests.support.local_runs import WITHOUT_RESOURCES, local_runner
from tests.support.samples import load_sample

pytestmark = WITHOUT_RESOURCES

TRIPS = ROOT.parent / "shared" / "data" / "chicago-taxi"

needs_xgboost = pytest.mark.skipif(
    importlib.util.find_spec("xgboost") is None, reason="XGBoost is not installed"
)


@pytest.fixture
def artifacts(tmp_path, monkeypatch):
    """Pipelines that are called run here; the folder is where their artifacts go."""
    with local_runner(tmp_path, monkeypatch):
        yield tmp_path / "artifacts"


def test_first_hints_finds_the_slope(artifacts):
    assert load_sample("01_first_hints").first_hints(rows=50).output == pytest.approx(2.0)


@needs_xgboost
def test_data_locality_predicts(artifacts):
    assert 1 < load_sample("02_data_locality").data_locality(rows=200, rounds=5).output < 3


# Its image is not called python.
@pytest.mark.filterwarnings("ignore:You may be attemping to run a task:RuntimeWarning")
def test_trainings_need_no_gpu_here(artifacts):
    assert load_sample("03_gpu_and_images").gpu_and_images(rows=50).output < 0.01


def test_steps_share_a_workspace(artifacts):
    assert load_sample("05_shared_workspace").shared_workspace(files=30).output == sum(range(30))


def test_the_best_of_seven_models_predicts(artifacts):
    run = load_sample("04_unequal_steps").unequal_steps(rows=400, x=0.8)
    assert run.output == pytest.approx(3 * 0.8**2 - 0.8, abs=0.1)
    models = [json.loads(path.read_text()) for path in artifacts.glob("*/*/model")]
    (best,) = [json.loads(path.read_text()) for path in artifacts.glob("*/choose/best")]
    assert len(models) == 7
    assert best == min(models, key=lambda model: model["error"])


@needs_xgboost
def test_taxi_predicts_better_than_the_mean(artifacts):
    run = load_sample("06_taxi").taxi(rounds=500)
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
    assert metrics["rmse"] < 0.96 * metrics["rmse_of_the_mean"]


@needs_xgboost
def test_taxi_gives_the_same_result_every_time(artifacts):
    taxi = load_sample("06_taxi").taxi
    assert len({taxi(rows=50, rounds=5).output for _ in range(2)}) == 1


@needs_xgboost
@pytest.mark.skipif(not TRIPS.is_dir(), reason=f"no excerpt of public trips in {TRIPS}")
def test_taxi_learns_from_public_trips(artifacts):
    error = load_sample("06_taxi").taxi(
        training_source=str(TRIPS / "taxi_train_2000.csv"),
        test_source=str(TRIPS / "taxi_test_1000.csv"),
        rounds=500,
    )
    # The standard deviation of the tips is 1.99.
    assert 1.5 < error.output < 1.8
