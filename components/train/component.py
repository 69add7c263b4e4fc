"""Train boosted trees with XGBoost, with one thread."""

from kfp import compiler, dsl


@dsl.component(base_image="python:3.12", packages_to_install=["xgboost-cpu==3.2.0"])
def train(
    table: dsl.Input[dsl.Dataset],
    model: dsl.Output[dsl.Model],
    metrics: dsl.Output[dsl.Metrics],
    rounds: int = 500,
    learning_rate: float = 0.01,
    depth: int = 6,
):
    """Learn to predict the first column of a table from the others.

    Args:
        table: CSV of numbers, below a line of column names.
        model: the trained model, as XGBoost writes it (UBJSON).
        metrics: error on the rows trained on, seconds, and bytes of the model.
        rounds: how many trees are trained.
        learning_rate: share of its correction that each tree makes.
        depth: of a tree, at most.
    """
    import os
    import time

    import numpy as np
    import xgboost

    rows = np.loadtxt(table.path, delimiter=",", skiprows=1, ndmin=2)
    data = xgboost.DMatrix(rows[:, 1:], label=rows[:, 0], nthread=1)
    options = {
        "objective": "reg:squarederror",
        "eta": learning_rate,
        "max_depth": depth,
        # What the step asks for. More threads than CPUs make it many times slower.
        "nthread": 1,
        "seed": 0,
    }
    started = time.monotonic()
    trained = xgboost.train(options, data, num_boost_round=rounds)
    seconds = time.monotonic() - started
    # XGBoost takes the format from the ending of the name, and an artifact has none.
    trained.save_model(model.path + ".ubj")
    os.replace(model.path + ".ubj", model.path)
    errors = trained.predict(data) - rows[:, 0]
    metrics.log_metric("training_rmse", float(np.sqrt(np.mean(errors**2))))
    metrics.log_metric("training_seconds", seconds)
    metrics.log_metric("model_bytes", os.path.getsize(model.path))


if __name__ == "__main__":
    compiler.Compiler().compile(train, "component.yaml")
