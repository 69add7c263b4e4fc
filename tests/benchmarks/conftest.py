import json
import shutil

import pytest

from benchmarks.processes import ROOT

ENGINE = ROOT / "engine" / "kfp_placement_engine"


@pytest.fixture
def figures(capsys):
    """The figures of a benchmark that ends well, as its command prints them."""

    def printed(command, *options):
        assert command([*options, "-o", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    return printed


@pytest.fixture
def message(capsys):
    """Return a function that runs a command and returns what it says on standard error."""

    def stderr_of(code, command, *options):
        assert command(list(options)) == code
        return capsys.readouterr().err

    return stderr_of


@pytest.fixture
def usage_error(capsys):
    """Return a function that returns what a command says of options that it does not take."""

    def stderr_of(command, *options):
        with pytest.raises(SystemExit) as stopped:
            command(list(options))
        assert stopped.value.code == 2
        return capsys.readouterr().err

    return stderr_of


@pytest.fixture
def checkout(tmp_path):
    """A folder with a copy of the engine, its kernel included."""
    folder = tmp_path / "base"
    copy = folder / "engine" / ENGINE.name
    shutil.copytree(ENGINE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return folder
