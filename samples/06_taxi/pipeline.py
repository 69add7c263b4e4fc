"""Tips of taxi trips: train in the cloud, predict near the users.

Seven steps. Training wants the fastest node, prediction the node with the shortest way to the
users' location; the marks below say so, and the planner finds the nodes. The steps are XGBoost's,
on trips that are made up unless a source is named.
"""

from pathlib import Path

from kfp import compiler, components, dsl

from kfp_placement import place, placed, placed_pipeline

IMAGE = "python:3.12"
COMPONENTS = Path(__file__).resolve().parents[2] / "components"


def shared(name: str):
    """A component that samples share."""
    return components.load_component_from_file(str(COMPONENTS / name / "component.yaml"))


fetch, train, predict, evaluate = map(shared, ("fetch", "train", "predict", "evaluate"))


@placed(type="Transform", duration="5s", outputs={"plain": "100Mi"}, cpu="500m", memory="512Mi")
@dsl.component(base_image=IMAGE)
def drop_header(table: dsl.Input[dsl.Dataset], plain: dsl.Output[dsl.Dataset]):
    """Copy the trips without the line of column names."""
    with open(table.path) as source, open(plain.path, "w") as target:
        next(source)
        target.writelines(source)


@placed(type="Transform", duration="5s", outputs={"tips": "5Mi"}, cpu="500m", memory="512Mi")
@dsl.component(base_image=IMAGE)
def true_values(table: dsl.Input[dsl.Dataset], tips: dsl.Output[dsl.Dataset]):
    """Take out the column to predict."""
    with open(table.path) as source, open(tips.path, "w") as target:
        next(source)
        target.writelines(line.split(",")[0] + "\n" for line in source)


def taxi_for(location: str):
    """Make the pipeline for users at `location`.

    Labels are written when a pipeline is compiled, so the location cannot be one of its parameters.
    """

    @dsl.pipeline(name="taxi", description="Predict the tips of taxi trips near the users.")
    @placed_pipeline()
    def taxi(
        training_source: str = "",
        test_source: str = "",
        rows: int = 2000,
        rounds: int = 500,
        learning_rate: float = 0.01,
    ) -> float:
        small = {"cpu": "500m", "memory": "512Mi"}
        training_data = place(
            fetch(source=training_source, rows=rows, seed=1),
            type="Fetch",
            duration="30s",
            outputs={"table": "200Mi"},
            **small,
        )
        test_data = place(
            fetch(source=test_source, rows=rows, seed=2),
            type="Fetch",
            duration="20s",
            outputs={"table": "100Mi"},
            **small,
        )
        model = place(
            train(table=training_data.outputs["table"], rounds=rounds, learning_rate=learning_rate),
            type="Training",
            duration="20m",
            outputs={"model": "50Mi"},
            cpu="1500m",
            memory="2Gi",
        )
        plain = drop_header(table=test_data.outputs["table"])
        truth = true_values(table=test_data.outputs["table"])
        predicted = place(
            predict(model=model.outputs["model"], table=plain.outputs["plain"]),
            type="Predict",
            location=location,
            max_latency="20ms",
            duration="1m",
            outputs={"predictions": "5Mi"},
            cpu=1,
            memory="1Gi",
        )
        compared = evaluate(
            truth=truth.outputs["tips"], predictions=predicted.outputs["predictions"]
        )
        return place(compared, type="Evaluate", duration="5s", **small).outputs["Output"]

    return taxi


taxi = taxi_for("HOME-EDGE")

if __name__ == "__main__":
    compiler.Compiler().compile(taxi, "pipeline.yaml")
