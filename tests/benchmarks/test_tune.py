"""The command that tunes: options, tables, figures, messages."""

import pytest

from benchmarks.tune import command, parsed, studies
from benchmarks.tuning.constants import CONSTANTS, OPERATORS
from benchmarks.tuning.report import shipped_in
from benchmarks.tuning.study import Study
from kfp_placement_engine import GeneticParams

SHARE = GeneticParams().crossover_rate
FEW = ("--limit", "5", "--kinds", "workflows")
ONE_VALUE = ("--parameters", "crossover_rate", "--values", "0.123", *FEW, "--budget", "60schedules")
ONE_OPERATOR = ("--operators", "crossover", *FEW, "--seeds", "0-1", "--budget", "0.005cpu")


def both(*arguments: str) -> tuple[Study, Study]:
    """What is measured of values and of operators."""
    values, operators = studies(parsed(arguments))
    assert values is not None
    assert operators is not None
    return values, operators


def test_a_row_for_every_value_and_the_shipped_one_marked(capsys, tmp_path):
    page = tmp_path / "tune.md"
    assert command([*ONE_VALUE, "--output", str(page)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    rows = [line for line in lines if line[:1] == ["crossover_rate"]]
    assert {row[1] for row in rows} == {"0.123", str(SHARE)}
    assert [row[1] for row in rows if row[2:] == ["shipped"]] == [str(SHARE)]
    text = page.read_text("utf-8")
    words = " ".join(text.split())
    assert "5 instances of a kind (numbers 1000 to 1004), seed 0, 60 schedules each" in words
    assert shipped_in(text) == {"crossover_rate": str(SHARE)}
    assert max(len(line) for line in text.splitlines() if "|" not in line) <= 100


def test_an_operator_has_a_verdict(capsys):
    assert command([*ONE_OPERATOR]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.split()[0] == "crossover"
    assert "stays: gains in workflows" in last or "goes: " in last


def test_figures_hold_every_trial(figures):
    report = figures(command, *ONE_VALUE, "--first", "2000")
    assert report["operators"] is None
    values = report["values"]
    (setting,) = values["settings"]
    assert (setting["name"], setting["value"]) == ("crossover_rate", 0.123)
    assert set(setting["percentByKind"]) == {"workflows"}
    assert values["instances"] == list(range(2000, 2005))
    assert values["shipped"]["crossover_rate"] == SHARE
    assert [row["params"]["crossover_rate"] for row in values["trials"]] == [SHARE, 0.123] * 5


def test_budgets_in_schedules_are_for_values_and_cpu_seconds_for_operators():
    values, operators = both("--budget", "0.2cpu", "50schedules", "--seeds", "3", "--limit", "7")
    assert (values.budget.word, operators.budget.word) == ("50schedules", "0.2cpu")
    assert values.seeds == operators.seeds == range(3, 4)
    assert values.instances == operators.instances == range(1000, 1007)


def test_all_is_measured_unless_something_is_asked_for():
    values, operators = both()
    assert {each.name for each in values.settings} == {each.name for each in CONSTANTS}
    assert {each.name for each in operators.settings} == {each.name for each in OPERATORS}
    assert (len(operators.seeds), operators.budget.schedules) == (5, None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--parameters", "cross"], "'cross': no such constant; there are population_size, "),
        (["--parameters", "exact_below"], "exact_below is not tuned: it says which tiny runs"),
        (["--values", "0.123"], "--values: name the one constant that has them with --parameters"),
        (["--parameters", "islands", "--values", "x"], "'x': it must be a number"),
        (["--operators", "x"], "invalid choice: 'x'"),
        (["--budget", "1cpu", "2cpu"], "give at most one in schedules and one in CPU seconds"),
    ],
)
def test_usage_errors(arguments, words, usage_error):
    assert words in usage_error(command, *arguments).splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--values", "2"], "crossover_rate = 2; it must lie between 0 and 1"),
        (["--values", "nan"], "crossover_rate = nan; it must lie between 0 and 1"),
        (["--values", str(SHARE)], "there is nothing to compare: what is asked for is as shipped"),
        (["--log", "/"], "/: cannot be read: "),
    ],
)
def test_wrong_input(arguments, words, message):
    options = ("--parameters", "crossover_rate", *arguments)
    (line,) = message(1, command, *options).splitlines()
    assert line.startswith(f"Error: {words}")
