"""Large tables, on nodes of which two reach the object store ten times as fast as the others.

All data of a pipeline goes through the object store: a step uploads what it writes, and the next
one downloads it. How long that takes depends on the node; the default scheduler does not know it.
"""

from pathlib import Path

from kfp import compiler, components, dsl

from kfp_placement import place, placed_pipeline

COMPONENTS = Path(__file__).resolve().parents[2] / "components"


def shared(name: str):
    """A component that samples share."""
    return components.load_component_from_file(str(COMPONENTS / name / "component.yaml"))


fetch, train, predict, evaluate = map(shared, ("fetch", "train", "predict", "evaluate"))


@dsl.pipeline(name="data-locality", description="Predict tips from tables of many gigabytes.")
@placed_pipeline()
def data_locality(rows: int = 2000, rounds: int = 100) -> float:
    large = place(
        fetch(rows=rows, seed=1),
        type="Fetch",
        duration="2m",
        outputs={"table": "60Gi"},
        cpu=1,
        memory="4Gi",
    )
    small = place(
        fetch(rows=rows, seed=2),
        type="Fetch",
        duration="1m",
        outputs={"table": "30Gi"},
        cpu=1,
        memory="4Gi",
    )
    model = place(
        train(table=large.outputs["table"], rounds=rounds),
        type="Training",
        duration="20m",
        outputs={"model": "200Mi"},
        cpu=3,
        memory="12Gi",
    )
    predicted = place(
        predict(model=model.outputs["model"], table=small.outputs["table"]),
        type="Predict",
        duration="4m",
        outputs={"predictions": "1Gi"},
        cpu=2,
        memory="8Gi",
    )
    compared = evaluate(truth=small.outputs["table"], predictions=predicted.outputs["predictions"])
    return place(compared, type="Evaluate", duration="1m", cpu=1, memory="4Gi").outputs["Output"]


if __name__ == "__main__":
    compiler.Compiler().compile(data_locality, "pipeline.yaml")
