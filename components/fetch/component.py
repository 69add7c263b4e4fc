"""Write a table of taxi trips: from a CSV file, or made up."""

from kfp import compiler, dsl


@dsl.component(base_image="python:3.12")
def fetch(table: dsl.Output[dsl.Dataset], source: str = "", rows: int = 2000, seed: int = 0):
    """Write taxi trips as CSV; the first column, the tip, is what a model predicts.

    Args:
        table: tips, trip_seconds, trip_miles, pickup_community_area, dropoff_community_area, fare.
        source: path or URL of a CSV file with these columns; "" = the trips are made up.
        rows: how many trips are written, at most.
        seed: of the made-up trips.
    """
    import csv
    import itertools
    import random
    import urllib.request

    columns = [
        "tips",
        "trip_seconds",
        "trip_miles",
        "pickup_community_area",
        "dropoff_community_area",
        "fare",
    ]

    def made_up():
        """Trips with the distributions of public taxi data."""
        dice = random.Random(seed)
        areas = (8, 8, 32, 28, 76)
        while True:
            minutes = max(1, round(dice.lognormvariate(2.2, 0.85)))
            miles = 0.0 if dice.random() < 0.27 else minutes * dice.lognormvariate(-1.8, 0.5)
            fare = max(3.25, 2.33 + 0.83 * miles + 0.52 * minutes + dice.gauss(0, 1.5))
            pickup = dice.choice((*areas, dice.randint(1, 77)))
            dropoff = dice.choice((*areas, dice.randint(1, 77)))
            # Only those who pay by card leave a tip, and no column says who does.
            by_card = dice.random() < (0.5 if pickup in areas else 0.1)
            tip = fare * max(0.0, dice.gauss(0.25, 0.05)) if by_card else 0.0
            yield [round(each, 2) for each in (tip, minutes * 60, miles, pickup, dropoff, fare)]

    def read(lines):
        """The trips of a CSV file."""
        found = csv.reader(lines)
        heading = next(found, [])
        if heading != columns:
            raise ValueError(f"{source} has the columns {heading}; they must be {columns}")
        return found

    if rows < 1:
        raise ValueError(f"rows is {rows}; it must be at least 1")
    lines = []
    if "://" in source:
        with urllib.request.urlopen(source, timeout=60) as answer:
            lines = answer.read().decode().splitlines()
    elif source:
        with open(source, newline="") as file:
            lines = file.read().splitlines()
    trips = list(itertools.islice(read(lines) if source else made_up(), rows))
    with open(table.path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(columns)
        out.writerows(trips)


if __name__ == "__main__":
    compiler.Compiler().compile(fetch, "component.yaml")
