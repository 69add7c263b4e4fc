"""The engine's public names mean the same whatever was imported before."""

import subprocess
import sys

import pytest

FUNCTIONS = ["lower_bound", "solve"]
"""Public names that are names of modules, too."""


def run_python(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    "first", ["kfp_placement_engine.planning.plan_runs", "kfp_placement_engine.search.solve"]
)
def test_a_function_is_not_hidden_by_its_module(name, first):
    """Importing a submodule sets it as an attribute of the package."""
    code = f"import {first}\nfrom kfp_placement_engine import {name}\nprint(type({name}).__name__)"
    assert run_python(code) == "function"
