"""What `make demo-cluster` takes and tells people to try."""

import shlex
from pathlib import Path

import pytest

from kfp_placement.cli.app import cli
from tests.controller.demo_cluster import TO_TRY, read_options
from tests.controller.demonstration import SHORTER

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("shorter", ["0", "-1", "1.5", "", "ten", "9" * 10, "\u0663"])
def test_what_makes_no_sense_is_refused_before_anything_starts(shorter, capsys):
    with pytest.raises(SystemExit) as ended:
        read_options(["--shorter", shorter])
    assert ended.value.code == 2
    assert "is no whole number from 1" in capsys.readouterr().err


def test_what_is_asked_for():
    assert read_options([]).shorter == SHORTER
    assert read_options([]).sample == "unequal-steps"
    assert read_options(["taxi", "--location", "HOME-EDGE"]).sample == "taxi"
    assert read_options(["--shorter", "1"]).shorter == 1
    assert read_options(["--keep"]).keep


@pytest.mark.parametrize("sample", ["04_unequal_steps", "06_taxi"])
def test_every_live_command_is_there_to_try(sample):
    text = TO_TRY.format(kubeconfig="k", namespace="team-a", run="taxi", sample=sample)
    lines = [part.strip() for line in text.splitlines() for part in line.split(";")]
    tried = [shlex.split(line)[1:] for line in lines if line.startswith("kfp-placement")]
    assert {command for command, *_ in tried} == {"watch", "list", "explain", "plan", "release"}
    for command, *arguments in tried:
        parsed = cli.commands[command].make_context(command, list(arguments))
        if command == "plan":
            assert (ROOT / parsed.params["run"]).is_file()
    assert any(line[0] == "explain" and line[-1] == "predict" for line in tried)
