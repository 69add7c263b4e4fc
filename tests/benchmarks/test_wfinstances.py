"""The workflow instances' table: all columns, never worse than HEFT; skipped without the data."""

import json
import math

import pytest

from benchmarks.wfinstances import (
    CLUSTERS,
    instance_files,
    main,
    measure,
    slot_problem,
    slot_run,
)
from benchmarks.wfinstances_origin import ORIGIN
from benchmarks.wfinstances_report import Outcome
from kfp_placement_engine import BASELINES
from kfp_placement_engine.exceptions import InputNotFoundError
from kfp_placement_engine.model.plan import Bound
from kfp_placement_engine.search.solve import solve
from kfp_placement_engine.search.stop import MaxGenerations
from tests.support.data import data_path

SMALL = ("bacass-dirt02-001", "fetchngs-dirt02-001", "helloworld-forkjoin-10-chameleon")


@pytest.fixture
def folder():
    """The data set; tests that use it are skipped without it."""
    return data_path("wfinstances")


def task(name, parents=(), children=()):
    return {"id": name, "name": name, "parents": list(parents), "children": list(children)}


@pytest.fixture
def made_up(tmp_path):
    """Three tasks of 10 s: the second and third wait for the first."""
    names = ("first", "second", "third")
    document = {
        "name": "made-up",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {
                "tasks": [
                    task("first", children=("second", "third")),
                    task("second", parents=("first",)),
                    task("third", parents=("first",)),
                ],
                "files": [],
            },
            "execution": {"tasks": [{"id": name, "runtimeInSeconds": 10} for name in names]},
        },
    }
    (tmp_path / "made-up.json").write_text(json.dumps(document), encoding="utf-8")
    return tmp_path


def test_no_data(tmp_path):
    with pytest.raises(InputNotFoundError, match="holds no workflow instances"):
        instance_files(tmp_path)


def test_clusters():
    """Equal slots, and mixed speeds."""
    speeds = [[node.speed for node in each.cluster().nodes] for each in CLUSTERS]
    assert speeds == [[1.0, 1.0, 1.0], [0.5, 1.0, 1.0, 2.0]]


def test_a_task_takes_a_slot(made_up):
    run = slot_run(made_up / "made-up.json")
    assert {step.requests["cpu"] for step in run.steps} == {1000}
    problem = slot_problem(run, CLUSTERS[0].cluster())
    assert BASELINES["kube-default"](problem, 0).makespan_seconds == 20


def test_the_table_end_to_end(made_up, tmp_path):
    lines: list[str] = []
    target = tmp_path / "wfinstances.md"
    assert main(lines.append, budgets=(0.01,), data=made_up, output=target) == 0
    text = "\n".join(lines)
    for word in ("Cluster 3x2", "Cluster het 4x4", "made-up", "ours 0.01 s", "geometric means"):
        assert word in text
        assert word in target.read_text(encoding="utf-8")


def test_figures_as_json(made_up):
    lines: list[str] = []
    assert main(lines.append, budgets=(0.01,), data=made_up, form="json") == 0
    outcomes = json.loads("\n".join(lines))["outcomes"]
    assert [each["cluster"] for each in outcomes] == ["3x2", "het 4x4"]
    assert outcomes[0]["makespanSeconds"] == {"kube-default": 20, "heft": 20}
    assert outcomes[0]["ours"] == [{"budgetSeconds": 0.01, "makespanSeconds": 20}]


def test_worse_than_heft_or_better_than_the_bound_is_a_failure():
    def outcome(ours):
        return Outcome("3x2", "file", 3, Bound(10.0, "area"), 20.0, 15.0, {1.0: ours})

    assert outcome(12.0).is_possible
    assert not outcome(16.0).is_possible
    assert not outcome(9.0).is_possible


def test_first_figures_are_those_of_the_data(folder):
    names = {path.stem for path in instance_files(folder)}
    assert names == set(ORIGIN["3x2"]) == set(ORIGIN["het 4x4"])
    assert len(names) == 22


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda each: each.name)
def test_small_instances(folder, name, cluster):
    """Within 2 % of the first figures, to which ours may only be better."""
    outcome = measure(folder / f"{name}.json", cluster, budgets=(0.05,))
    first = ORIGIN[cluster.name][name]
    assert outcome.is_possible
    assert math.isclose(outcome.heft, first.heft, rel_tol=0.02)
    assert math.isclose(outcome.kube, first.kube, rel_tol=0.02)
    problem = slot_problem(slot_run(folder / f"{name}.json"), cluster.cluster())
    ours = solve(problem, MaxGenerations(200), 0).schedule.makespan_seconds
    assert ours <= (first.search or first.heft) * 1.02
