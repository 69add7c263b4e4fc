"""The smallest pipeline with marks: load a table, train a model on it."""

from kfp import compiler, dsl

from kfp_placement import place, placed_pipeline


@dsl.component(base_image="python:3.12")
def load(rows: int, table: dsl.Output[dsl.Dataset]):
    """Write a table."""
    with open(table.path, "w") as file:
        file.writelines(f"{row},{2 * row + 1}\n" for row in range(rows))


@dsl.component(base_image="python:3.12")
def train(table: dsl.Input[dsl.Dataset]) -> float:
    """Return the slope of the line through the rows."""
    with open(table.path) as file:
        points = [tuple(map(float, line.split(","))) for line in file]
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread


@dsl.pipeline(name="first-hints")
@placed_pipeline()
def first_hints(rows: int = 100) -> float:
    """Load and train; both steps are marked by the line above."""
    table = place(load(rows=rows), duration="30s", outputs={"table": "1Gi"}).outputs["table"]
    return place(train(table=table), duration="10m", cpu=2, memory="4Gi").output


if __name__ == "__main__":
    compiler.Compiler().compile(first_hints, "pipeline.yaml")
