"""Predict with a model that XGBoost has trained, with one thread."""

from kfp import compiler, dsl


@dsl.component(base_image="python:3.12", packages_to_install=["xgboost-cpu==3.2.0"])
def predict(
    model: dsl.Input[dsl.Model],
    table: dsl.Input[dsl.Dataset],
    predictions: dsl.Output[dsl.Dataset],
):
    """Predict the first column of every row from the others.

    Args:
        model: as train writes it.
        table: CSV of numbers; a line of column names above them is skipped.
        predictions: one number a line.
    """
    import numpy as np
    import xgboost

    with open(table.path) as file:
        first = file.readline().split(",")[0]
    try:
        float(first)
        names = 0
    except ValueError:
        names = 1
    rows = np.loadtxt(table.path, delimiter=",", skiprows=names, ndmin=2)
    with open(model.path, "rb") as file:
        trained = xgboost.Booster({"nthread": 1}, model_file=bytearray(file.read()))
    predicted = trained.predict(xgboost.DMatrix(rows[:, 1:], nthread=1))
    np.savetxt(predictions.path, predicted, fmt="%.4f")


if __name__ == "__main__":
    compiler.Compiler().compile(predict, "component.yaml")
