"""Trials: searches in several processes, and the log that an interrupted command goes on with."""

import json
from concurrent.futures.process import BrokenProcessPool

import pytest

from benchmarks.budget import Budget
from benchmarks.command import BenchmarkError
from benchmarks.tuning import trials
from benchmarks.tuning.trials import Measurement, Trial, TrialLog, measure, run_trials
from kfp_placement.exceptions import RunError
from kfp_placement_engine import GeneticParams
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.plans.progress import no_progress

A_TRIAL = Trial("workflows", 1000, 0, Budget(schedules=60), GeneticParams())
MEASURED = Measurement(12.5, 60, 0.01)


class Measuring:
    """Stands in for `measure`."""

    def __init__(self, monkeypatch, interrupted_after: int | None = None) -> None:
        self.measured: list[Trial] = []
        self.interrupted_after = interrupted_after
        monkeypatch.setattr(trials, "measure", self)

    def __call__(self, trial: Trial) -> Measurement:
        if len(self.measured) == self.interrupted_after:
            raise KeyboardInterrupt
        self.measured.append(trial)
        return MEASURED


def some_trials(count: int = 4) -> list[Trial]:
    return [Trial("workflows", 1000, seed, A_TRIAL.budget, A_TRIAL.params) for seed in range(count)]


def completions(measured) -> list[float]:
    return [each.completion_seconds for each in measured.values()]


def test_a_trial_is_a_search_with_its_budget():
    measurement = measure(A_TRIAL)
    assert 60 <= measurement.schedules < 70
    assert measurement.completion_seconds > 0
    assert measurement.cpu_seconds > 0


def test_results_do_not_depend_on_the_number_of_processes():
    wanted = some_trials()
    alone, together = (run_trials(wanted, workers, TrialLog(), no_progress) for workers in (1, 2))
    assert list(alone) == list(together) == wanted
    assert completions(alone) == completions(together)


def test_a_trial_that_is_wanted_twice_is_measured_once(monkeypatch):
    stand_in = Measuring(monkeypatch)
    assert run_trials([A_TRIAL, A_TRIAL], 1, TrialLog(), no_progress) == {A_TRIAL: MEASURED}
    assert stand_in.measured == [A_TRIAL]


def test_an_interrupted_command_goes_on(tmp_path, monkeypatch):
    path, wanted = tmp_path / "log", some_trials()
    stand_in = Measuring(monkeypatch, interrupted_after=2)
    with TrialLog(path) as log, pytest.raises(KeyboardInterrupt):
        run_trials(wanted, 1, log, no_progress)
    with path.open("a", encoding="utf-8") as stream:
        stream.write('{"key": "cut o')
    stand_in.interrupted_after = None
    with TrialLog(path) as log:
        measured = run_trials(wanted, 1, log, no_progress)
    assert stand_in.measured == wanted
    assert measured == dict.fromkeys(wanted, MEASURED)
    with TrialLog(path) as log:
        assert all(log.find(each) == MEASURED for each in wanted)


def test_trials_of_another_search_are_not_taken(tmp_path, monkeypatch):
    with TrialLog(tmp_path / "log") as log:
        log.add(A_TRIAL, MEASURED)
    monkeypatch.setattr(trials, "sources", lambda: "another engine")
    assert TrialLog(tmp_path / "log").find(A_TRIAL) is None


@pytest.mark.parametrize(
    "other",
    [
        Trial("kfp-ready", 1000, 0, A_TRIAL.budget, A_TRIAL.params),
        Trial("workflows", 1001, 0, A_TRIAL.budget, A_TRIAL.params),
        Trial("workflows", 1000, 1, A_TRIAL.budget, A_TRIAL.params),
        Trial("workflows", 1000, 0, Budget(cpu_seconds=60.0), A_TRIAL.params),
        Trial("workflows", 1000, 0, A_TRIAL.budget, GeneticParams(most_moves=7)),
    ],
)
def test_keys_differ_with_whatever_differs(other):
    assert A_TRIAL.key("x") != other.key("x")
    assert A_TRIAL.key("x") == some_trials(1)[0].key("x") != A_TRIAL.key("y")


@pytest.mark.parametrize("line", ["{", "[]", "{}", json.dumps({"key": "a", "seconds": 1})])
def test_a_file_that_is_no_log(tmp_path, line):
    (tmp_path / "log").write_text(line + "\n", "utf-8")
    with pytest.raises(InputError, match=r"log: line 1 is not a trial; remove the file"):
        TrialLog(tmp_path / "log")


def test_a_log_that_cannot_be_read_or_written(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        TrialLog(tmp_path)
    with pytest.raises(RunError, match="cannot be written"), TrialLog(tmp_path / "no" / "log"):
        pass


def test_a_process_that_ends(monkeypatch):
    def pool_that_breaks(*_arguments):
        raise BrokenProcessPool

    monkeypatch.setattr(trials, "ProcessPoolExecutor", pool_that_breaks)
    with pytest.raises(BenchmarkError, match="a process that searched ended"):
        run_trials([A_TRIAL], 2, TrialLog(), no_progress)
