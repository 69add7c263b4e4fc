"""The workflow instances' table: all columns, never worse than HEFT; skipped without the data."""

import hashlib
import json
import math
from functools import partial

import pytest

from benchmarks.budget import Budget
from benchmarks.cases import Case
from benchmarks.series import run
from benchmarks.wfinstances import CLUSTERS, command, instance_files, load, slot_problem, slot_run
from benchmarks.wfinstances_origin import ORIGIN
from benchmarks.wfinstances_report import files_of
from kfp_placement_engine import BASELINES
from kfp_placement_engine.exceptions import InputNotFoundError
from kfp_placement_engine.search.baselines import schedules_of
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
    others = ("second", "third")
    names = ("first", *others)
    document = {
        "name": "made-up",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {
                "tasks": [
                    task("first", children=others),
                    *(task(name, parents=("first",)) for name in others),
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
    """Equal slots, mixed speeds, and both mixed."""
    speeds = [[node.speed for node in each.cluster().nodes] for each in CLUSTERS]
    assert speeds == [[1.0, 1.0, 1.0], [0.5, 1.0, 1.0, 2.0], [0.8, 1.0, 1.2, 1.0, 0.6, 1.5]]
    cpus = [[node.allocatable["cpu"] for node in each.cluster().nodes] for each in CLUSTERS]
    assert cpus == [[2000] * 3, [4000] * 4, [1000, 2000, 4000, 8000, 4000, 2000]]


def test_a_task_takes_a_slot(made_up):
    run = slot_run(made_up / "made-up.json")
    assert {step.requests["cpu"] for step in run.steps} == {1000}
    problem = slot_problem(run, CLUSTERS[0].cluster())
    assert BASELINES["kube-default"](problem, 0).makespan_seconds == 20


def test_the_table_end_to_end(made_up, tmp_path, capsys):
    target = tmp_path / "wfinstances.md"
    options = ["--data", str(made_up), "--budget", "0.01s", "50schedules"]
    assert command([*options, "--output", str(target)]) == 0
    text = capsys.readouterr().out
    for word in (
        "Cluster 3x2",
        "Cluster het 4x4",
        "made-up",
        "ours 0.01 s",
        "ours 50 schedules",
        "geometric means",
    ):
        assert word in text
        assert word in target.read_text(encoding="utf-8")


def test_figures_as_json(made_up, figures):
    options = ["--data", str(made_up), "--seeds", "0-1", "--budget", "50schedules"]
    report = figures(command, *options, "--peers", "peft")
    rows = report["rows"]
    cases = [(row["case"], row["seed"]) for row in rows]
    names = [each.name for each in CLUSTERS]
    assert cases == [(f"{name} made-up", seed) for name in names for seed in (0, 1)]
    assert {row["input"] for row in rows} == {
        hashlib.sha256((made_up / "made-up.json").read_bytes()).hexdigest()
    }
    assert rows[0]["makespanSeconds"] == rows[0]["baselineSeconds"]["heft"] == 20
    assert rows[0]["baselineSeconds"]["peft"] == 20
    assert rows[0]["boundSeconds"]["critical-path"] == pytest.approx(20)
    (equal, mixed, _) = report["totals"]
    assert (equal["cluster"], equal["files"], equal["oursByHeft"]) == ("3x2", 1, 1.0)
    # HEFT is at the bound: there is no gap to close.
    assert (equal["shareOfHeftsGap"], equal["shareOfHeftsPlainGap"]) == (1.0, 1.0)
    assert mixed["cluster"] == "het 4x4"


def test_the_gap_is_also_that_to_the_bounds_which_know_no_windows(made_up):
    """No bound is above the plan, and those that know no windows are not above the largest."""
    case = Case("6 nodes made-up", lambda seed: load(made_up / "made-up.json", CLUSTERS[2], seed))
    (file,) = files_of(run([case], range(1), [Budget(schedules=9)]))
    assert (file.cluster, file.name, file.origin) == ("6 nodes", "made-up", None)
    assert 0 < file.plain_bound <= file.bound <= file.best


def test_files_are_read_before_anything_is_searched(made_up, capsys):
    (made_up / "z.json").write_text("{", encoding="utf-8")
    assert command(["--data", str(made_up), "--budget", "9schedules"]) == 1
    printed = capsys.readouterr()
    assert "z.json" in printed.err
    assert "made-up" not in printed.out


def test_one_file_on_one_cluster(made_up, capsys, message):
    options = ["--data", str(made_up), "--budget", "9schedules", "--cases"]
    assert command([*options, "het * made-up"]) == 0
    assert "Cluster 3x2" not in capsys.readouterr().out
    stderr = message(1, command, *options, "sarek")
    assert "no case is called 'sarek'; there are 3, such as 3x2 made-up" in stderr


def test_kube_default_is_a_mean_over_the_orders_of_the_nodes(made_up):
    """Which of the four nodes is listed first decides how fast the first task is."""
    (outcome,) = run(
        [Case("het 4x4 made-up", lambda seed: load(made_up / "made-up.json", CLUSTERS[1], seed))],
        range(1),
        [Budget(schedules=9)],
    )
    schedules = schedules_of("kube-default", load(made_up / "made-up.json", CLUSTERS[1], 0).problem)
    makespans = [each.makespan_seconds for each in schedules]
    assert len(makespans) == 24
    assert len(set(makespans)) > 1
    assert outcome.references.baselines["kube-default"] == pytest.approx(sum(makespans) / 24)


def test_first_figures_are_those_of_the_data(folder):
    names = {path.stem for path in instance_files(folder)}
    assert names == set(ORIGIN["3x2"]) == set(ORIGIN["het 4x4"])
    assert len(names) == 22


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(
    "cluster", [each for each in CLUSTERS if ORIGIN[each.name]], ids=lambda each: each.name
)
def test_small_instances(folder, name, cluster):
    """Within 2 % of the first figures, to which ours may only be better."""
    case = Case(f"{cluster.name} {name}", partial(load, folder / f"{name}.json", cluster))
    outcomes = run([case], range(1), [Budget(wall_seconds=0.05)])
    (file,) = files_of(outcomes)
    first = ORIGIN[cluster.name][name]
    assert outcomes[0].fault == ""
    assert math.isclose(file.heft, first.heft, rel_tol=0.02)
    assert math.isclose(file.kube, first.kube, rel_tol=0.02)
    problem = slot_problem(slot_run(folder / f"{name}.json"), cluster.cluster())
    ours = solve(problem, MaxGenerations(200), 0).schedule.makespan_seconds
    assert ours <= (first.search or first.heft) * 1.02
