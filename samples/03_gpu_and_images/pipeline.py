"""Two trainings on GPUs beside three steps that need CPUs, and two images of very unequal size.

A node with a GPU also has CPUs, so that other steps may take the room that a training needs; and an
image of gigabytes is on few nodes. The trainings are small stand-ins, which need no GPU to run.
"""

from kfp import compiler, dsl, kubernetes

from kfp_placement import place, placed_pipeline

SMALL = "python:3.12"
LARGE = "pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime"


@dsl.component(base_image=SMALL)
def statistics(rows: int, summary: dsl.Output[dsl.Dataset]):
    """Describe the data; only the report at the end waits for it."""
    with open(summary.path, "w") as file:
        file.write(f"{rows} rows, mean {(rows - 1) / 2}\n")


@dsl.component(base_image=LARGE)
def train(rows: int, rate: float, model: dsl.Output[dsl.Model]) -> float:
    """Fit a slope by gradient descent; returns its error."""
    points = [(x / rows, 3 * x / rows) for x in range(rows)]
    slope = 0.0
    for _ in range(200):
        slope -= rate * sum(2 * x * (slope * x - y) for x, y in points) / rows
    with open(model.path, "w") as file:
        file.write(str(slope))
    return abs(slope - 3)


@dsl.component(base_image=SMALL)
def report(
    first: float, second: float, one: dsl.Input[dsl.Dataset], two: dsl.Input[dsl.Dataset]
) -> float:
    """Return the smaller error."""
    with open(one.path) as a, open(two.path) as b:
        print(a.read(), b.read())
    return min(first, second)


@dsl.pipeline(name="gpu-and-images", description="Trainings on GPUs, statistics on CPUs.")
@placed_pipeline()
def gpu_and_images(rows: int = 100) -> float:
    described = [statistics(rows=rows), statistics(rows=rows)]
    for task in described:
        place(task, type="Transform", duration="20m", cpu=12, memory="16Gi")
        place(task, outputs={"summary": "10Mi"})
    trained = [train(rows=rows, rate=0.1), train(rows=rows, rate=0.5)]
    for task in trained:
        place(task, type="Training", duration="30m", outputs={"model": "2Gi"})
        place(task, cpu=8, memory="32Gi", gpu=1, accelerator_type="nvidia.com/gpu")
        # For clusters that keep other pods off their GPU nodes with this taint.
        kubernetes.add_toleration(
            task, key="nvidia.com/gpu", operator="Exists", effect="NoSchedule"
        )
    end = report(
        first=trained[0].outputs["Output"],
        second=trained[1].outputs["Output"],
        one=described[0].outputs["summary"],
        two=described[1].outputs["summary"],
    )
    return place(end, type="Evaluate", duration="1m", cpu=1, memory="1Gi").output


if __name__ == "__main__":
    compiler.Compiler().compile(gpu_and_images, "pipeline.yaml")
