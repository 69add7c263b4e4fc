import csv
from pathlib import Path

import pytest

from tests.support.samples import load_component

COLUMNS = [
    "tips",
    "trip_seconds",
    "trip_miles",
    "pickup_community_area",
    "dropoff_community_area",
    "fare",
]
fetch = load_component("fetch").python_func


def written(artifact):
    with open(artifact.path, newline="") as file:
        return list(csv.reader(file))


def test_made_up_trips_look_like_trips(artifact):
    table = artifact("table")
    fetch(table=table, rows=3000, seed=1)
    names, *rows = written(table)
    assert names == COLUMNS
    assert len(rows) == 3000
    tips, seconds, miles, pickup, _, fares = zip(*(map(float, row) for row in rows), strict=True)
    assert 0.4 < sum(tip == 0 for tip in tips) / 3000 < 0.8
    assert min(seconds) >= 60
    assert min(miles) == 0
    assert set(pickup) <= set(range(1, 78))
    assert min(fares) == 3.25


def test_the_seed_decides(artifact):
    tables = [artifact(str(number)) for number in range(3)]
    for table, seed in zip(tables, (1, 1, 2), strict=True):
        fetch(table=table, rows=50, seed=seed)
    first, same, other = map(written, tables)
    assert first == same != other


@pytest.mark.parametrize("as_url", [False, True])
def test_trips_from_a_file(artifact, tmp_path, as_url):
    source = tmp_path / "trips.csv"
    rows = [f"{tip},480,1.4,8,8,6.85" for tip in range(5)]
    source.write_text("\n".join([",".join(COLUMNS), *rows]) + "\n")
    table = artifact("table")
    fetch(table=table, source=source.as_uri() if as_url else str(source), rows=3)
    assert written(table) == [COLUMNS, *(row.split(",") for row in rows[:3])]


@pytest.mark.parametrize(
    ("text", "rows", "words"),
    [
        ("fare,tips\n1,2\n", 10, "has the columns ['fare', 'tips']; they must be ['tips',"),
        ("", 10, "has the columns []"),
        (",".join(COLUMNS), 0, "rows is 0; it must be at least 1"),
    ],
)
def test_what_cannot_be_fetched_is_said(artifact, tmp_path, text, rows, words):
    source = tmp_path / "trips.csv"
    source.write_text(text)
    table = artifact("table")
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        fetch(table=table, source=str(source), rows=rows)
    assert words in str(raised.value)
    assert not Path(table.path).exists()
