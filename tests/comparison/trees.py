"""The two trees: the present one, and a work tree of the base commit beside it."""

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
DATA_VARIABLE = "KFP_PLACEMENT_DATA"


class ComparisonError(Exception):
    """The comparison cannot be made; says why."""


def commit_of(name: str) -> str:
    """The full name of a commit.

    Raises:
        ComparisonError: there is none.
    """
    done = _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if done.returncode != 0:
        raise ComparisonError(f"{name}: no such commit in this repository")
    return done.stdout.strip()


def data_folder() -> Path:
    """Where the recorded data lies.

    Raises:
        ComparisonError: nowhere.
    """
    named = os.environ.get(DATA_VARIABLE)
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        raise ComparisonError(f"{folder}: no recorded data; name its folder in {DATA_VARIABLE}")
    return folder.resolve()


def kept_folder(commit: str, data: Path) -> Path:
    """Where the cases of a commit are kept: what is asked, and of which data, is in the name."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    asked = hashlib.sha256(str(data).encode())
    for path in sorted(HERE.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and not _is_ours(path):
            asked.update(path.name.encode() + path.read_bytes())
    name = f"{commit[:12]}-{asked.hexdigest()[:12]}"
    return cache / "kfp-placement" / "comparison" / name


def _is_ours(path: Path) -> bool:
    """Whether it only compares, and asks nothing."""
    only = ("__main__", "comparing", "masks", "report", "trees")
    return path.stem in only or path.name.startswith("test_")


@contextlib.contextmanager
def base_tree(commit: str) -> Iterator[Path]:
    """A work tree of a commit, set up, beside the present one; gone again afterwards.

    Raises:
        ComparisonError: it cannot be made or set up.
    """
    beside = ROOT.parent if os.access(ROOT.parent, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix=f"{ROOT.name}-{commit[:8]}-", dir=beside))
    try:
        done = _git("worktree", "add", "--force", "--detach", str(folder), commit)
        if done.returncode != 0:
            raise ComparisonError(f"no work tree of {commit}: {done.stderr.strip()}")
        set_up(folder)
        yield folder
    finally:
        _git("worktree", "remove", "--force", str(folder))
        shutil.rmtree(folder, ignore_errors=True)
        _git("worktree", "prune")


def set_up(tree: Path) -> None:
    """Let a tree make its own environment.

    Raises:
        ComparisonError: it cannot.
    """
    left_out = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "VIRTUAL_ENV", "PYTHONPATH")
    environment = {key: each for key, each in os.environ.items() if key not in left_out}
    done = subprocess.run(
        ["make", "--no-print-directory", "setup"],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ComparisonError(f"`make setup` fails in {tree}:\n{done.stdout}{done.stderr}")


@contextlib.contextmanager
def asking_program() -> Iterator[Path]:
    """A copy of this package alone: both trees are asked by the same code, and by no other."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "tests", HERE.name)
        shutil.copytree(HERE, copy, ignore=shutil.ignore_patterns("__pycache__", "test_*"))
        yield Path(folder)


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False
    )
