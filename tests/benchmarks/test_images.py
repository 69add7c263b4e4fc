"""The table of images to pull: packages of KFP's own tests, planned without and with pulls."""

from dataclasses import replace

import pytest

from benchmarks.images import FOLDER, Outcome, Planned, command, measure, packages, parts_of
from benchmarks.tables import Table
from kfp_placement_engine.exceptions import InputNotFoundError
from tests.support.data import data_path

FREE = Planned(makespan_seconds=100.0, bound_seconds=100.0, gain=0.0, nodes=("a", "b"), exact=True)
OUTCOME = Outcome(
    name="train",
    steps=2,
    images=1,
    free=FREE,
    pulled=replace(FREE, makespan_seconds=108.0, bound_seconds=108.0, nodes=("b", "b")),
)


def test_a_package_takes_longer_by_what_its_image_takes_to_pull():
    outcome = measure(data_path("kfp-2.17.0", "pipelines", "two_step_pipeline.yaml"))
    assert (outcome.steps, outcome.images) == (2, 1)
    # One node pulls 400Mi at 50 MB/s, once.
    pull_seconds = 400 * 2**20 / 50e6
    assert outcome.pulled.makespan_seconds - outcome.free.makespan_seconds == pytest.approx(
        pull_seconds, abs=0.1
    )
    assert outcome.nodes_after == 1


def test_every_package_of_the_data_is_taken():
    folder = data_path(*FOLDER.parts)
    assert packages(folder.parent.parent) == packages(folder) == sorted(folder.glob("*.yaml"))


def test_names_of_equal_nodes_do_not_count():
    same = replace(FREE, nodes=("b", "a"))
    assert OUTCOME.elsewhere
    assert not replace(OUTCOME, pulled=same).elsewhere


def test_the_page_sums_up_and_has_a_row_for_each_package():
    _, summary, table = parts_of([OUTCOME])
    assert not isinstance(summary, Table)
    assert isinstance(table, Table)
    assert "8.0% longer" in summary[0]
    assert "2 nodes used before, 1 after" in summary[1]
    (row,) = table.rows
    assert row[:6] == ["train", "2", "1", "100.0", "108.0", "8.0"]


def test_a_plan_that_beats_its_bound_fails(monkeypatch, capsys):
    wrong = replace(OUTCOME, pulled=replace(OUTCOME.pulled, bound_seconds=200.0))
    monkeypatch.setattr("benchmarks.images.measure", lambda path: wrong)
    monkeypatch.setattr("benchmarks.images.packages", lambda data: [data_path("README.md")])
    assert command([]) == 1
    assert "train" in capsys.readouterr().out


def test_a_folder_without_packages_is_an_error(tmp_path):
    with pytest.raises(InputNotFoundError, match="holds no pipeline packages"):
        packages(tmp_path)
