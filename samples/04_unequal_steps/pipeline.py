"""Seven trainings of unequal length, on a cluster that runs three at a time.

Which of them start first decides when the run ends. The default scheduler starts them in the order
of their names, and the longest comes last; the plan starts it first. What the steps learn is small,
so that the pipeline runs anywhere; the durations are those of a real table.
"""

from kfp import compiler, dsl

from kfp_placement import placed, placed_pipeline

IMAGE = "python:3.12"


@placed(type="Fetch", duration="2m", outputs={"table": "2Gi"}, cpu=1, memory="2Gi")
@dsl.component(base_image=IMAGE)
def fetch(rows: int, table: dsl.Output[dsl.Dataset]):
    """Write points (x, y) of a bent line, with some noise."""
    import json
    import random

    dice = random.Random(0)
    xs = [dice.random() for _ in range(rows)]
    with open(table.path, "w") as file:
        json.dump([[x, 3 * x * x - x + dice.gauss(0, 0.1)] for x in xs], file)


@placed(type="Training", duration="3m", outputs={"model": "45Mi"}, cpu=3, memory="4Gi")
@dsl.component(base_image=IMAGE)
def bayes(table: dsl.Input[dsl.Dataset], model: dsl.Output[dsl.Model]):
    """Means of twenty parts of the line, drawn to the mean of all where points are few."""
    import json

    with open(table.path) as file:
        points = json.load(file)
    seen = [point for number, point in enumerate(points) if number % 5]
    mean = sum(y for _, y in seen) / len(seen)
    parts = [[y for x, y in seen if int(x * 20) == part] for part in range(20)]
    levels = [(mean + sum(part)) / (1 + len(part)) for part in parts]
    curve = [levels[min(at // 5, 19)] for at in range(101)]
    error = sum((curve[round(x * 100)] - y) ** 2 for x, y in points[::5])
    with open(model.path, "w") as file:
        json.dump({"name": "bayes", "error": error, "curve": curve}, file)


@placed(type="Training", duration="9m", outputs={"model": "45Mi"}, cpu=3, memory="4Gi")
@dsl.component(base_image=IMAGE)
def forest(table: dsl.Input[dsl.Dataset], model: dsl.Output[dsl.Model]):
    """The mean of thirty trees, each with cuts drawn by lot."""
    import json
    import random
    from bisect import bisect

    with open(table.path) as file:
        points = json.load(file)
    seen = [point for number, point in enumerate(points) if number % 5]
    dice = random.Random(0)
    curve = [0.0] * 101
    for _ in range(30):
        cuts = sorted(dice.random() for _ in range(12))
        leaves = [[y for x, y in seen if bisect(cuts, x) == leaf] for leaf in range(13)]
        levels = [sum(leaf) / max(len(leaf), 1) for leaf in leaves]
        curve = [y + levels[bisect(cuts, at / 100)] / 30 for at, y in enumerate(curve)]
    error = sum((curve[round(x * 100)] - y) ** 2 for x, y in points[::5])
    with open(model.path, "w") as file:
        json.dump({"name": "forest", "error": error, "curve": curve}, file)


@placed(type="Training", duration="5m", outputs={"model": "45Mi"}, cpu=3, memory="4Gi")
@dsl.component(base_image=IMAGE)
def lasso(table: dsl.Input[dsl.Dataset], model: dsl.Output[dsl.Model]):
    """A cubic; coefficients that help little are zero."""
    import json

    with open(table.path) as file:
        points = json.load(file)
    seen = [point for number, point in enumerate(points) if number % 5]
    weights = [0.0] * 4
    for _ in range(100):
        for power in range(4):
            others = [w * (k != power) for k, w in enumerate(weights)]
            rest = [y - sum(w * x**k for k, w in enumerate(others)) for x, y in seen]
            pull = sum(x**power * left for (x, _), left in zip(seen, rest, strict=True))
            shrunk = max(abs(pull) - 0.5, 0.0) * (1 if pull > 0 else -1)
            weights[power] = shrunk / sum(x ** (2 * power) for x, _ in seen)
    curve = [sum(w * (at / 100) ** k for k, w in enumerate(weights)) for at in range(101)]
    error = sum((curve[round(x * 100)] - y) ** 2 for x, y in points[::5])
    with open(model.path, "w") as file:
        json.dump({"name": "lasso", "error": error, "curve": curve}, file)


@placed(type="Training", duration="12m", outputs={"model": "45Mi"}, cpu=3, memory="4Gi")
@dsl.component(base_image=IMAGE)
def neighbours(table: dsl.Input[dsl.Dataset], model: dsl.Output[dsl.Model]):
    """At every place the mean of the ten nearest points."""
    import json

    with open(table.path) as file:
        points = json.load(file)
    seen = [point for number, point in enumerate(points) if number % 5]
    curve = []
    for at in range(101):
        nearest = sorted(seen, key=lambda point, at=at: abs(point[0] - at / 100))[:10]
        curve.append(sum(y for _, y in nearest) / len(nearest))
    error = sum((curve[round(x * 100)] - y) ** 2 for x, y in points[::5])
    with open(model.path, "w") as file:
        json.dump({"name": "neighbours", "error": error, "curve": curve}, file)


@placed(type="Training", duration="6m", outputs={"model": "45Mi"}, cpu=3, memory="4Gi")
@dsl.component(base_image=IMAGE)
def ridge(table: dsl.Input[dsl.Dataset], model: dsl.Output[dsl.Model]):
    """A parabola with small coefficients, by gradient descent."""
    import json

    with open(table.path) as file:
        points = json.load(file)
    seen = [point for number, point in enumerate(points) if number % 5]
    weights = [0.0] * 3
    for _ in range(500):
        errors = [sum(w * x**k for k, w in enumerate(weights)) - y for x, y in seen]
        slopes = [
            sum(x**k * error for (x, _), error in zip(seen, errors, strict=True)) / len(seen)
            for k in range(3)
        ]
        weights = [w - 0.5 * (slope + 1e-4 * w) for w, slope in zip(weights, slopes, strict=True)]
    curve = [sum(w * (at / 100) ** k for k, w in enumerate(weights)) for at in range(101)]
    error = sum((curve[round(x * 100)] - y) ** 2 for x, y in points[::5])
    with open(model.path, "w") as file:
        json.dump({"name": "ridge", "error": error, "curve": curve}, file)


@placed(type="Training", duration="8m", outputs={"model": "45Mi"}, cpu=3, memory="4Gi")
@dsl.component(base_image=IMAGE)
def trees(table: dsl.Input[dsl.Dataset], model: dsl.Output[dsl.Model]):
    """One tree, cut at the median until a leaf has ten points."""
    import json

    with open(table.path) as file:
        points = json.load(file)
    leaves = [sorted(point for number, point in enumerate(points) if number % 5)]
    while len(leaves[0]) > 10:
        middles = [(leaf, len(leaf) // 2) for leaf in leaves]
        leaves = [half for leaf, middle in middles for half in (leaf[:middle], leaf[middle:])]
    curve = []
    for at in range(101):
        leaf = next((leaf for leaf in leaves if at / 100 <= leaf[-1][0]), leaves[-1])
        curve.append(sum(y for _, y in leaf) / len(leaf))
    error = sum((curve[round(x * 100)] - y) ** 2 for x, y in points[::5])
    with open(model.path, "w") as file:
        json.dump({"name": "trees", "error": error, "curve": curve}, file)


@placed(type="Training", duration="24m", outputs={"model": "45Mi"}, cpu=3, memory="4Gi")
@dsl.component(base_image=IMAGE)
def xgboost(table: dsl.Input[dsl.Dataset], model: dsl.Output[dsl.Model]):
    """Boosted stumps: each corrects a little of what those before it got wrong."""
    import json

    with open(table.path) as file:
        points = json.load(file)
    seen = [point for number, point in enumerate(points) if number % 5]
    curve = [0.0] * 101
    for number in range(200):
        cut = number * 37 % 100 + 1
        sides = [[], []]
        for x, y in seen:
            sides[round(x * 100) >= cut].append(y - curve[round(x * 100)])
        low, high = (0.3 * sum(side) / max(len(side), 1) for side in sides)
        curve = [y + (high if at >= cut else low) for at, y in enumerate(curve)]
    error = sum((curve[round(x * 100)] - y) ** 2 for x, y in points[::5])
    with open(model.path, "w") as file:
        json.dump({"name": "xgboost", "error": error, "curve": curve}, file)


@placed(type="Evaluate", duration="1m", outputs={"best": "5Mi"}, cpu=1, memory="1Gi")
@dsl.component(base_image=IMAGE)
def choose(
    bayes: dsl.Input[dsl.Model],
    forest: dsl.Input[dsl.Model],
    lasso: dsl.Input[dsl.Model],
    neighbours: dsl.Input[dsl.Model],
    ridge: dsl.Input[dsl.Model],
    trees: dsl.Input[dsl.Model],
    xgboost: dsl.Input[dsl.Model],
    best: dsl.Output[dsl.Model],
) -> str:
    """Keep the model with the least error on the points that no training has seen."""
    import json

    trained = []
    for model in (bayes, forest, lasso, neighbours, ridge, trees, xgboost):
        with open(model.path) as file:
            trained.append(json.load(file))
    chosen = min(trained, key=lambda model: model["error"])
    with open(best.path, "w") as file:
        json.dump(chosen, file)
    return chosen["name"]


@placed(type="Predict", duration="1m", cpu=1, memory="1Gi")
@dsl.component(base_image=IMAGE)
def predict(model: dsl.Input[dsl.Model], x: float) -> float:
    """Predict y at x."""
    import json

    with open(model.path) as file:
        return json.load(file)["curve"][round(x * 100)]


@dsl.pipeline(name="unequal-steps", description="Train seven models, predict with the best.")
@placed_pipeline()
def unequal_steps(rows: int = 400, x: float = 0.8) -> float:
    table = fetch(rows=rows).outputs["table"]
    trained = {
        step.name: step.outputs["model"]
        for step in (
            xgboost(table=table),
            neighbours(table=table),
            forest(table=table),
            trees(table=table),
            ridge(table=table),
            lasso(table=table),
            bayes(table=table),
        )
    }
    best = choose(**trained).outputs["best"]
    return predict(model=best, x=x).output


if __name__ == "__main__":
    compiler.Compiler().compile(unequal_steps, "pipeline.yaml")
