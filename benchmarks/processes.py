"""Benchmarks in processes of their own: for their memory, libraries, or the threads of BLAS."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.command import BenchmarkError

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Variables with which BLAS has one thread."""

ROOT = Path(__file__).resolve().parents[1]


def run_apart(
    what: str,
    words: Sequence[str],
    *,
    given: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> str:
    """Run a module in a process of its own; returns what it prints.

    Args:
        what: name of the process, for the message.
        words: the module and its arguments.
        given: standard input of the process; None = nothing.
        variables: environment variables besides those of this process.

    Raises:
        BenchmarkError: it fails; the message ends with the last line that it wrote.
    """
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        env={**os.environ, **(variables or {})},
        input=given,
        capture_output=True,
        check=False,
        text=True,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
        raise BenchmarkError(f"{what} fails: {lines[-1]}")
    return done.stdout


def on_one_thread(module: str, command: Callable[[], int]) -> int:
    """Run a command line with BLAS on one thread; it reads how many it has when it is imported.

    Args:
        module: name of the benchmark, run again as a program where BLAS may have more.
        command: command line of the process.
    """
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        words = [sys.executable, "-m", f"benchmarks.{module}", *sys.argv[1:]]
        os.execve(sys.executable, words, {**os.environ, **ONE_THREAD})
    return command()
