"""What the demos on a control plane take and tell people to try."""

import shlex
from typing import Any

import click
import pytest

from kfp_placement.cli.app import cli
from tests.controller import demo_queue
from tests.controller.demo_cluster import TO_TRY, read_options
from tests.support.checkout import ROOT


@pytest.mark.parametrize("read", [read_options, demo_queue.read_options], ids=["cluster", "queue"])
@pytest.mark.parametrize("shorter", ["0", "-1", "1.5", "", "ten", "9" * 10, "\u0663"])
def test_what_makes_no_sense_is_refused_before_anything_starts(shorter, read, capsys):
    with pytest.raises(SystemExit) as ended:
        read(["--shorter", shorter])
    assert ended.value.code == 2
    assert "is no whole number from 1" in capsys.readouterr().err


def test_runs_that_would_be_over_too_early_are_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        demo_queue.read_options(["--shorter", "121"])
    assert ended.value.code == 2
    assert "--shorter 121 is more than 120" in capsys.readouterr().err


@pytest.mark.parametrize("sample", ["04_unequal_steps", "06_taxi"])
def test_every_live_command_is_there_to_try(sample):
    text = TO_TRY.format(kubeconfig="k", namespace="team-a", run="taxi", sample=sample)
    tried = commands_in(text)
    assert {command for command, *_ in tried} == {"watch", "list", "explain", "plan", "release"}
    for command, *arguments in tried:
        parsed = parsed_arguments(command, arguments)
        if command == "plan":
            assert (ROOT / parsed["run"]).is_file()
    assert any(line[0] == "explain" and line[-1] == "predict" for line in tried)


def test_every_command_of_queues_is_there_to_try():
    names = {"first": "daily-2", "low": "trial-2", "high": "urgent-2"}
    text = demo_queue.TO_TRY.format(kubeconfig="k", namespace="team-a", train=180, **names)
    tried = commands_in(text)
    commands = {"queue", "admit", "preempt", "explain", "list", "watch"}
    assert {command for command, *_ in tried} == commands
    for command, *arguments in tried:
        assert parsed_arguments(command, arguments)["namespace"] == "team-a"


def commands_in(text: str) -> list[list[str]]:
    """The command lines of kfp-placement in a text, without its name."""
    lines = [part.strip() for line in text.splitlines() for part in line.split(";")]
    return [shlex.split(line)[1:] for line in lines if line.startswith("kfp-placement")]


def parsed_arguments(name: str, arguments: list[str]) -> dict[str, Any]:
    """What a command of the command line makes of its arguments, which it must accept."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command.make_context(name, list(arguments)).params
