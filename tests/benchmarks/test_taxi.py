import pytest

from benchmarks import taxi
from kfp_placement_engine.exceptions import InputNotFoundError


@pytest.fixture
def tiny(monkeypatch):
    pytest.importorskip("xgboost")
    monkeypatch.setattr(taxi, "TRAININGS", (taxi.Training("tiny", 20, 0.1),))


@pytest.mark.usefixtures("tiny")
def test_a_training_on_made_up_trips(figures, monkeypatch, tmp_path):
    monkeypatch.setenv("KFP_PLACEMENT_DATA", str(tmp_path))
    page = tmp_path / "taxi.md"
    (outcome,) = figures(taxi.command, "--output", str(page))["outcomes"]
    assert outcome["training"] == {"name": "tiny", "rounds": 20, "learning_rate": 0.1}
    assert 0 < outcome["training_rmse"] < outcome["test_rmse"] < 1.1 * outcome["mean_rmse"]
    assert outcome["model_bytes"] > 1000
    assert "| tiny | 20 | 0.1 |" in page.read_text("utf-8")
    assert "2,000 made-up trips to learn from" in page.read_text("utf-8")


def test_which_trips_are_taken(monkeypatch, tmp_path):
    monkeypatch.setenv("KFP_PLACEMENT_DATA", str(tmp_path / "gone"))
    assert taxi.find_trips(None).name == taxi.MADE_UP
    with pytest.raises(InputNotFoundError, match="no such folder of taxi trips"):
        taxi.find_trips(tmp_path)
    (tmp_path / "chicago-taxi").mkdir()
    for name in ("taxi_train_2000.csv", "taxi_test_1000.csv"):
        (tmp_path / "chicago-taxi" / name).touch()
    assert taxi.find_trips(tmp_path).training_source.endswith("taxi_train_2000.csv")


def test_without_xgboost_it_says_how_to_get_it(message, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install xgboost-cpu" in message(1, taxi.command)
