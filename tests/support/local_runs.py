"""Run pipelines on this machine with kfp.local, without any package being installed."""

import builtins
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kfp import local
from kfp.local import config

# What kfp says where a pipeline asks for CPU, and the local runner has but this machine's.
WITHOUT_RESOURCES = pytest.mark.filterwarnings(
    "ignore:Task .* no effect in the current local runner:UserWarning"
)

_PIP = """import sys
from pathlib import Path
with (Path(__file__).parent / "pip-calls").open("a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
"""


@contextmanager
def local_runner(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Calls of pipelines run here, as subprocesses of this Python.

    Lightweight components install kfp before they run; it is here already, and tests need no
    network, so a `pip` that installs nothing stands before the real one.
    """
    stand_in = folder / "stand-in"
    stand_in.mkdir(parents=True)
    (stand_in / "pip.py").write_text(_PIP)
    program = stand_in / "pip"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", str(stand_in))
    monkeypatch.setenv("PATH", f"{stand_in}{os.pathsep}{os.environ['PATH']}")
    before, printing = config.LocalExecutionConfig.instance, builtins.print
    local.init(
        runner=local.SubprocessRunner(use_venv=False),
        pipeline_root=str(folder / "artifacts"),
        workspace_root=str(folder / "workspace"),
    )
    try:
        yield
    finally:
        config.LocalExecutionConfig.instance = before
        # kfp replaces `print` while a step runs; steps that run at once put back each other's.
        builtins.print = printing
