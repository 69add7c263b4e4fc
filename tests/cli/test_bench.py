import json
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[3] / "shared" / "data"


def test_no_data(run, monkeypatch, tmp_path):
    result = run("bench", "scheduler", "--data", "gone")
    assert result.exit_code == 3
    assert result.stderr == "Error: gone: no such file or folder\n"
    monkeypatch.setenv("KFP_PLACEMENT_DATA", str(tmp_path / "gone"))
    assert run("bench", "scheduler").exit_code == 3


def test_bad_data(run, tmp_path):
    (tmp_path / "bad.json").write_text(json.dumps({"a": 1}), encoding="utf-8")
    result = run("bench", "scheduler", "--data", "bad.json")
    assert result.exit_code == 1
    assert "bad.json" in result.stderr
    assert "should not have happened" not in result.stderr


def test_exit_code_of_the_bench_is_ours(run, monkeypatch):
    def differs(data, echo):
        echo("1 difference")
        return 1

    monkeypatch.setattr("kfp_placement.bench.scheduler.main", differs)
    result = run("bench", "scheduler")
    assert (result.exit_code, result.stdout) == (1, "1 difference\n")


@pytest.mark.skipif(not SHARED.is_dir(), reason="no ../shared/data beside the repository")
def test_the_real_scheduler_is_matched(run):
    result = run("bench", "scheduler", "--data", SHARED)
    assert result.exit_code == 0, result.stdout
    assert "726 of 726" in result.stdout


@pytest.mark.parametrize("options", [["--seeds", "0"], ["--budget", "x"], ["--seeds", "many"]])
def test_usage(run, options):
    assert run("bench", "paper", *options).exit_code == 2
