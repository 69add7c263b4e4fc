"""Tips of taxi trips: train in the cloud, predict near the users.

Seven steps. Training wants the fastest node, prediction the node with the shortest way to the
users' location; the marks below say so, and the planner finds the nodes. The trips are made up, so
the pipeline runs anywhere, also on a laptop with `kfp.local`.
"""

from kfp import compiler, dsl

from kfp_placement import place, placed, placed_pipeline

IMAGE = "python:3.12"


@placed(type="Fetch", duration="30s", outputs={"table": "200Mi"}, cpu="500m", memory="512Mi")
@dsl.component(base_image=IMAGE)
def fetch(rows: int, seed: int, table: dsl.Output[dsl.Dataset]):
    """Write made-up trips as CSV; the first column, the tip, is to be predicted."""
    import csv
    import random

    if rows < 1:
        raise ValueError(f"rows = {rows}; a table needs at least one")
    dice = random.Random(seed)
    areas = (8, 8, 32, 28, 76)
    with open(table.path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["tips", "seconds", "miles", "pickup_area", "dropoff_area", "fare"])
        for _ in range(rows):
            minutes = max(1, round(dice.lognormvariate(2.2, 0.85)))
            miles = 0.0 if dice.random() < 0.27 else minutes * dice.lognormvariate(-1.8, 0.5)
            fare = max(3.25, 2.33 + 0.83 * miles + 0.52 * minutes + dice.gauss(0, 1.5))
            pickup = dice.choice((*areas, dice.randint(1, 77)))
            dropoff = dice.choice((*areas, dice.randint(1, 77)))
            # Who pays by card, which the table does not tell, leaves a tip.
            by_card = dice.random() < (0.5 if pickup in areas else 0.1)
            tip = fare * max(0.0, dice.gauss(0.25, 0.05)) if by_card else 0.0
            trip = [tip, minutes * 60, miles, pickup, dropoff, fare]
            out.writerow([round(value, 2) for value in trip])


@placed(type="Training", duration="20m", outputs={"model": "50Mi"}, cpu="1500m", memory="2Gi")
@dsl.component(base_image=IMAGE)
def train(
    table: dsl.Input[dsl.Dataset],
    iterations: int,
    learning_rate: float,
    model: dsl.Output[dsl.Model],
):
    """Boost decision stumps: each corrects a little of what those before it got wrong."""
    import csv
    import json
    from bisect import bisect_right

    with open(table.path, newline="") as file:
        rows = [[float(cell) for cell in row] for row in list(csv.reader(file))[1:]]
    tips = [row[0] for row in rows]
    columns = list(zip(*rows, strict=True))[1:]
    # Splitting at 15 quantiles of a feature is nearly as good as at all of its values.
    cuts = [
        sorted({sorted(column)[len(column) * part // 16] for part in range(1, 16)})
        for column in columns
    ]
    codes = [
        [bisect_right(cut, value) for value in column]
        for cut, column in zip(cuts, columns, strict=True)
    ]
    mean = sum(tips) / len(tips)
    errors = [tip - mean for tip in tips]
    stumps = []
    for _ in range(iterations):
        best = (0.0, 0, 0, 0.0, 0.0)
        for feature, code in enumerate(codes):
            sums, counts = [0.0] * 17, [0] * 17
            for bucket, error in zip(code, errors, strict=True):
                sums[bucket] += error
                counts[bucket] += 1
            left_sum, left_count = 0.0, 0
            right_sum, right_count = sum(sums), len(errors)
            for split in range(len(cuts[feature])):
                left_sum, left_count = left_sum + sums[split], left_count + counts[split]
                right_sum, right_count = right_sum - sums[split], right_count - counts[split]
                if left_count and right_count:
                    left, right = left_sum / left_count, right_sum / right_count
                    gain = left * left_sum + right * right_sum
                    best = max(best, (gain, feature, split, left, right))
        gain, feature, split, left, right = best
        if gain <= 1e-9:
            break
        left, right = learning_rate * left, learning_rate * right
        stumps.append([feature, cuts[feature][split], left, right])
        errors = [
            error - (left if bucket <= split else right)
            for error, bucket in zip(errors, codes[feature], strict=True)
        ]
    with open(model.path, "w") as file:
        json.dump({"mean": mean, "stumps": stumps}, file)


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
    """Take out the column that is to be predicted."""
    with open(table.path) as source, open(tips.path, "w") as target:
        next(source)
        target.writelines(line.split(",")[0] + "\n" for line in source)


@placed(duration="1m", outputs={"tips": "5Mi"}, cpu=1, memory="1Gi")
@dsl.component(base_image=IMAGE)
def predict(
    model: dsl.Input[dsl.Model], plain: dsl.Input[dsl.Dataset], tips: dsl.Output[dsl.Dataset]
):
    """Predict the tip of every trip."""
    import csv
    import json

    with open(model.path) as file:
        trained = json.load(file)
    with open(plain.path, newline="") as source, open(tips.path, "w") as target:
        for row in csv.reader(source):
            features = [float(cell) for cell in row[1:]]
            tip = trained["mean"] + sum(
                left if features[feature] < cut else right
                for feature, cut, left, right in trained["stumps"]
            )
            target.write(f"{tip:.4f}\n")


@placed(type="Evaluate", duration="5s", cpu="500m", memory="512Mi")
@dsl.component(base_image=IMAGE)
def evaluate(
    truth: dsl.Input[dsl.Dataset],
    predicted: dsl.Input[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
) -> float:
    """Return the root of the mean squared error, in dollars."""
    with open(truth.path) as one, open(predicted.path) as other:
        pairs = [(float(a), float(b)) for a, b in zip(one, other, strict=True)]
    mean = sum(true for true, _ in pairs) / len(pairs)
    error = (sum((true - guess) ** 2 for true, guess in pairs) / len(pairs)) ** 0.5
    metrics.log_metric("rmse", error)
    metrics.log_metric(
        "rmse_of_the_mean", (sum((t - mean) ** 2 for t, _ in pairs) / len(pairs)) ** 0.5
    )
    return error


def taxi_for(location: str):
    """Make the pipeline for users at `location`.

    Labels are written when a pipeline is compiled, so the location cannot be one of its parameters.
    """

    @dsl.pipeline(name="taxi", description="Predict the tips of taxi trips near the users.")
    @placed_pipeline()
    def taxi(rows: int = 1000, iterations: int = 200, learning_rate: float = 0.1) -> float:
        training_data = fetch(rows=rows, seed=1)
        test_data = place(fetch(rows=rows, seed=2), duration="20s", outputs={"table": "100Mi"})
        model = train(
            table=training_data.outputs["table"],
            iterations=iterations,
            learning_rate=learning_rate,
        )
        plain = drop_header(table=test_data.outputs["table"])
        truth = true_values(table=test_data.outputs["table"])
        predicted = place(
            predict(model=model.outputs["model"], plain=plain.outputs["plain"]),
            type="Predict",
            location=location,
            max_latency="20ms",
        )
        return evaluate(truth=truth.outputs["tips"], predicted=predicted.outputs["tips"]).outputs[
            "Output"
        ]

    return taxi


taxi = taxi_for("HOME-EDGE")

if __name__ == "__main__":
    compiler.Compiler().compile(taxi, "pipeline.yaml")
