"""`python -m benchmarks.paper`: all columns, honest bounds, conclusions that follow from them."""

import json
import sys

import pytest

from benchmarks.paper import PaperSettings, command, fifo_rooms, main, measure, report, run
from benchmarks.paper_report import NAMES, Outcome
from benchmarks.seed_experiment import DURATIONS, MIXES, Draw

BUDGET_SECONDS = 0.2

PATTERN = {"pattern-lp", "pattern-lp-rounded"}


@pytest.fixture(scope="module")
def result():
    """One seed, tiny budgets, everything else as it is."""
    pytest.importorskip("highspy", reason="the pattern bound needs the extra `bounds`")
    return run(PaperSettings(seeds=1, budget_seconds=BUDGET_SECONDS))


def lines_of(result, **options):
    lines: list[str] = []
    code = report(result, lines.append, **options)
    return code, "\n".join(lines)


def outcome(**makespans):
    given = {"ours": 100.0, "paper": 120, "heft": 103, "kube-default": 101, "fifo": 105}
    return Outcome(
        Draw("high", "proportional", 0), 100.0, "pattern-lp", {**given, **makespans}, True
    )


def test_every_mix_and_kind_of_durations_is_there(result):
    drawn = {(each.draw.mix, each.draw.durations) for each in result.outcomes}
    assert drawn == {(mix, durations) for mix in MIXES for durations in DURATIONS}


def test_nothing_beats_the_bound_and_nothing_beats_what_it_started_from(result):
    for each in result.outcomes:
        assert each.bound_kind in PATTERN
        assert not each.beats_bound
        for name in ("heft", "kube-default", "fifo"):
            assert each.makespans["ours"] <= each.makespans[name] * (1 + 1e-9), each.draw


def test_a_fair_default_scheduler_leaves_little(result):
    assert max(each.room("kube-default") for each in result.outcomes) < 0.012
    assert min(each.room("fifo") for each in result.outcomes) > 0.015


def test_prints_all_columns_and_what_they_mean(result):
    code, text = lines_of(result)
    assert code == 0
    for word in (*NAMES.values(), *MIXES, *DURATIONS, "bound", "target"):
        assert word in text
    assert "7.03/4.71/5.77 % (high/medium/low)" in text
    assert "The 7.03 % reported for high is outside" in " ".join(text.split())
    assert "chooses at random" in text
    assert "--seeds 20 --budget 10s" in text


def test_the_whole_table_says_nothing_of_a_short_run(result):
    whole = type(result)(PaperSettings(20, 10.0), result.outcomes, result.rooms)
    assert "short run" not in lines_of(whole)[1]


def test_writes_markdown(result, tmp_path):
    target = tmp_path / "paper.md"
    lines_of(result, output=target)
    text = target.read_text(encoding="utf-8")
    assert text.startswith("# The paper's experiment\n")
    assert text.count("\n| :--- |") == 3


def test_figures_as_json(result):
    code, text = lines_of(result, form="json")
    document = json.loads(text)
    assert (code, document["seeds"], len(document["outcomes"])) == (0, 1, 9)
    assert {each["boundKind"] for each in document["outcomes"]} <= PATTERN
    assert document["outcomes"][0]["makespanSeconds"] == dict(result.outcomes[0].makespans)
    assert set(document["mostGainOverStrictFifo"]["task"]) == set(MIXES)


def test_a_bound_that_is_beaten_or_a_target_that_is_missed_is_a_failure(result):
    def code_of(*outcomes):
        return lines_of(type(result)(result.settings, outcomes, result.rooms))

    assert code_of(outcome())[0] == 0
    code, text = code_of(outcome(ours=100.5))
    assert code == 1
    assert "missed" in text
    code, text = code_of(outcome(heft=99.0))
    assert code == 1
    assert "beats the bound" in text


def test_figures_of_an_outcome():
    each = outcome(ours=101.0, fifo=110.0)
    assert each.gap("ours") == pytest.approx(0.01)
    assert each.gain("fifo") == pytest.approx(9 / 110)
    assert each.room("fifo") == pytest.approx(10 / 110)


def test_room_against_a_blocking_queue():
    """More where every subtask draws its own level: the queue's head fits less often."""
    rooms = fifo_rooms(draws=3)
    assert set(rooms) == {"task", "subtask"}
    for mix in MIXES:
        assert 0 < min(rooms["task"][mix]) <= max(rooms["task"][mix]) < 0.08


def test_the_same_draw_measures_the_same(result):
    again = measure(Draw("low", "proportional", 0), budget_seconds=0.0)
    first = next(each for each in result.outcomes if each.draw == again.draw)
    for name in ("fifo", "kube-default", "heft"):
        assert again.makespans[name] == first.makespans[name]
    assert again.bound_seconds == first.bound_seconds


def test_main_is_all_of_it(capsys):
    pytest.importorskip("highspy", reason="the pattern bound needs the extra `bounds`")
    assert main(print, seeds=1, budget_seconds=0.01) in (0, 1)
    assert "What this says" in capsys.readouterr().out


def test_refuses_without_the_solver(capsys, monkeypatch, tmp_path):
    """One sentence, before anything is measured or written: the other bounds are too low here."""
    monkeypatch.setitem(sys.modules, "highspy", None)
    assert command(["--output", str(tmp_path / "paper.md")]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        "Error: the bound of this experiment needs the LP solver highspy, which is not installed:"
        " run `make setup` or `pip install highspy`\n"
    )
    assert list(tmp_path.iterdir()) == []
