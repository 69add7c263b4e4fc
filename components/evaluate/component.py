"""Compare predictions with the true values."""

from kfp import compiler, dsl


@dsl.component(base_image="python:3.12")
def evaluate(
    truth: dsl.Input[dsl.Dataset],
    predictions: dsl.Input[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
) -> float:
    """Return the root of the mean squared error of the predictions.

    Args:
        truth: CSV whose first column holds the true values; a line of names above them is skipped.
        predictions: one number a line.
        metrics: the error, and that of predicting the mean of the true values everywhere.
    """
    with open(truth.path) as file:
        cells = [line.split(",")[0] for line in file]
    try:
        values = [float(cell) for cell in cells]
    except ValueError:
        values = [float(cell) for cell in cells[1:]]
    with open(predictions.path) as file:
        predicted = [float(line) for line in file]
    if not values or len(values) != len(predicted):
        raise ValueError(f"{len(predicted)} predictions for {len(values)} true values")
    mean = sum(values) / len(values)
    squares = [(value - guess) ** 2 for value, guess in zip(values, predicted, strict=True)]
    error = (sum(squares) / len(squares)) ** 0.5
    of_mean = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
    metrics.log_metric("rmse", error)
    metrics.log_metric("rmse_of_the_mean", of_mean)
    return error


if __name__ == "__main__":
    compiler.Compiler().compile(evaluate, "component.yaml")
