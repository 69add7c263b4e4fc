import math
from pathlib import Path

import pytest

from tests.support.samples import load_component

pytest.importorskip("xgboost")

train = load_component("train").python_func
predict = load_component("predict").python_func
ROWS = [(3 * x + 1, x, x % 3) for x in range(40)]
TABLE = "\n".join(",".join(map(str, row)) for row in ROWS) + "\n"


def predicted_by(artifact, table):
    predictions = artifact("predictions")
    predict(model=artifact("model"), table=table, predictions=predictions)
    return [float(line) for line in Path(predictions.path).read_text().splitlines()]


@pytest.fixture
def trained(artifact):
    metrics = artifact("metrics")
    table = artifact("table", "y,x,z\n" + TABLE)
    train(table=table, model=artifact("model"), metrics=metrics, rounds=200, learning_rate=0.1)
    return metrics.metrics


def test_it_learns_the_first_column_from_the_others(artifact, trained):
    guesses = predicted_by(artifact, artifact("plain", TABLE))
    errors = [guess - row[0] for guess, row in zip(guesses, ROWS, strict=True)]
    error = math.sqrt(sum(each**2 for each in errors) / len(errors))
    assert error < 1
    assert trained["training_rmse"] == pytest.approx(error, abs=1e-3)
    assert trained["model_bytes"] == Path(artifact("model").path).stat().st_size
    assert trained["training_seconds"] > 0


def test_a_line_of_names_makes_no_difference(artifact, trained):
    named = predicted_by(artifact, artifact("named", "y,x,z\n" + TABLE))
    assert named == predicted_by(artifact, artifact("plain", TABLE))
    assert len(named) == len(ROWS)


def test_one_row_is_a_table(artifact, trained):
    assert len(predicted_by(artifact, artifact("one", "1e-05,0,0\n"))) == 1


def test_more_rounds_fit_the_training_rows_better(artifact):
    errors = []
    for rounds in (5, 50):
        metrics = artifact("metrics")
        table = artifact("table", "y,x,z\n" + TABLE)
        train(table=table, model=artifact("model"), metrics=metrics, rounds=rounds)
        errors.append(metrics.metrics["training_rmse"])
    assert errors[1] < errors[0]
