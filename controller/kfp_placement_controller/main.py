"""Entry point of the in-cluster processes."""

import argparse
import importlib
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from kfp_placement_controller.exceptions import ControllerError
from kfp_placement_controller.settings import (
    AdmitSettings,
    ExtendSettings,
    PlanSettings,
    QueueSettings,
    ReleaseSettings,
    Settings,
    add_options,
    read_settings,
)
from kfp_placement_kube.exceptions import KubeError

DISTRIBUTION = "kfp-placement-controller"

FAILED = 1
"""Exit code: the process could not do its work; the message says why."""

USAGE = 2
"""Exit code: an option that cannot be used; argparse's own."""


PROCESSES: Mapping[str, type[Settings]] = {
    each.process: each
    for each in (PlanSettings, ExtendSettings, AdmitSettings, QueueSettings, ReleaseSettings)
}
"""Settings of each process by its name; its module is imported only when it runs."""


def main(
    arguments: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ
) -> int:
    """Run one process to its end; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        settings = read_settings(PROCESSES[options.process], options, environment)
    except ControllerError as error:
        print(f"{DISTRIBUTION}: {error}", file=sys.stderr)
        return USAGE
    logging.basicConfig(
        level=settings.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    try:
        process = importlib.import_module(f"kfp_placement_controller.{settings.process}_process")
        code: int = process.run(settings)
    except (ControllerError, KubeError) as error:
        print(f"{DISTRIBUTION}: {error}", file=sys.stderr)
        return FAILED
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=DISTRIBUTION,
        description="The in-cluster part of kfp-placement.",
        epilog="Every option can also be a variable: --log-level as KFP_PLACEMENT_LOG_LEVEL.",
    )
    parser.add_argument(
        "--version", action="version", version=f"{DISTRIBUTION} {version(DISTRIBUTION)}"
    )
    commands = parser.add_subparsers(dest="process", required=True, metavar="PROCESS")
    for name, settings in PROCESSES.items():
        command = commands.add_parser(name, help=settings.purpose, description=settings.purpose)
        add_options(command, settings)
    return parser


if __name__ == "__main__":
    sys.exit(main())
