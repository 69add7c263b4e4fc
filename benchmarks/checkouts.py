"""Checkouts of other versions of this project, whose engine a benchmark runs beside ours."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command import BenchmarkError
from benchmarks.processes import ONE_THREAD, ROOT
from kfp_placement_engine.exceptions import InputNotFoundError

_ENGINE = Path("engine", "kfp_placement_engine")


@dataclass(frozen=True)
class Checkout:
    """A checkout of this project whose engine is measured.

    Attributes:
        name: name for people.
        folder: folder of the checkout.
    """

    name: str
    folder: Path

    def check(self) -> None:
        """Refuse a folder that cannot be measured, or that would not be what its sources say.

        Raises:
            InputNotFoundError: it is not a checkout.
            BenchmarkError: its kernel is not compiled, or its sources have changed since.
        """
        engine = self.folder / _ENGINE
        if not (engine / "__init__.py").is_file():
            raise InputNotFoundError(f"{self.folder}: not a checkout of kfp-placement")
        kernels = [path for path in engine.glob("_kernel.*") if path.is_file()]
        if not kernels:
            raise BenchmarkError(
                f"{self.folder}: its kernel is not compiled: run `make setup` there"
            )
        sources = (self.folder / "engine" / "kernel").glob("*.[ch]")
        compiled = max(path.stat().st_mtime for path in kernels)
        if any(path.stat().st_mtime > compiled for path in sources):
            raise BenchmarkError(
                f"{self.folder}: its kernel is older than its sources: run `make kernel` there"
            )

    @property
    def variables(self) -> Mapping[str, str]:
        """Environment variables of a process that uses its engine with our benchmarks."""
        path = os.pathsep.join(map(str, (self.folder / _ENGINE.parent, ROOT)))
        return {**ONE_THREAD, "PYTHONPATH": path}

    def check_engine(self, used: str) -> None:
        """Refuse what another engine computed.

        Args:
            used: file of the engine that a process used.

        Raises:
            BenchmarkError: it is not this checkout's.
        """
        if not Path(used).is_relative_to(self.folder / _ENGINE.parent):
            raise BenchmarkError(f"{self.folder}: the engine of {used} was measured")


def add_base(parser: argparse.ArgumentParser) -> None:
    """Add `--base`."""
    parser.add_argument(
        "--base",
        type=Path,
        metavar="CHECKOUT",
        help="folder of another checkout of this project to compare with, such as a git worktree "
        "of an older commit. Its kernel must be compiled: run `make setup` there once. Its engine "
        "runs with this checkout's Python, packages and benchmarks",
    )
