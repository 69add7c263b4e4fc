"""How commands end when something goes wrong inside."""

from importlib.metadata import version

import pytest

from kfp_placement.cli.group import program_name
from kfp_placement.exceptions import PlacementError
from kfp_placement_engine.exceptions import InputNotFoundError, LimitError, PlanningError
from tests.cli.conftest import CLUSTER, RUN


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PlanningError("no"), 1),
        (LimitError("no"), 1),
        (InputNotFoundError("no"), 3),
        (PlacementError("no"), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_our_errors_are_one_line(plan, planner, error, code):
    planner.error = error
    assert plan.message(code) == "Error: no\n"


def test_messages_stay_one_line_and_cannot_steer_a_terminal(plan, planner):
    planner.error = PlanningError("two\nlines \x1b[31m")
    assert plan().stderr == "Error: two\\nlines \\x1b[31m\n"


@pytest.mark.parametrize("where", ["before", "after"])
def test_what_should_not_happen_says_so_and_how_to_see_more(run, plan, planner, where, golden):
    planner.error = ValueError("odd\x1b[31m")
    stderr = plan.message(1)
    golden(stderr, "in a line")
    assert "ValueError: odd\\x1b[31m" in stderr
    assert "--debug" in stderr
    arguments = ["plan", RUN, "-c", CLUSTER]
    result = run("--debug", *arguments) if where == "before" else run(*arguments, "--debug")
    assert result.exit_code == 1
    assert "Traceback (most recent call last)" in result.stderr
    golden(result.stderr.splitlines()[-1], "after the traceback")


def test_no_memory(plan, planner, golden):
    planner.error = MemoryError()
    stderr = plan.message(1)
    golden(stderr)


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("/usr/bin/kfp-placement", "kfp-placement"),
        ("/usr/bin/kubectl-placement", "kubectl placement"),
        ("kubectl-some_thing", "kubectl some-thing"),
        ("/x/__main__.py", "kfp-placement"),
    ],
)
def test_program_name(program, name):
    assert program_name(program) == name


def test_version(run):
    assert run.output("--version") == f"kfp-placement {version('kfp-placement')}\n"


def test_completion_without_a_shell_lists_the_shells(run):
    stderr = run.message(2, "completion")
    assert "\\t" not in stderr
    for shell in ("bash", "zsh", "fish"):
        assert f"\n    {shell}" in stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lst", "No such command 'lst'. Did you mean 'list' or 'cluster'?"),
        ("xyz", "No such command 'xyz'.\n"),
    ],
)
def test_of_commands_that_are_near_the_nearest_comes_first(run, name, message):
    assert message in run.message(2, name)
