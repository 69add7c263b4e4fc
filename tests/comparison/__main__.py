"""Compares what this tree does with what another commit does: `make compare BASE=COMMIT`."""

import argparse
import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.comparison.comparing import compare
from tests.comparison.groups import GROUPS
from tests.comparison.jobs import Side, collect
from tests.comparison.report import report
from tests.comparison.trees import (
    ROOT,
    ComparisonError,
    asking_program,
    base_tree,
    commit_of,
    data_folder,
    kept_folder,
    set_up,
)

DIFFERENT = 1
FAILED = 2


def main() -> int:
    """Compare; returns the exit code."""
    asked = _parser().parse_args()
    try:
        groups = _chosen(asked.only)
        return _compare(asked, groups)
    except ComparisonError as error:
        print(f"Error: {error}", file=sys.stderr)
        return FAILED


def _compare(asked: argparse.Namespace, groups: Sequence[str]) -> int:
    began = time.monotonic()
    commit, data = commit_of(asked.base), data_folder()
    kept = kept_folder(commit, data)
    if asked.fresh:
        shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True, exist_ok=True)
    lacking = [group for group in groups if not (kept / group).is_dir()]
    _tell(f"base {commit[:12]}, kept in {kept}; to collect: {', '.join(lacking) or 'nothing'}")
    with contextlib.ExitStack() as stack:
        program = stack.enter_context(asking_program())
        present = Side("present", ROOT, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        sides = [(present, group) for group in groups]
        if lacking:
            tree = stack.enter_context(base_tree(commit))
            sides += [(Side("base", tree, kept), group) for group in lacking]
        set_up(ROOT)
        collect(sides, program, data, asked.workers, _tell)
        found = [compare(each, kept / each, present.folder / each) for each in groups]
    for line in report(found, asked.report):
        print(line)
    is_same = all(each.is_same for each in found)
    _tell(f"{'identical' if is_same else 'DIFFERENT'} after {time.monotonic() - began:.0f} s")
    return 0 if is_same else DIFFERENT


def _chosen(only: str) -> list[str]:
    names = [each for each in only.split(",") if each] or list(GROUPS)
    if unknown := [each for each in names if each not in GROUPS]:
        raise ComparisonError(f"no group {unknown[0]!r}; there are {', '.join(GROUPS)}")
    return names


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tests.comparison",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="groups:\n" + "".join(f"  {name:10} {g.title}\n" for name, g in GROUPS.items()),
    )
    parser.add_argument("base", help="commit to compare with")
    parser.add_argument("--only", default="", metavar="GROUPS", help="these groups, with commas")
    parser.add_argument("--workers", type=int, default=2, help="processes at a time")
    parser.add_argument("--fresh", action="store_true", help="collect the base again")
    parser.add_argument(
        "--report",
        type=Path,
        default=ROOT / "build" / "comparison",
        metavar="FOLDER",
        help="where all differences and masked lines go",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
