"""Entry point of the in-cluster processes."""

import argparse
import importlib
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from kfp_placement_controller.exceptions import ControllerError
from kfp_placement_controller.settings import (
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


@dataclass(frozen=True)
class Process:
    """One of the processes.

    Attributes:
        settings: what can be set.
        module: where its `run(settings) -> exit code` is; imported only when it is asked for.
        purpose: in a line.
    """

    settings: type[Settings]
    module: str
    purpose: str


PROCESSES: Mapping[str, Process] = {
    "plan": Process(
        PlanSettings,
        "kfp_placement_controller.plan_process",
        "plan every run and write its PipelinePlacement",
    ),
    "extend": Process(
        ExtendSettings,
        "kfp_placement_controller.extend_process",
        "answer our scheduler, and admit pods where the API server cannot",
    ),
    "queue": Process(
        QueueSettings,
        "kfp_placement_controller.queue_process",
        "hold whole runs until their queue admits them",
    ),
    "release": Process(
        ReleaseSettings,
        "kfp_placement_controller.release_process",
        "pause the policy and remove our gates from all pods",
    ),
}


def main(
    arguments: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ
) -> int:
    """Run one process to its end; returns the exit code."""
    options = _parser().parse_args(arguments)
    process = PROCESSES[options.process]
    try:
        settings = read_settings(process.settings, options, environment)
    except ControllerError as error:
        print(f"{DISTRIBUTION}: {error}", file=sys.stderr)
        return USAGE
    logging.basicConfig(
        level=settings.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    try:
        code: int = importlib.import_module(process.module).run(settings)
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
    for name, process in PROCESSES.items():
        command = commands.add_parser(name, help=process.purpose, description=process.purpose)
        add_options(command, process.settings)
    return parser


if __name__ == "__main__":
    sys.exit(main())
