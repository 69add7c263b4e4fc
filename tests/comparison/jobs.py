"""Lets trees answer, a few processes beside each other."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.comparison.groups import GROUPS
from tests.comparison.trees import ComparisonError

SHOWN_ERROR = 3000


@dataclass(frozen=True)
class Side:
    """A tree and where its cases go.

    Attributes:
        name: for people.
        tree: the work tree, set up.
        folder: of the cases, a folder for each group.
    """

    name: str
    tree: Path
    folder: Path


@dataclass(frozen=True)
class _Job:
    side: Side
    group: str
    share: int

    @property
    def target(self) -> Path:
        """Where it writes; it gets its name when all shares are there."""
        return _part(self.side, self.group)


def collect(
    asked: Iterable[tuple[Side, str]],
    program: Path,
    data: Path,
    workers: int,
    tell: Callable[[str], None],
) -> None:
    """Collect groups of cases.

    Raises:
        ComparisonError: one of them ended with an error.
    """
    pairs = list(asked)
    jobs = [
        _Job(side, group, share) for side, group in pairs for share in range(GROUPS[group].shares)
    ]
    for job in jobs:
        shutil.rmtree(job.target, ignore_errors=True)

    def run(job: _Job) -> None:
        began = time.monotonic()
        _run(job, program, data)
        of = GROUPS[job.group].shares
        share = f" {job.share + 1}/{of}" if of > 1 else ""
        tell(f"{job.side.name}: {job.group}{share}: {time.monotonic() - began:.0f} s")

    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(run, jobs):
            pass
    for side, group in pairs:
        part = _part(side, group)
        part.mkdir(parents=True, exist_ok=True)
        if (side.folder / group).exists():
            # Another comparison with the same base was quicker.
            shutil.rmtree(part)
        else:
            part.rename(side.folder / group)


def _part(side: Side, group: str) -> Path:
    """Of this process: others may collect the same base at the same time."""
    return side.folder / f"{group}.{os.getpid()}.part"


def _run(job: _Job, program: Path, data: Path) -> None:
    command = [
        *(str(job.side.tree / ".venv/bin/python"), "-P", "-m", "tests.comparison.collect"),
        *(job.group, str(job.target), "--tree", str(job.side.tree), "--data", str(data)),
        *("--share", str(job.share), "--of", str(GROUPS[job.group].shares)),
    ]
    done = subprocess.run(
        command,
        cwd=job.side.tree,
        env=_environment(program),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ComparisonError(
            f"{job.side.name}: {job.group} ended with {done.returncode}:\n"
            f"{(done.stdout + done.stderr)[-SHOWN_ERROR:]}"
        )


def _environment(program: Path) -> dict[str, str]:
    """Ours without what would change answers; hashes are the same in every process."""
    kept: Sequence[str] = ("PATH", "HOME", "USER", "LANG", "TMPDIR", "XDG_CACHE_HOME", "CHROMIUM")
    found = {key: os.environ[key] for key in kept if key in os.environ}
    return {**found, "PYTHONPATH": str(program), "PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}
