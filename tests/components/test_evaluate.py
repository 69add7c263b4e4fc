import math

import pytest

from tests.support.samples import load_component

evaluate = load_component("evaluate").python_func


@pytest.mark.parametrize("truth", ["1\n3\n5\n", "tips,fare\n1,7\n3,8\n5,9\n"])
def test_the_error_and_that_of_the_mean(artifact, truth):
    metrics = artifact("metrics")
    error = evaluate(
        truth=artifact("truth", truth),
        predictions=artifact("predictions", "1\n3\n8\n"),
        metrics=metrics,
    )
    assert error == pytest.approx(math.sqrt(3))
    assert metrics.metrics == {"rmse": error, "rmse_of_the_mean": pytest.approx(math.sqrt(8 / 3))}


@pytest.mark.parametrize(("truth", "predictions"), [("1\n2\n", "1\n"), ("", ""), ("tips\n", "")])
def test_predictions_for_other_rows_are_refused(artifact, truth, predictions):
    with pytest.raises(ValueError, match=r"\d predictions for \d true values"):
        evaluate(
            truth=artifact("truth", truth),
            predictions=artifact("predictions", predictions),
            metrics=artifact("metrics"),
        )
