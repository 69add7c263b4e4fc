"""The benchmark of speed: what is counted, what is compared, which checkouts it refuses."""

import json
import os

import pytest

from benchmarks import speed
from benchmarks.checkouts import Checkout
from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run
from benchmarks.processes import ROOT
from benchmarks.speed import CASES, main, measured_by
from benchmarks.speed_case import CHILDREN, FIRST_PLAN, CountedSearch, SpeedCase, Stopwatch, measure
from benchmarks.speed_report import Outcome, figures_of, parts_of
from benchmarks.tables import as_text
from kfp_placement_engine import GeneticParams, LoweringOptions, lower
from kfp_placement_engine.search.genetic import seeds_of, trials_per_generation
from tests.benchmarks.conftest import ENGINE

SEARCH = SpeedCase(CHILDREN, Shape("workflow", 20, 4), generations=2)
PLAN = SpeedCase(FIRST_PLAN, Shape("kfp", 20, 4))


def measurements(*seconds, fingerprint="a"):
    each = {"children": 60, "lowering_seconds": 0.5, "fingerprint": fingerprint}
    return [{**each, "cpu_seconds": time} for time in seconds]


def a_problem():
    run, cluster = made_up_run(SEARCH.shape), made_up_cluster(SEARCH.shape)
    return lower(run, cluster, LoweringOptions(dispatch="ordered")).problem


def test_generations_count_from_the_plans_that_a_search_starts_from():
    problem, stopwatch = a_problem(), Stopwatch(3)
    search = CountedSearch(problem, GeneticParams(), 0, threads=1)
    _, generations = search.run(stopwatch, None, lambda _generation, _share: None)
    assert generations == len(list(seeds_of(problem))) - 1 + 3
    assert stopwatch.cpu_seconds > 0
    assert len(search.populations) == GeneticParams().islands


def test_one_search():
    first, again = measure(SEARCH), measure(SEARCH)
    assert first["children"] == trials_per_generation(a_problem()) * SEARCH.generations
    assert first["cpu_seconds"] > 0
    assert first["fingerprint"] == again["fingerprint"]
    longer = SpeedCase(CHILDREN, SEARCH.shape, generations=3)
    assert measure(longer)["fingerprint"] != first["fingerprint"]


def test_one_first_plan():
    first, again = measure(PLAN), measure(PLAN)
    assert 0 < first["lowering_seconds"] < first["cpu_seconds"]
    assert first["fingerprint"] == again["fingerprint"]


def test_a_process_measures_the_engine_of_its_checkout(checkout):
    ours, theirs = (measured_by(Checkout("it", folder), SEARCH) for folder in (ROOT, checkout))
    assert ours["engine"].startswith(str(ENGINE))
    assert theirs["engine"].startswith(str(checkout))
    assert ours["fingerprint"] == theirs["fingerprint"]


def test_another_checkout_that_computes_the_same(checkout, capsys):
    lines: list[str] = []
    main(lines.append, cases=[SEARCH, PLAN], base=checkout, pairs=1, progress=print)
    assert "\n".join(lines).count("the same") == 2
    assert capsys.readouterr().out.splitlines()[:2] == [
        "children-workflow-20x4: base, 1 of 1",
        "children-workflow-20x4: this checkout, 1 of 1",
    ]


def test_another_checkout_that_computes_something_else(checkout, capsys, monkeypatch):
    module = checkout / "engine" / ENGINE.name / "search" / "parameters.py"
    text = module.read_text("utf-8")
    changed = text.replace("greedy_share: float = 0.1", "greedy_share: float = 0.9")
    assert changed != text
    module.write_text(changed, "utf-8")
    monkeypatch.setattr(speed, "CASES", (SEARCH, PLAN))
    arguments = ["--base", str(checkout), "--pairs", "1", "--cases", "*", "-o", "json"]
    assert speed.command(arguments) == 1
    output = capsys.readouterr()
    error = output.err.splitlines()[-1]
    assert error == f"Error: {SEARCH.name}: its results are not those of the base"
    assert [case["same"] for case in json.loads(output.out)["cases"]] == [False, True]


def test_who_comes_first_changes_from_pair_to_pair(checkout, monkeypatch):
    order = []

    def measured(checkout, case):
        order.append(checkout.name)
        return measurements(2.0)[0]

    monkeypatch.setattr(speed, "measured_by", measured)
    main(lambda line: None, cases=[SEARCH], base=checkout, pairs=3)
    assert order == ["base", "this checkout", "this checkout", "base", "base", "this checkout"]


def test_the_ratio_is_that_of_the_medians():
    outcome = Outcome(SEARCH, measurements(1.0, 2.0, 9.0), measurements(30.0, 4.0, 6.0))
    assert outcome.ratio == 3.0
    shown = "\n".join(as_text(parts_of([outcome])))
    for word in ("x  ", "3.00", "6.7-60.0", "10.0", "30.0", "the same"):
        assert word in shown
    figures = figures_of(outcome)
    assert figures["present"]["childrenPerSecond"] == [60.0, 30.0, pytest.approx(6.667, abs=1e-3)]
    assert figures["base"]["cpuSeconds"] == [30.0, 4.0, 6.0]


def test_results_that_differ_from_process_to_process():
    outcome = Outcome(SEARCH, measurements(1.0) + measurements(1.0, fingerprint="b"))
    assert outcome.difference == "its results are not always the same"
    assert not figures_of(outcome)["same"]


def test_a_folder_that_is_not_a_checkout(message, tmp_path):
    stderr = message(3, speed.command, "--base", str(tmp_path / "gone"))
    assert stderr.endswith("gone: not a checkout of kfp-placement\n")


def test_a_checkout_without_a_kernel(message, checkout):
    for kernel in (checkout / "engine" / ENGINE.name).glob("_kernel.*"):
        kernel.unlink()
    stderr = message(1, speed.command, "--base", str(checkout))
    assert "its kernel is not compiled: run `make setup` there" in stderr


def test_a_kernel_that_is_older_than_its_sources(message, checkout):
    """What would be measured is not what the checkout says."""
    source = checkout / "engine" / "kernel" / "search.h"
    source.parent.mkdir()
    source.touch()
    os.utime(source, (2**32, 2**32))
    stderr = message(1, speed.command, "--base", str(checkout))
    assert "its kernel is older than its sources: run `make kernel`" in stderr


def test_an_engine_that_fails(message, checkout):
    (checkout / "engine" / ENGINE.name / "lowering" / "__init__.py").write_text("1 / 0\n")
    stderr = message(1, speed.command, "--base", str(checkout), "--cases", CASES[0].name)
    error = stderr.splitlines()[-1]
    assert error.startswith(f"Error: {CASES[0].name} of {checkout} fails: ZeroDivisionError")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--cases", "nothing-*"], "'nothing-*': no such case; there are children-kfp-1000x100, "),
        (["--pairs", "0"], "'0': give a number from 1 to 100"),
        (["--pairs", "many"], "'many': give a number from 1 to 100"),
    ],
)
def test_usage(options, words, usage_error):
    assert words in usage_error(speed.command, *options)


def test_cases_are_chosen_by_name(capsys, monkeypatch):
    chosen = {}
    monkeypatch.setattr(speed, "main", lambda echo, **options: chosen.update(options))
    assert speed.command(["--cases", "*-workflow-*"]) == 0
    assert [case.name for case in chosen["cases"]] == [
        "children-workflow-100x10",
        "children-workflow-10000x100",
        "first-plan-workflow-10000x1000",
    ]
