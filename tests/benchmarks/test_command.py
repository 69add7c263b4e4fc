"""The command lines of the benchmarks: formats, messages, exit codes."""

import json
import subprocess
import sys

import pytest

from benchmarks import demand, exact, j30, paper, scale, scheduler, speed, suite, wfinstances
from benchmarks.command import add_makespan_within, parser_of
from kfp_placement_engine.model.objective import MakespanWithin
from tests.support.checkout import ROOT

SHARED = ROOT.parent / "shared" / "data"
PLUGINS = ROOT / "tests/benchmarks/kube_scheduler/data/plugins-1.36.3.json.gz"
MODULES = (demand, exact, j30, paper, scale, scheduler, speed, suite, wfinstances)
COMMANDS = {module.__name__: module.command for module in MODULES}


@pytest.mark.parametrize(
    "module", [demand, j30, scheduler, wfinstances], ids=lambda each: each.__name__
)
def test_no_data(module, message, monkeypatch, tmp_path):
    assert message(3, module.command, "--data", "gone").startswith("Error: gone: no such ")
    monkeypatch.setenv("KFP_PLACEMENT_DATA", str(tmp_path / "gone"))
    assert "no such folder of benchmark data" in message(3, module.command)


def test_bad_data(message, tmp_path):
    file = tmp_path / "bad.json"
    file.write_text(json.dumps({"a": 1}), encoding="utf-8")
    (line,) = message(1, scheduler.command, "--data", str(file)).splitlines()
    assert line.startswith("Error: ")
    assert "bad.json" in line


def test_exit_code_is_that_of_the_benchmark(capsys, monkeypatch):
    def differs(data, echo, form):
        echo("1 difference")
        return 1

    monkeypatch.setattr("benchmarks.scheduler.main", differs)
    assert scheduler.command([]) == 1
    assert capsys.readouterr().out == "1 difference\n"


@pytest.mark.skipif(not SHARED.is_dir(), reason="no ../shared/data beside the repository")
def test_the_real_scheduler_is_matched(capsys, figures):
    assert scheduler.command(["--data", str(SHARED)]) == 0
    assert "726 of 726" in capsys.readouterr().out
    report = figures(scheduler.command, "--data", str(SHARED))
    assert (report["agrees"], report["scores"]) == (True, {"equal": 5738, "total": 5738})
    assert scheduler.command(["--data", str(SHARED), "-o", "markdown"]) == 0
    assert "| same feasible nodes | pods | 726 | 726 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("module", "options"),
    [
        (paper, ["--seeds", "0"]),
        (paper, ["--seeds", "10001"]),
        (paper, ["--seeds", "many"]),
        (paper, ["--budget", "x"]),
        (paper, ["-o", "html"]),
        (scale, ["--sizes", "100"]),
        (scale, ["--sizes", "0x5"]),
        (wfinstances, ["--budget", "x"]),
        (scheduler, ["more"]),
    ],
)
def test_usage(module, options, usage_error):
    assert options[-1] in usage_error(module.command, *options)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        COMMANDS[name](["--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert f"Examples:\n  python -m {name}" in shown
    assert "Exit codes: 0 " in shown


@pytest.mark.parametrize(
    "module",
    [demand, exact, j30, paper, scale, speed, suite, wfinstances],
    ids=lambda each: each.__name__,
)
def test_nothing_is_measured_for_a_file_that_cannot_be_written(module, message, tmp_path):
    file = tmp_path / "none" / "table.md"
    assert "there is no folder" in message(3, module.command, "--output", str(file))


def test_interrupted(message, monkeypatch):
    def stopped(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("benchmarks.scheduler.main", stopped)
    assert message(130, scheduler.command) == "Interrupted.\n"


def test_a_reader_that_goes_away_is_no_traceback():
    command = f"{sys.executable} -m benchmarks.scheduler --data {PLUGINS} -o json | true"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, check=False)
    assert done.stderr == b""


def test_a_limit_of_the_latest_end_is_read(capsys, usage_error):
    """`-3%` alone looks like an option to argparse."""
    parser = parser_of("many_runs", "Runs.", examples=[""], exit_codes="0 done.")
    add_makespan_within(parser, [MakespanWithin(percent=5)])
    assert parser.parse_args([]).makespan_within == [MakespanWithin(percent=5)]
    given = parser.parse_args(["--makespan-within", "3%", "20m"]).makespan_within
    assert given == [MakespanWithin(percent=3), MakespanWithin(seconds=1200)]
    for words in (["--makespan-within=-3%"], ["--makespan-within", "-3%"]):
        stderr = usage_error(parser.parse_args, *words)
        assert "'-3%' is negative; give 0% or more, or a time" in stderr
    with pytest.raises(SystemExit):
        parser.parse_args(["--help"])
    assert "such as 3%, or a time" in " ".join(capsys.readouterr().out.split())
