"""Entry point of the in-cluster processes."""

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version

DISTRIBUTION = "kfp-placement-controller"


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer `--version` and `--help`; otherwise say that there is no process to start."""
    parser = _parser()
    parser.parse_args(arguments)
    print(
        f"{DISTRIBUTION} {version(DISTRIBUTION)}: "
        "the in-cluster processes are not in this release. "
        "Plan runs without a cluster with `kfp-placement plan`.",
        file=sys.stderr,
    )
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=DISTRIBUTION,
        description="The in-cluster part of kfp-placement.",
        epilog="The in-cluster processes are not in this release: "
        "without an option this exits with 1.",
    )
    parser.add_argument(
        "--version", action="version", version=f"{DISTRIBUTION} {version(DISTRIBUTION)}"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
